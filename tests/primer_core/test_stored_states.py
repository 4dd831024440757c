from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.ids import content_hash
from primer_core.stored_states import (
    DeletedReason,
    DriveKind,
    Manifest,
    Part,
    PartEntry,
    PartKey,
    PartState,
    StateIdentity,
    WrittenBy,
    content_node,
    earlier_state,
    intake_state,
    pipeline_state,
    plan_save,
)

HASH = content_hash(b"the bytes")
LATER = datetime(2026, 5, 6, 7, 8, 9, 10, tzinfo=UTC)

names = st.text("ab:1/", min_size=1, max_size=4)
identities = st.builds(StateIdentity, names, names, names, names)
keys: st.SearchStrategy[PartKey] = st.tuples(st.sampled_from(Part), st.sampled_from(("", "one", "two")))
written = st.builds(WrittenBy, st.sampled_from(("parse", "chunk")), st.text(max_size=5), st.text(max_size=5))


@st.composite
def entries(draw: st.DrawFn) -> PartEntry:
    """An entry as a save or a deletion leaves it."""
    (part, sub_key), state = draw(keys), draw(st.sampled_from(PartState))
    is_empty = state is PartState.EMPTY
    return PartEntry(
        part,
        sub_key,
        state,
        0 if is_empty else draw(st.integers(1, 1 << 40)),
        None if is_empty else draw(st.sampled_from("abc")) * 64,
        draw(st.datetimes(timezones=st.just(UTC))),
        draw(st.text("xyz/", min_size=1, max_size=5)) if state is PartState.PRESENT else None,
        draw(written),
        draw(st.sampled_from(DeletedReason)) if state is PartState.DELETED else None,
    )


manifests = st.lists(entries(), max_size=8).map(Manifest.of)


def test_node_ids_are_stored_and_never_change() -> None:
    made = {
        "intake": intake_state("acme", "doc-1").node_id,
        "earlier": earlier_state("acme", "doc-1", HASH).node_id,
        "content": content_node("acme", HASH),
        "pipeline": pipeline_state("acme", HASH, "docling 2").node_id,
    }
    assert made == {
        "intake": "89dde9135d0d5353b25d54c0ef9f2c68",
        "earlier": "3b82656d505c560c8942b9433c072d90",
        "content": "be2fd034db4e5f19bb36b8c0d687592e",
        "pipeline": "a2a20cbbd2745a0e9a8177bb67857b4d",
    }


@given(identities, identities)
def test_two_states_never_share_a_node_id(one: StateIdentity, other: StateIdentity) -> None:
    assert (one.node_id == other.node_id) == (one == other)


def test_a_part_of_an_identity_ends_where_its_length_says() -> None:
    words = ("a", "b", "ab", "1:a", "a1:b", "", "é", "2:é")
    every = [StateIdentity(*parts) for parts in product(words, repeat=4)]
    assert len({identity.node_id for identity in every}) == len(every)


def test_the_graphs_of_a_tenant_and_of_two_tenants_never_meet() -> None:
    made = [
        identity
        for tenant in ("acme", "acme2")
        for identity in (
            intake_state(tenant, HASH),
            earlier_state(tenant, HASH, HASH),
            pipeline_state(tenant, HASH, "docling 2"),
            pipeline_state(tenant, HASH, "docling 3"),
        )
    ]
    ids = [identity.node_id for identity in made] + [content_node(tenant, HASH) for tenant in ("acme", "acme2")]
    assert len(set(ids)) == len(ids)
    assert [identity.graph for identity in made[:3]] == ["intake:acme", "intake:acme", "pipeline:acme"]
    assert [str(kind) for kind in DriveKind] == ["intake", "pipeline"]


@given(manifests)
def test_a_manifest_comes_back_from_its_json_as_it_was(manifest: Manifest) -> None:
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert Manifest.from_json(reversed(manifest.to_json())).to_json() == manifest.to_json(), "the order of entries is stable"


def test_the_json_of_an_entry_is_stored_and_never_changes() -> None:
    entry = PartEntry(Part.CHUNKS, "c1", PartState.PRESENT, 7, "a" * 64, LATER, "ab/x.parquet", WrittenBy("chunk", "run-1", "hybrid 2"))
    common = {
        "part": "chunks",
        "sub_key": "c1",
        "size": 7,
        "sha256": "a" * 64,
        "updated_at": "2026-05-06T07:08:09.000010+00:00",
        "written_by": {"stage": "chunk", "run": "run-1", "recipe": "hybrid 2"},
    }
    assert entry.to_json() == common | {"state": "present", "object_key": "ab/x.parquet", "deleted_reason": None}
    gone = entry.deleted(DeletedReason.RTBF, LATER)
    assert gone.to_json() == common | {"state": "deleted", "object_key": None, "deleted_reason": "rtbf"}


@given(manifests, st.sets(st.sampled_from(Part)), st.sets(keys))
def test_a_mask_gives_what_was_asked_for_and_nothing_else(manifest: Manifest, parts: set[Part], wanted: set[PartKey]) -> None:
    assert {entry.key for entry in manifest.masked(parts)} == {key for key in manifest.entries if key[0] in parts}
    assert {entry.key for entry in manifest.masked(wanted)} == manifest.entries.keys() & wanted
    assert [entry.key for entry in manifest.masked(tuple(Part))] == sorted(manifest.entries)


@given(manifests, st.lists(entries(), max_size=4))
def test_merging_puts_entries_in_and_leaves_all_others_as_they_were(manifest: Manifest, new: list[PartEntry]) -> None:
    merged = manifest.merged(new)
    latest = {entry.key: entry for entry in new}
    assert merged.entries == {key: latest.get(key, entry) for key, entry in {**manifest.entries, **latest}.items()}
    assert manifest.merged(()) == manifest


@given(manifests, st.dictionaries(keys, st.sampled_from(("", "a" * 64, "b" * 64, "d" * 64)), max_size=6))
def test_a_save_writes_what_differs_and_nothing_that_is_kept(manifest: Manifest, bodies: dict[PartKey, str]) -> None:
    plan = plan_save(manifest, bodies)
    assert sorted((*plan.write, *plan.keep)) == sorted(bodies)
    assert list(plan.write) == sorted(plan.write)
    for key in plan.keep:
        entry = manifest.entries[key]
        assert manifest.has(*key)
        assert (entry.sha256 or "") == bodies[key]
    for key in plan.write:
        kept = manifest.find(*key)
        assert kept is None or kept.state is PartState.DELETED or (kept.sha256 or "") != bodies[key]
    stored = manifest.merged(_stored(key, bodies[key]) for key in plan.write)
    assert plan_save(stored, bodies).write == (), "what was saved is kept the next time"


def _stored(key: PartKey, sha256: str) -> PartEntry:
    by = WrittenBy("parse", "run", "1")
    if not sha256:
        return PartEntry(*key, PartState.EMPTY, 0, None, LATER, None, by)
    return PartEntry(*key, PartState.PRESENT, 1, sha256, LATER, "key", by)


@given(entries(), entries())
def test_two_entries_have_one_body_only_while_both_are_kept(one: PartEntry, other: PartEntry) -> None:
    is_same = one.state is other.state is not PartState.DELETED and one.sha256 == other.sha256
    assert one.has_body_of(other) == other.has_body_of(one) == is_same
    assert not one.has_body_of(None)


@given(manifests, st.sets(st.sampled_from(Part)), st.sampled_from(DeletedReason))
def test_a_body_goes_and_its_hash_and_size_stay(manifest: Manifest, parts: set[Part], reason: DeletedReason) -> None:
    after = manifest.without_bodies(parts, reason, LATER)
    for key, entry in manifest.entries.items():
        if entry.part in parts and entry.state is PartState.PRESENT:
            gone = replace(entry, state=PartState.DELETED, object_key=None, deleted_reason=reason, updated_at=LATER)
            assert after.entries[key] == gone
            assert not after.has(*key)
        else:
            assert after.entries[key] == entry
    assert all(entry.part not in parts for entry in after.present())
    assert after.without_bodies(parts, reason, LATER) == after


@pytest.mark.parametrize("state", PartState)
def test_an_empty_part_is_had_and_a_deleted_one_is_not(state: PartState) -> None:
    manifest = Manifest.of([PartEntry(Part.CORE, "", state, 0, None, LATER, None, WrittenBy("parse", "run", "1"))])
    assert manifest.has(Part.CORE) == (state is not PartState.DELETED)
    assert not manifest.has(Part.BLOBS)
    assert manifest.find(Part.BLOBS) is None
