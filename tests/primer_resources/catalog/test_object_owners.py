"""Who owns an object, on both databases: asked by key and streamed, each tenant for itself; and the newest look is the one that is kept."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import event

from primer_core.coherence import DriveCoherence, Owner, Tally
from primer_core.lanes import Lane
from primer_core.stored_states import DriveKind, Part, PartEntry, PartState, WrittenBy, pipeline_state
from primer_resources.catalog import object_owners
from primer_resources.catalog.contents import NewContent
from tests.primer_resources.catalog.world import HASHES, START, TENANT, World, drives_of

INTAKE, PIPELINE = DriveKind.INTAKE, DriveKind.PIPELINE
BY = WrittenBy("parse", "run", "p1")
OTHER = "rival"


def source_key(name: str, tenant_id: str = TENANT) -> str:
    return f"{HASHES[name][:2]}/{tenant_id}-{name}"


def save(world: World, name: str, *sub_keys: str, tenant_id: str = TENANT) -> list[str]:
    """A content with a pipeline state of so many objects, an empty part and a deleted one. Returns the keys of its objects."""
    catalog = world.catalog
    catalog.contents.add(NewContent(tenant_id, HASHES[name], 5, "text/plain", Lane.FAST, source_key(name, tenant_id)))
    identity = pipeline_state(tenant_id, HASHES[name], "p1")
    keys = [f"{identity.node_id[:2]}/{identity.node_id}/chunks/{sub_key}" for sub_key in sub_keys]
    gone = PartEntry(Part.BLOBS, "", PartState.DELETED, 1, "x", START, None, BY)
    empty = PartEntry(Part.CORE, "", PartState.EMPTY, 0, None, START, None, BY)
    entries = [
        PartEntry(Part.CHUNKS, sub_key, PartState.PRESENT, 5, sub_key, START, key, BY) for key, sub_key in zip(keys, sub_keys, strict=True)
    ]
    catalog.states.save(identity, HASHES[name], [*entries, empty, gone])
    return keys


@pytest.fixture
def filled(world: World) -> World:
    world.catalog.tenants.add(OTHER, drives_of(OTHER))
    return world


def test_an_owner_is_found_by_the_key_on_its_own_drive_and_tenant_alone(filled: World) -> None:
    owners = filled.catalog.object_owners
    mine, theirs = save(filled, "one", "a", "b"), save(filled, "one", "a", tenant_id=OTHER)
    (node, _) = mine[0].rsplit("/chunks/", 1)
    with filled.catalog.database.begin() as connection:
        filled.catalog.states.free(connection, TENANT, PIPELINE, [f"{node}/chunks/before", "elsewhere"])
        filled.catalog.states.free(connection, TENANT, INTAKE, ["freed-source"])
    asked = [*mine, *theirs, f"{node}/chunks/before", f"{node}/chunks/c", "elsewhere", "loose", source_key("one"), source_key("one", OTHER)]
    asked.append("freed-source")
    assert owners.of(TENANT, PIPELINE, asked) == {
        **dict.fromkeys(mine, Owner.LIVE),
        f"{node}/chunks/before": Owner.FREED,
        "elsewhere": Owner.FREED,
    }
    assert owners.of(TENANT, INTAKE, asked) == {source_key("one"): Owner.LIVE, "freed-source": Owner.FREED}
    assert owners.of(OTHER, PIPELINE, asked) == dict.fromkeys(theirs, Owner.LIVE)
    assert owners.of(OTHER, INTAKE, asked) == {source_key("one", OTHER): Owner.LIVE}
    assert owners.of(TENANT, INTAKE, []) == {}


def test_a_live_owner_counts_even_where_the_key_is_to_be_removed(filled: World) -> None:
    (key,) = save(filled, "one", "a")
    with filled.catalog.database.begin() as connection:
        filled.catalog.states.free(connection, TENANT, PIPELINE, [key])
    assert filled.catalog.object_owners.of(TENANT, PIPELINE, [key]) == {key: Owner.LIVE}


def test_all_owned_objects_stream_by_in_pages_in_the_order_of_segments(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_owners, "PAGE", 2)
    save(filled, "two", "a", tenant_id=OTHER)
    saved = {name: save(filled, name, *"abc"[: index + 1]) for index, name in enumerate(HASHES)}
    owners = filled.catalog.object_owners
    pages = list(owners.pages(TENANT, PIPELINE))
    told = [each for page in pages for each in page]
    assert len(pages) == 2
    assert {(each.key, each.content_hash) for each in told} == {(key, HASHES[name]) for name, keys in saved.items() for key in keys}
    assert {(each.part, each.sub_key) for each in told} == {(Part.CHUNKS, sub_key) for sub_key in "abc"}
    sources = [each for page in owners.pages(TENANT, INTAKE) for each in page]
    assert {(each.key, each.content_hash) for each in sources} == {(source_key(name), HASHES[name]) for name in HASHES}
    for stream in (told, sources):
        assert [each.key[:2] for each in stream] == sorted(each.key[:2] for each in stream)


@pytest.mark.parametrize("kind", [INTAKE, PIPELINE])
def test_a_page_of_keys_costs_a_few_statements_whatever_is_in_the_catalog(filled: World, kind: DriveKind) -> None:
    keys = [key for name in HASHES for key in save(filled, name, "a", "b")] + [source_key(name) for name in HASHES]
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        statements.append(statement)

    event.listen(filled.catalog.database.engine, "before_cursor_execute", note)
    filled.catalog.object_owners.of(TENANT, kind, keys)
    event.remove(filled.catalog.database.engine, "before_cursor_execute", note)
    assert len([each for each in statements if each.startswith("SELECT")]) == 2


def test_the_newest_look_at_each_drive_is_kept(filled: World) -> None:
    kept = filled.catalog.coherence
    first = DriveCoherence(TENANT, PIPELINE, "/p", START, objects=5, orphans=Tally(1, 2, ("a",)))
    later = replace(first, checked_at=START + timedelta(hours=1), objects=7)
    intake, other = replace(first, kind=INTAKE), replace(first, tenant_id=OTHER, fault="gone")
    for look in (first, intake, other):
        kept.keep(look)
    assert kept.newest() == [intake, first, other]
    kept.keep(later)
    kept.keep(first)
    assert kept.newest(TENANT) == [intake, later]
    assert kept.newest("nobody") == []
