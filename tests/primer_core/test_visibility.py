"""The gate against a small model of what a catalog and two indexes go through while someone searches."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from primer_core.ids import row_id
from primer_core.visibility import DocumentView, TwoFlips, generation_as_of, is_visible

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: int) -> datetime:
    return T0 + timedelta(seconds=second)


def view(generation: int, previous: int, flipped: int | None, previously: int | None) -> DocumentView:
    return DocumentView(
        "d", generation, previous, None if flipped is None else at(flipped), None if previously is None else at(previously), False
    )


def test_a_search_that_began_before_the_flip_sees_the_generation_before() -> None:
    assert generation_as_of(view(2, 1, 10, 5), at(9)) == 1
    assert generation_as_of(view(2, 1, 10, 5), at(10)) == 2
    assert generation_as_of(view(2, 1, 10, 5), at(11)) == 2


def test_a_first_flip_is_invisible_to_a_search_that_began_before_it() -> None:
    assert generation_as_of(view(1, 0, 10, None), at(9)) == 0
    assert generation_as_of(view(0, 0, None, None), at(9)) == 0


def test_two_flips_since_the_search_began_are_refused_not_guessed() -> None:
    with pytest.raises(TwoFlips):
        generation_as_of(view(3, 2, 10, 9), at(8))
    assert generation_as_of(view(3, 2, 10, 9), at(9)) == 2


def test_rows_in_flight_and_rows_that_are_dead_do_not_count() -> None:
    assert is_visible(1, {}, "r", 1)
    assert not is_visible(2, {}, "r", 1)
    assert not is_visible(1, {"r": 1}, "r", 1)
    assert not is_visible(1, {"r": 2}, "r", 2)
    assert is_visible(1, {"r": 2}, "r", 1)


@dataclass
class History:
    """One document: what its rows, purges and manifests become as it is written, abandoned, flipped and purged."""

    now: int = 0
    claimed: int = 0
    generation: int = 0
    previous: int = 0
    flipped: int | None = None
    previously: int | None = None
    manifest: dict[str, int] = field(default_factory=dict)
    indexed: dict[str, int] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)
    died_at: dict[str, int] = field(default_factory=dict)
    intents: dict[str, int] = field(default_factory=dict)
    manifests: list[tuple[int, dict[str, int]]] = field(default_factory=lambda: [(0, {})])

    def open(self, chunks: set[str]) -> dict[str, int]:
        """A try: earlier intents are buried, rows of new chunks go into the index."""
        self.claimed += 1
        for row, generation in self.intents.items():
            self.dead[row] = generation
            self.died_at[row] = self.now
        planned = {chunk: self.manifest.get(chunk, self.claimed) for chunk in chunks}
        self.intents = {row_id(chunk, gen): gen for chunk, gen in planned.items() if gen == self.claimed}
        self.indexed.update(self.intents)
        return planned

    def flip(self, planned: dict[str, int]) -> None:
        for chunk, generation in self.manifest.items():
            if planned.get(chunk) != generation:
                self.dead[row_id(chunk, generation)] = self.claimed
                self.died_at[row_id(chunk, generation)] = self.now
        self.intents = {}
        self.previous, self.previously = self.generation, self.flipped
        self.generation, self.flipped, self.manifest = self.claimed, self.now, planned
        self.manifests.append((self.now, planned))

    def purge(self, oldest_reader: int) -> None:
        """Rows that died before any reader began leave the index; their marks stay, as they do for a further grace."""
        over = {row for row, moment in self.died_at.items() if moment < oldest_reader}
        self.indexed = {row: gen for row, gen in self.indexed.items() if row not in over}

    def as_of(self, second: int) -> set[str]:
        _, manifest = max((entry for entry in self.manifests if entry[0] <= second), key=lambda entry: entry[0])
        return {row_id(chunk, generation) for chunk, generation in manifest.items()}

    def visible(self, started: int) -> set[str]:
        seen = DocumentView(
            "d",
            self.generation,
            self.previous,
            None if self.flipped is None else at(self.flipped),
            None if self.previously is None else at(self.previously),
            False,
        )
        generation = generation_as_of(seen, at(started))
        return {row for row, added in self.indexed.items() if is_visible(added, self.dead, row, generation)}


steps = st.lists(st.tuples(st.sampled_from(["flip", "flip", "abandon", "wait", "purge"]), st.sets(st.sampled_from("abcd"))), max_size=12)


@given(steps, st.integers(0, 12), st.booleans())
def test_whatever_is_written_meanwhile_a_search_sees_exactly_the_document_as_it_was_when_it_began(
    history_steps: list[tuple[str, set[str]]], began: int, in_flight: bool
) -> None:
    history = History()
    for kind, chunks in history_steps:
        history.now += 1
        if kind in ("flip", "abandon"):
            planned = history.open(chunks)
            if kind == "flip":
                history.flip(planned)
        elif kind == "purge":
            history.purge(oldest_reader=began)
    if in_flight:
        history.open({"a", "z"})
    started = min(began, history.now)
    flips_since = sum(moment > started for moment, _ in history.manifests)
    event(f"{min(flips_since, 2)} flips since the search began")
    if flips_since >= 2:
        with pytest.raises(TwoFlips):
            history.visible(started)
    else:
        assert history.visible(started) == history.as_of(started)
