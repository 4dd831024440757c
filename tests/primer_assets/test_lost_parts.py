"""Objects that are lost from a drive which stands: what was made of them is made again, and no other document waits for that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from primer.proving import prove
from primer.replaying import Replaying
from primer_core.ids import content_hash
from primer_core.replay import Selectors
from primer_core.stages import Operation
from primer_core.stored_states import Manifest, Part
from tests.deployment import Deployment, workspace

NAME = "docs"
TEXTS = {name: f"# {name}\n\nWhat only {name} says.\n" for name in ("a.md", "b.md", "c.md")}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Deployment]:
    with workspace(tmp_path / "home", buckets=1, purge_grace="0s") as space:
        made = Deployment(space, tmp_path / "docs", NAME)
        for path, text in TEXTS.items():
            made.write(path, text)
        assert made.sync().counts["indexed"] == 3
        yield made


def doc_id(place: Deployment, path: str) -> str:
    return place.workspace.catalog.documents.by_path(NAME, [path])[path].doc_id


def output(place: Deployment, path: str) -> Manifest:
    """The manifest of what was made of a document."""
    (state,) = place.workspace.catalog.states.of_content(place.workspace.settings.tenant, content_hash(TEXTS[path].encode()))
    return state.manifest


def lose(place: Deployment, path: str, *parts: Part, source: bool = False) -> None:
    """Take objects of a document from their drives behind Primer's back."""
    store = place.workspace.store.of(place.workspace.settings.tenant)
    keys = [entry.object_key for entry in output(place, path).present() if entry.part in parts and entry.object_key]
    assert keys or source
    store.pipeline.drive.delete(keys)
    if source:
        key = place.workspace.catalog.contents.object_of(store.tenant_id, content_hash(TEXTS[path].encode()))
        assert key is not None
        store.intake.delete([key])


def replay(place: Deployment, stage: str, *paths: str) -> dict[str, Any]:
    selectors = Selectors(doc_ids=tuple(doc_id(place, path) for path in paths))
    replaying = Replaying.of(place.workspace.catalog, place.workspace.settings.tenant, selectors, stage, True)
    assert len(list(replaying.run())) == len(paths)
    return replaying.totals()


def is_settled(place: Deployment) -> bool:
    """Whether nothing waits, nothing is dead, the indexes agree, and every piece of every document is where it should be."""
    space = place.workspace
    pieces = all(prove(space, doc_id(place, path), path).is_whole for path in TEXTS)
    return pieces and space.catalog.queue.unfinished() == 0 and place.dead() == {} and place.reconcile().agrees


@pytest.mark.parametrize("stage", ["chunk", "embed", "write"])
def test_a_chunk_set_that_was_lost_is_made_again_and_holds_up_nobody(place: Deployment, stage: str) -> None:
    lose(place, "a.md", Part.CHUNKS)
    replay(place, stage, *TEXTS)
    done = place.sync().counts
    assert (done["parsed"], done["embedded"], done["failed"]) == (0, 0, 0)
    assert is_settled(place)


def test_a_parsed_document_that_was_lost_with_its_chunk_set_is_parsed_again(place: Deployment) -> None:
    lose(place, "a.md", Part.CHUNKS, Part.PARSED)
    replay(place, "write", *TEXTS)
    assert place.sync().counts["parsed"] == 1
    assert is_settled(place)


def test_a_document_whose_source_bytes_were_lost_is_asked_for_again_by_itself(place: Deployment) -> None:
    lose(place, "a.md", Part.CHUNKS, Part.PARSED, source=True)
    replay(place, "write", *TEXTS)
    place.sync()
    assert place.dead() in ({"a.md": "bytes_lost"}, {})
    place.sync()
    assert is_settled(place)
    assert place.search("what only a says", k=1)


def test_source_bytes_that_are_lost_here_and_at_the_source_are_told_as_such(place: Deployment) -> None:
    tenant = place.workspace.settings.tenant
    lose(place, "a.md", Part.CHUNKS, Part.PARSED, source=True)
    store, catalog = place.workspace.store.of(tenant), place.workspace.catalog
    key = catalog.contents.object_of(tenant, content_hash(TEXTS["a.md"].encode()))
    assert key is not None
    catalog.states.lose_source(tenant, content_hash(TEXTS["a.md"].encode()), key)
    for entry in output(place, "a.md").present():
        if entry.object_key is not None and store.pipeline.drive.head(entry.object_key) is None:
            (state,) = catalog.states.of_content(tenant, content_hash(TEXTS["a.md"].encode()))
            catalog.states.lose(state.node_id, entry.object_key)
    evidence = prove(place.workspace, doc_id(place, "a.md"), "a.md")
    lost = {(piece.part, piece.state) for piece in evidence.pieces if piece.is_there is False}
    assert lost == {("blobs", "deleted (lost)"), ("parsed", "deleted (lost)"), ("chunks", "deleted (lost)")}
    assert not evidence.is_whole
    assert replay(place, "parse", "a.md")["actions"]["fetch"] == 1
    gone = doc_id(place, "a.md")
    (place.folder / "a.md").unlink()
    place.sync()
    (proof,) = catalog.purges.proofs(gone)
    assert (proof.looked_at["cached_vectors"], proof.looked_at["unread_chunk_sets"]) == (0, 1)


def test_a_permission_change_whose_chunk_set_was_lost_is_written_in_the_end(place: Deployment) -> None:
    lose(place, "a.md", Part.CHUNKS)
    catalog = place.workspace.catalog
    source = catalog.sources.find(NAME)
    assert source is not None

    from primer_resources.catalog.jobs import NewJob

    document = catalog.documents.by_path(NAME, ["a.md"])["a.md"]
    change = NewJob(document.doc_id, NAME, document.source_version, None, document.bucket or "", "access", Operation.ACL, catalog.now())
    with catalog.database.begin() as connection:
        catalog.jobs.add_rewrite(connection, change, ["v1"])
    place.sync()
    assert is_settled(place)


def test_nothing_is_called_lost_on_a_drive_that_is_not_there_or_is_empty(place: Deployment) -> None:
    drive = Path(place.workspace.store.of(place.workspace.settings.tenant).pipeline.drive.place)
    away = drive.with_name("away")
    drive.rename(away)
    before = {path: output(place, path) for path in TEXTS}
    replay(place, "write", *TEXTS)
    for is_empty in (False, True):
        if is_empty:
            drive.mkdir()
        with pytest.raises(Exception, match=r"is not there|has no object"):
            place.sync()
        assert {path: output(place, path) for path in TEXTS} == before
    drive.rmdir()
    away.rename(drive)
    place.sync()
    assert is_settled(place)
