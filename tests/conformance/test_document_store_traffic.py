"""How little goes between a document store and its drives. Bytes are counted where they go."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from primer_core.ids import content_hash
from primer_core.part_keys import CORE, ELEMENTS, chunk_set
from primer_core.stored_states import Part, PartKey, pipeline_state
from primer_resources.document_store.folder_drive import FolderDrive
from primer_resources.document_store.parts import chunks_body, parsed_bodies
from tests.counting_proxy import Traffic, counting_proxy
from tests.primer_resources.catalog.world import TENANT
from tests.radosgw import RadosGateway
from tests.store_stand import BYTES, CHUNK, DOC, Stand, Stands

MIB = 1 << 20
REQUEST = 4096
"""More than the head of any request or answer takes on the wire."""


@pytest.fixture(params=["folder", "radosgw"])
def counted(request: pytest.FixtureRequest, make_stand: Stands, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stand, Traffic]]:
    """A store with one content, and the bytes that go between it and its drives: of bodies in folders, all bytes on the wire else."""
    traffic = Traffic()
    if request.param == "folder":
        count_bodies(monkeypatch, traffic)
        made = make_stand("folder-sqlite", None)
        made.keep(BYTES)
        yield made, traffic
        return
    gateway: RadosGateway = request.getfixturevalue("radosgw")
    with counting_proxy(gateway.s3.url, traffic) as endpoint:
        made = make_stand("radosgw-sqlite", endpoint)
        made.keep(BYTES)
        yield made, traffic


def count_bodies(monkeypatch: pytest.MonkeyPatch, traffic: Traffic) -> None:
    """Count what folders are given and give."""

    def size(body: object) -> int:
        return body.stat().st_size if isinstance(body, Path) else len(body) if isinstance(body, bytes) else 0

    for name in ("create", "replace", "get", "get_range", "fetch"):
        plain = getattr(FolderDrive, name)

        def noted(drive: FolderDrive, key: str, *more: Any, _plain: Callable[..., Any] = plain, _name: str = name) -> Any:
            answer = _plain(drive, key, *more)
            if _name in ("create", "replace"):
                traffic.add(sent=size(more[0]))
            else:
                traffic.add(received=size(more[0] if _name == "fetch" else answer))
            return answer

        monkeypatch.setattr(FolderDrive, name, noted)


def full_document() -> dict[PartKey, bytes]:
    """A document of 1 MiB and two chunk sets."""
    parsed = replace(DOC, docling_json_zst=Random(1).randbytes(MIB))
    return {**parsed_bodies(parsed), chunk_set("c1"): chunks_body([CHUNK]), chunk_set("c2"): Random(2).randbytes(100_000)}


def test_a_part_is_read_without_the_rest(counted: tuple[Stand, Traffic]) -> None:
    stand, traffic = counted
    source = Random(3).randbytes(8 * MIB)
    stand.keep(source)
    of = content_hash(source)
    stand.tenant.put_parsed(of, "docling 2", replace(DOC, docling_json_zst=Random(1).randbytes(MIB)), "run")
    many = [replace(CHUNK, ordinal=number, text=f"{number} {CHUNK.text}") for number in range(400)]
    stand.tenant.put_chunks(of, "docling 2", "c1", many, "run")
    traffic.forget()
    assert stand.tenant.has_parsed(of, "docling 2")
    assert stand.tenant.has_chunks(of, "docling 2", "c1")
    assert (traffic.sent, traffic.received) == (0, 0), "the manifest answers"
    assert stand.tenant.get_chunks(of, "docling 2", "c1") == tuple(many)
    (entry,) = stand.tenant.pipeline.manifest(pipeline_state(TENANT, of, "docling 2")).masked([Part.CHUNKS])
    assert entry.size <= traffic.received < entry.size + REQUEST
    assert traffic.received < 0.02 * len(source)
    traffic.forget()
    read = stand.tenant.pipeline.read(pipeline_state(TENANT, of, "docling 2"), (CORE, ELEMENTS))
    assert set(read) == {CORE, ELEMENTS}
    assert 0 < traffic.received < 0.02 * len(source)


def test_a_full_save_after_one_changed_chunk_set_moves_that_alone(counted: tuple[Stand, Traffic]) -> None:
    stand, traffic = counted
    bodies = full_document()
    stand.save(bodies)
    before = stand.pipeline_keys()
    traffic.forget()
    stand.save(bodies)
    assert (traffic.sent, traffic.received) == (0, 0)
    bodies[chunk_set("c2")] = changed = Random(4).randbytes(100_000)
    stand.save(bodies)
    assert len(changed) <= traffic.sent < len(changed) + REQUEST
    assert traffic.received < REQUEST
    assert len(set(stand.pipeline_keys()) - set(before)) == 1
    assert stand.tenant.pipeline.read(stand.state(), tuple(Part)) == bodies


def test_what_another_state_has_is_copied_by_the_store_itself(counted: tuple[Stand, Traffic]) -> None:
    stand, traffic = counted
    bodies = full_document()
    stand.save(bodies, "docling 2")
    bodies[chunk_set("c1")] = changed = b"of the accepted pages"
    traffic.forget()
    stand.save(bodies, "accepted", base="docling 2")
    assert len(changed) <= traffic.sent < len(changed) + 16 * REQUEST
    assert traffic.received < 16 * REQUEST
    assert stand.tenant.pipeline.read(stand.state("accepted"), tuple(Part)) == bodies
    assert sorted((*stand.named("docling 2"), *stand.named("accepted"))) == stand.pipeline_keys(), "each state has objects of its own"
