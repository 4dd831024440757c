from datetime import UTC, datetime, timedelta

import pytest

from primer_core.events import SLACK, Shown, check_path, compare_labels, compare_shown

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ("v8", "v7", 1),
        ("v7", "v8", -1),
        ("v10", "v9", 1),
        ("17", "17", 0),
        ("abc", "abc", 0),
        ("2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", 0),
        ("2026-01-31T12:00:01Z", "2026-01-31T12:00:00Z", 1),
    ],
)
def test_labels_that_tell_an_order(left: str, right: str, order: int) -> None:
    found = compare_labels(left, right)
    assert found is not None
    assert (found > 0) - (found < 0) == order


@pytest.mark.parametrize(
    ("left", "right"),
    [("", ""), ("", "v1"), ("v1", "r2"), ("deadbeef", "cafe"), ("v1", "2026-01-31T12:00:00Z"), ("2026-01-31T12:00:00", "v2")],
)
def test_labels_that_tell_none(left: str, right: str) -> None:
    assert compare_labels(left, right) is None


def test_a_label_decides_before_the_time() -> None:
    assert compare_shown("v7", AT, "v8", AT - timedelta(days=1)) is Shown.CURRENT
    assert compare_shown("v8", AT, "v7", AT + timedelta(days=1)) is Shown.OLDER


def test_a_time_alone_leaves_a_doubt() -> None:
    assert compare_shown("etag", AT, "", AT - SLACK) is Shown.CURRENT
    assert compare_shown("etag", AT, "", AT - SLACK - timedelta(seconds=1)) is Shown.DOUBTFUL


def test_what_is_shown_after_a_delete_must_be_newer() -> None:
    assert compare_shown("v8", AT, "v8", AT, was_deleted=True) is Shown.OLDER
    assert compare_shown("v8", AT, "v9", AT, was_deleted=True) is Shown.CURRENT
    assert compare_shown("x", AT, "", AT - timedelta(seconds=1), was_deleted=True) is Shown.DOUBTFUL


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a/../b", "..", "a//b", "a/./b", "a/", "a\0b", "a\ud800"])
def test_a_path_stays_in_its_source(path: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_path(path)


def test_a_path_may_have_dots_and_blanks_in_its_names() -> None:
    assert check_path("a b/..c/d..e.md") == "a b/..c/d..e.md"
