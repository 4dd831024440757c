from hypothesis import given
from hypothesis import strategies as st

from primer_core.chunks import Chunk, number_occurrences
from primer_core.ids import row_id
from primer_core.write_plan import WritePlan, plan_write

DOC = "0" * 32


def chunks(*texts: str) -> tuple[Chunk, ...]:
    return number_occurrences(Chunk(0, (), "", text, text, (), 1) for text in texts)


def plan(manifest: dict[str, int], generation: int, *texts: str, rewrite: bool = False) -> WritePlan:
    return plan_write(DOC, chunks(*texts), manifest, generation, rewrite)


def rows(planned: WritePlan) -> set[str]:
    return {row_id(chunk, generation) for chunk, generation in planned.manifest.items()}


def test_the_first_write_adds_every_row_under_its_generation() -> None:
    first = plan({}, 1, "a", "b")
    assert [planned.row_id for planned in first.added] == [row_id(c.id_in(DOC), 1) for c in chunks("a", "b")]
    assert rows(first) == {planned.row_id for planned in first.added}


def test_an_edit_adds_only_what_is_new() -> None:
    first = plan({}, 1, "a", "b", "c")
    second = plan(dict(first.manifest), 2, "a", "B", "c")
    assert [planned.chunk.text for planned in second.added] == ["B"]
    assert second.diff.gone == (chunks("b")[0].id_in(DOC),)


def test_a_chunk_that_comes_back_is_a_new_row() -> None:
    first = plan({}, 1, "a", "b")
    second = plan(dict(first.manifest), 2, "a")
    third = plan(dict(second.manifest), 3, "a", "b")
    (back,) = third.added
    assert back.row_id == row_id(chunks("b")[0].id_in(DOC), 3)
    assert back.row_id not in rows(first)


def test_a_replay_of_the_same_content_adds_nothing() -> None:
    first = plan({}, 1, "a", "a", "b")
    assert plan(dict(first.manifest), 2, "a", "a", "b").added == ()


def test_a_rewrite_adds_every_row_anew_and_keeps_every_chunk() -> None:
    first = plan({}, 1, "a", "b")
    second = plan(dict(first.manifest), 2, "a", "b", rewrite=True)
    assert len(second.added) == 2
    assert rows(second).isdisjoint(rows(first))
    assert second.diff.new == second.diff.gone == ()


def test_a_delete_leaves_an_empty_manifest() -> None:
    gone = plan(dict(plan({}, 1, "a").manifest), 2)
    assert (gone.manifest, gone.added, len(gone.diff.gone)) == ({}, (), 1)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=6), st.booleans())
def test_what_is_written_is_exactly_what_the_manifest_gains(versions: list[list[str]], rewrite: bool) -> None:
    manifest: dict[str, int] = {}
    for generation, texts in enumerate(versions, start=1):
        step = plan(manifest, generation, *texts, rewrite=rewrite)
        before = {row_id(chunk, gen) for chunk, gen in manifest.items()}
        assert {planned.row_id for planned in step.added} == rows(step) - before
        assert set(step.manifest) == {chunk.id_in(DOC) for chunk in chunks(*texts)}
        manifest = dict(step.manifest)
