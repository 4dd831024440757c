from hypothesis import given
from hypothesis import strategies as st

from primer_core.reviews import output_version, page_label, pages_of

pages = st.frozensets(st.integers(1, 60))


@given(pages)
def test_a_label_tells_its_pages(some: frozenset[int]) -> None:
    assert pages_of(page_label(some)) == some


@given(pages, pages)
def test_only_the_same_pages_make_the_same_output(some: frozenset[int], others: frozenset[int]) -> None:
    assert (output_version("p1", page_label(some)) == output_version("p1", page_label(others))) == (some == others)


def test_labels_are_short_and_the_order_of_decisions_does_not_matter() -> None:
    assert page_label([7, 2, 1, 3, 2]) == "1-3,7"
    assert page_label(range(1, 901)) == "1-900"


def test_without_a_decision_the_output_is_the_parsers_own() -> None:
    assert output_version("docling 2", "") == "docling 2"
    assert output_version("docling 2", "3").startswith("docling 2;accepted=")
