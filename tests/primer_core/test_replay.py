"""The verdict of a replay is a function of manifests: what a stage needs decides, then whether anybody can be asked."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.part_keys import CORE, DOCUMENT, ELEMENTS, SOURCE, chunk_set
from primer_core.replay import Judgement, Kept, ReplayVerdict, judge_replay, parts_needed
from primer_core.stages import CHUNK, EMBED, PARSE, STAGES, WRITE, Stage
from primer_core.stored_states import DeletedReason, Manifest, PartEntry, PartKey, PartState, WrittenBy

CHUNKER = "hybrid;1"
AT = datetime(2026, 1, 1, tzinfo=UTC)
POLICY, FORGOTTEN = DeletedReason.POST_PARSE_POLICY, DeletedReason.RTBF
OUTPUT_KEYS = (CORE, DOCUMENT, ELEMENTS, chunk_set(CHUNKER), chunk_set("another;1"))


def entry(key: PartKey, state: PartState, reason: DeletedReason = POLICY) -> PartEntry:
    present = PartEntry(*key, PartState.PRESENT, 1, "aa", AT, f"ab/{key[1]}", WrittenBy("stage", "run", "recipe"))
    if state is PartState.DELETED:
        return present.deleted(reason, AT)
    return present if state is PartState.PRESENT else PartEntry(*key, PartState.EMPTY, 0, None, AT, None, present.written_by)


def kept(*entries: PartEntry, lives: bool = True, source_stands: bool = True) -> Kept:
    intake = [each for each in entries if each.key == SOURCE]
    return Kept(Manifest.of(intake), Manifest.of(set(entries) - set(intake)), CHUNKER, lives, source_stands)


def whole(state: PartState = PartState.PRESENT) -> list[PartEntry]:
    return [entry(key, state) for key in (SOURCE, *OUTPUT_KEYS)]


entries = st.builds(entry, st.sampled_from((SOURCE, *OUTPUT_KEYS)), st.sampled_from(PartState), st.sampled_from(DeletedReason))
keeps = st.builds(
    lambda found, lives, stands: kept(*Manifest.of(found).entries.values(), lives=lives, source_stands=stands),
    st.lists(entries, max_size=8),
    st.booleans(),
    st.booleans(),
)
stages = st.sampled_from(STAGES)


@given(stages, keeps)
def test_a_document_is_replayable_just_where_it_lives_and_the_stage_has_all_it_needs(stage: Stage, held: Kept) -> None:
    manifest = held.intake if stage is PARSE else held.output
    lacks = [key for key in parts_needed(stage, CHUNKER) if not manifest.has(*key)]
    judged = judge_replay(stage, held)
    assert (judged.verdict is ReplayVerdict.REPLAYABLE) == (held.lives and not lacks)
    assert len(judged.missing) == len(lacks)


@given(stages, keeps)
def test_a_source_is_asked_only_for_what_lives_and_was_not_forgotten(stage: Stage, held: Kept) -> None:
    verdict = judge_replay(stage, held).verdict
    every = (*held.intake.entries.values(), *held.output.entries.values())
    if verdict is ReplayVerdict.SOURCE_RECEIPT:
        assert held.lives
        assert held.source_stands
        assert all(each.deleted_reason is not FORGOTTEN for each in every)
    if verdict is ReplayVerdict.BODY_MISSING and held.lives:
        assert not held.source_stands or any(each.deleted_reason is FORGOTTEN for each in every)


@given(stages, keeps)
def test_the_stage_that_is_named_instead_comes_before_and_can_be_replayed(stage: Stage, held: Kept) -> None:
    judged = judge_replay(stage, held)
    if judged.instead is None:
        return
    assert judged.verdict is not ReplayVerdict.REPLAYABLE
    named = next(each for each in STAGES if each.name == judged.instead)
    assert STAGES.index(named) < STAGES.index(stage)
    assert judge_replay(named, held).verdict is ReplayVerdict.REPLAYABLE


@given(stages, keeps, entries)
def test_a_body_more_never_makes_a_verdict_worse(stage: Stage, held: Kept, more: PartEntry) -> None:
    order = list(ReplayVerdict)
    present = entry(more.key, PartState.PRESENT)
    intake, output = (held.intake.merged([present]), held.output) if more.key == SOURCE else (held.intake, held.output.merged([present]))
    richer = Kept(intake, output, CHUNKER, held.lives, held.source_stands)
    assert order.index(judge_replay(stage, richer).verdict) <= order.index(judge_replay(stage, held).verdict)


@pytest.mark.parametrize("stage", STAGES)
def test_an_empty_part_is_kept_like_any_other(stage: Stage) -> None:
    assert judge_replay(stage, kept(*whole(PartState.EMPTY))) == Judgement(ReplayVerdict.REPLAYABLE)


@pytest.mark.parametrize(
    ("stage", "gone", "missing", "instead"),
    [
        (PARSE, SOURCE, ("blobs",), None),
        (CHUNK, DOCUMENT, ("parsed/document",), "parse"),
        (EMBED, chunk_set(CHUNKER), (f"chunks/{chunk_set(CHUNKER)[1]}",), "chunk"),
        (WRITE, chunk_set(CHUNKER), (f"chunks/{chunk_set(CHUNKER)[1]}",), "chunk"),
    ],
)
def test_what_is_missing_is_named_with_the_stage_to_begin_at_instead(
    stage: Stage, gone: PartKey, missing: tuple[str, ...], instead: str | None
) -> None:
    rest = [each for each in whole() if each.key != gone]
    assert judge_replay(stage, kept(*rest)) == Judgement(ReplayVerdict.SOURCE_RECEIPT, missing, instead)
    deleted = kept(*rest, entry(gone, PartState.DELETED))
    assert judge_replay(stage, deleted) == Judgement(ReplayVerdict.SOURCE_RECEIPT, missing, instead)


def test_a_deleted_document_is_never_replayed_though_its_bodies_are_still_there() -> None:
    assert judge_replay(WRITE, kept(*whole(), lives=False)).verdict is ReplayVerdict.BODY_MISSING
