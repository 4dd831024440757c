"""The document store: source bytes on a tenant's intake drive, and what was made of them on its pipeline drive.

Source bytes are kept once a content, whatever documents have it. What was parsed and chunked is a state of the content, one for each way in
which it was parsed. Whether something is there is answered from the catalog, without asking a drive.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from primer_core.chunks import Chunk
from primer_core.elements import ParsedDocument
from primer_core.failures import DocumentFault, Reason, SystemFault
from primer_core.ids import EMPTY_CONTENT
from primer_core.lanes import Lane
from primer_core.part_keys import DOCUMENT, ELEMENTS, SOURCE, chunk_set, picture
from primer_core.stored_states import DriveKind, PartKey, WrittenBy, content_node, pipeline_state
from primer_resources.catalog.contents import Contents, NewContent
from primer_resources.catalog.stored_states import StoredStates
from primer_resources.clock import Clock
from primer_resources.document_store.drive import Drive
from primer_resources.document_store.drives import TenantDrives
from primer_resources.document_store.parts import PARSED, chunks_body, parsed_bodies, to_chunks, to_parsed
from primer_resources.document_store.states import SAVE_TIME, StateStore, keep_standing, new_key

PARSE_STAGE = "parse"
CHUNK_STAGE = "chunk"


class PartGone(SystemFault):
    """A body that a stage reads is not kept any more, as the catalog knows already."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A file that a connector fetched: its hash, size (bytes), kind, and the lane that it is to be parsed in."""

    path: Path
    content_hash: str
    size: int
    mime: str
    lane: Lane


class DocumentStore:
    """The stores of all tenants."""

    def __init__(self, contents: Contents, states: StoredStates, drives: TenantDrives, clock: Clock, random: Random) -> None:
        self._contents = contents
        self._states = states
        self._drives = drives
        self._clock = clock
        self._random = random

    def of(self, tenant_id: str) -> "TenantStore":
        """The store of a tenant. Raises PrimerError for one that is unknown, inactive or without drives."""
        intake, pipeline = (self._drives.of(tenant_id, kind) for kind in (DriveKind.INTAKE, DriveKind.PIPELINE))
        return TenantStore(tenant_id, intake, StateStore(pipeline, self._states, self._clock, self._random), self._contents)


@dataclass(frozen=True, slots=True)
class TenantStore:
    """Bodies of one tenant. Raises SystemFault where a drive itself fails: no document is to blame for that."""

    tenant_id: str
    intake: Drive
    pipeline: StateStore
    contents: Contents

    def keep(self, file: Arrived, force: bool = False) -> None:
        """Keep the bytes of a content, once: where they are known, only whether they are still there is looked at. Bytes that were deleted
        after they were indexed are stored anew.

        For an hour nobody frees them, in which a document is to be given the content. With `force` they are written again all the same,
        and the drive checks what it got.
        """
        while file.content_hash == EMPTY_CONTENT:  # nothing to store: the row says that it is empty
            empty = NewContent(self.tenant_id, file.content_hash, 0, file.mime, file.lane, None)
            if self.contents.add(empty) or self.contents.touch(self.tenant_id, file.content_hash, None):
                return
        while True:
            key = self.contents.object_of(self.tenant_id, file.content_hash)
            if key is None:
                key = new_key(content_node(self.tenant_id, file.content_hash), SOURCE, self.pipeline.random)
                began = self.pipeline.clock.now()
                self.intake.create(key, file.path)
                content = NewContent(self.tenant_id, file.content_hash, file.size, file.mime, file.lane, key)
                if self.contents.add(content) or self.pipeline.states.bring_back(self.tenant_id, file.content_hash, key):
                    if self.pipeline.clock.now() - began > SAVE_TIME:
                        keep_standing(self.intake, key, file.path, partial(self._has, file.content_hash, key))
                    return
                self.intake.delete([key])
                continue
            # Touched before it is looked at: nobody frees the content now, so what is written below has an owner.
            if not self.contents.touch(self.tenant_id, file.content_hash, key):
                continue
            if force:
                self.intake.replace(key, file.path)
            elif self.intake.head(key) is None:
                self.intake.create(key, file.path)
            return

    def _has(self, content_hash: str, key: str) -> bool:
        return self.contents.object_of(self.tenant_id, content_hash) == key

    def fetch_content(self, content_hash: str, target: Path) -> None:
        """Copy source bytes to a private file, checking the hash on the way. Raises ObjectGone where they are not on their drive, PartGone
        where that is known, SystemFault where they differ, and DocumentFault where they were deleted after they were indexed."""
        if content_hash == EMPTY_CONTENT:
            target.write_bytes(b"")
            return
        key = self.contents.object_of(self.tenant_id, content_hash)
        if key is None and self.pipeline.states.is_source_lost(self.tenant_id, content_hash):
            raise PartGone(f"the source bytes of content {content_hash[:12]} were lost from drive {self.intake.place}")
        if key is None and self.contents.is_known(self.tenant_id, content_hash):
            raise DocumentFault(
                Reason.BYTES_DELETED, f"the source bytes of content {content_hash[:12]} were deleted after they were indexed"
            )
        if key is None:
            raise SystemFault(f"content {content_hash[:12]} of tenant {self.tenant_id} is in no catalog row; sync its source in full")
        if self.intake.fetch(key, target) != content_hash:
            raise SystemFault(f"object {key} on drive {self.intake.place} holds other bytes than its content; restore it from a backup")

    def put_parsed(self, content_hash: str, version: str, parsed: ParsedDocument, run: str, base: str | None = None) -> None:
        """Keep a parsed document, as the output of a version. Parts that another output, `base`, of the same content has are copied."""
        like = None if base is None or base == version else pipeline_state(self.tenant_id, content_hash, base)
        by = WrittenBy(PARSE_STAGE, run, version)
        self.pipeline.save(pipeline_state(self.tenant_id, content_hash, version), content_hash, parsed_bodies(parsed), by, like)

    def has_parsed(self, content_hash: str, version: str) -> bool:
        """Whether the content was parsed to this output, whole."""
        manifest = self.pipeline.manifest(pipeline_state(self.tenant_id, content_hash, version))
        return manifest.has(*DOCUMENT) and manifest.has(*ELEMENTS)

    def get_parsed(self, content_hash: str, version: str) -> ParsedDocument:
        """A parsed document. Raises ObjectGone or PartGone where it is not kept, SystemFault where it is damaged."""
        bodies = self.pipeline.read(pipeline_state(self.tenant_id, content_hash, version), PARSED)
        self._require(bodies, (DOCUMENT, ELEMENTS), content_hash)
        return to_parsed(bodies)

    def get_document(self, content_hash: str, version: str) -> bytes:
        """A parsed content's DoclingDocument, zstd-compressed JSON, without its elements. Raises as `get_parsed`."""
        return self._body(content_hash, version, DOCUMENT)

    def put_chunks(self, content_hash: str, version: str, chunker_version: str, chunks: Iterable[Chunk], run: str) -> None:
        """Keep a chunk set that was made of an output."""
        by = WrittenBy(CHUNK_STAGE, run, chunker_version)
        bodies = {chunk_set(chunker_version): chunks_body(chunks)}
        self.pipeline.save(pipeline_state(self.tenant_id, content_hash, version), content_hash, bodies, by)

    def has_chunks(self, content_hash: str, version: str, chunker_version: str) -> bool:
        """Whether the chunk set is there."""
        return self.pipeline.manifest(pipeline_state(self.tenant_id, content_hash, version)).has(*chunk_set(chunker_version))

    def get_chunks(self, content_hash: str, version: str, chunker_version: str) -> tuple[Chunk, ...]:
        """A chunk set, in order. Raises as `get_parsed`."""
        return to_chunks(self._body(content_hash, version, chunk_set(chunker_version)))

    def put_picture(self, content_hash: str, version: str, page: int, region: int, png: bytes, run: str) -> str:
        """Keep the picture of a page to review, or of a region of it. Returns the object's key."""
        by, key = WrittenBy(PARSE_STAGE, run, version), picture(page, region)
        manifest = self.pipeline.save(pipeline_state(self.tenant_id, content_hash, version), content_hash, {key: png}, by)
        return manifest.entries[key].object_key or ""

    def get_picture(self, key: str) -> bytes:
        """A picture by its key. Raises SystemFault where it is gone."""
        return self.pipeline.drive.get(key)

    def locate(self, key: str) -> str:
        """Where an object of the pipeline drive is, for people: a path in a local folder."""
        return f"{self.pipeline.drive.place}/{key}"

    def _body(self, content_hash: str, version: str, key: PartKey) -> bytes:
        bodies = self.pipeline.read(pipeline_state(self.tenant_id, content_hash, version), (key,))
        self._require(bodies, (key,), content_hash)
        return bodies[key]

    def _require(self, bodies: Iterable[PartKey], wanted: Iterable[PartKey], content_hash: str) -> None:
        there = set(bodies)
        for part, sub_key in wanted:
            if (part, sub_key) not in there:
                raise PartGone(
                    f"content {content_hash[:12]} of tenant {self.tenant_id} has no {part} {sub_key} any more; "
                    "`primer replay --doc DOC --to-stage parse --apply` makes it again"
                )
