"""What an object of a drive is, and how bad it is: an owner saves an object whatever its age, and youth saves one without an owner."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.coherence import (
    MIN_AGE,
    OLD_LOOK,
    SAMPLE,
    DriveCoherence,
    MissingObject,
    Owner,
    Standing,
    Tally,
    judge_drives,
    judge_object,
    present_share,
)
from primer_core.freshness import Severity
from primer_core.stored_states import DriveKind

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOOK = DriveCoherence("acme", DriveKind.INTAKE, "/drives/intake", NOW)
AGES = st.timedeltas(timedelta(days=-2), timedelta(days=400))
KEYS = st.sampled_from(["ab/cd/blobs/1.bin", "probe/1", "probes/1", "probe", "loose"])
TALLIES = st.builds(Tally, st.integers(0, 99), st.integers(0, 99), st.lists(st.text(max_size=3)).map(tuple))


@given(KEYS, AGES, st.sampled_from([None, *Owner]))
def test_only_what_is_old_and_of_nobody_and_no_probe_is_an_orphan(key: str, age: timedelta, owner: Owner | None) -> None:
    found = judge_object(key, NOW - age, owner, NOW)
    assert (found is Standing.ORPHAN) == (owner is None and age >= MIN_AGE and not key.startswith("probe/"))
    if owner is not None:
        assert found == {Owner.LIVE: Standing.OWNED, Owner.FREED: Standing.FREED}[owner]


def test_an_hour_is_the_least_age() -> None:
    moment = timedelta(microseconds=1)
    assert judge_object("a", NOW - timedelta(hours=1), None, NOW) is Standing.ORPHAN
    assert judge_object("a", NOW - timedelta(hours=1) + moment, None, NOW) is Standing.TOO_YOUNG
    assert judge_object("a", NOW + timedelta(days=1), None, NOW) is Standing.TOO_YOUNG


@given(st.lists(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=40), max_size=5))
def test_a_tally_counts_all_and_names_the_first(pages: list[list[tuple[str, int]]]) -> None:
    tally = Tally()
    for page in pages:
        tally = tally.plus(page)
    every = [each for page in pages for each in page]
    assert tally == Tally(len(every), sum(size for _, size in every), tuple(key for key, _ in every[:SAMPLE]))


@given(
    st.builds(
        DriveCoherence,
        st.text(),
        st.sampled_from(DriveKind),
        st.text(),
        st.just(NOW),
        *(st.integers(0), st.integers(0), TALLIES, TALLIES, TALLIES, TALLIES, TALLIES, st.integers(0), st.integers(0)),
        missing_sample=st.lists(st.builds(MissingObject, st.text(), st.text(), st.text(), st.text(), st.none() | st.text())).map(tuple),
        fault=st.none() | st.text(),
    )
)
def test_a_look_comes_back_from_json_as_it_was(look: DriveCoherence) -> None:
    assert DriveCoherence.from_json(look.to_json()) == look


ONE = Tally(1, 5, ("a",))


@pytest.mark.parametrize(
    ("look", "severity", "words"),
    [
        (LOOK, Severity.OK, ""),
        (replace(LOOK, too_young=ONE, freed=ONE, foreign=ONE), Severity.OK, ""),
        (replace(LOOK, orphans=ONE), Severity.WARN, "1 orphans"),
        (replace(LOOK, orphans=ONE, reclaimed=ONE), Severity.OK, ""),
        (replace(LOOK, checked=9, missing=2), Severity.ERROR, "2 of 9 objects are missing"),
        (replace(LOOK, fault="it is not there"), Severity.ERROR, "it is not there"),
        (replace(LOOK, checked_at=NOW - OLD_LOOK - timedelta(seconds=1)), Severity.WARN, "nobody has looked since 2025-12-29 23:59 UTC"),
    ],
)
def test_each_fault_counts_as_what_it_is(look: DriveCoherence, severity: Severity, words: str) -> None:
    fine = replace(LOOK, kind=DriveKind.PIPELINE)
    found, reasons = judge_drives([fine, look], NOW)
    assert found is severity
    assert words in "".join(reasons)
    assert len(reasons) == (severity is not Severity.OK)
    if look.checked_at == NOW:
        assert look.is_coherent == (severity is Severity.OK)


def test_no_look_at_all_is_no_good_news() -> None:
    assert judge_drives([], NOW)[0] is Severity.WARN


def test_the_share_is_over_all_that_rows_own() -> None:
    assert present_share([]) == 1
    assert present_share([LOOK]) == 1
    assert present_share([replace(LOOK, checked=30, missing=3), replace(LOOK, checked=70), replace(LOOK, checked=5, fault="gone")]) == 0.97
