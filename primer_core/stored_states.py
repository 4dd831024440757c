"""Stored states: whose bodies objects are, in which parts, and what can be said of them without reading one byte.

A state is what is kept of one subject at one node of a graph: in the intake graph of a tenant the subject is a document, in its pipeline
graph a content, since all copies of a document share what was made of it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from primer_core.ids import recipe_key

NAMESPACE = UUID("3f0c7a52-58d4-5c8e-9a55-6f1f2d0b7c11")
"""Of all node ids. Stored ids rest on it, so it must never change."""
INTAKE_NODE = "intake"
CONTENT_NODE = "content"


class DriveKind(StrEnum):
    """The two drives of a tenant: source bytes as they came, and what was made of them."""

    INTAKE = "intake"
    PIPELINE = "pipeline"


class Part(StrEnum):
    """The four parts of a state. CORE is what the file says of itself, BLOBS are bytes as they came (and pictures of pages to review),
    PARSED the document as it was parsed, CHUNKS a chunk set a recipe."""

    CORE = "core"
    BLOBS = "blobs"
    PARSED = "parsed"
    CHUNKS = "chunks"


class PartState(StrEnum):
    """Whether there is a body. An EMPTY one has no object; a DELETED one had one, and its hash and size are kept."""

    PRESENT = "present"
    EMPTY = "empty"
    DELETED = "deleted"


class DeletedReason(StrEnum):
    """Why a body is gone while its state stands. LOST: nobody deleted it, its object was not on its drive any more."""

    POST_PARSE_POLICY = "post_parse_policy"
    RTBF = "rtbf"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class StateIdentity:
    """Which state: `doc_id` is the document, or in a pipeline graph the content hash. No field may be blank."""

    doc_id: str
    node: str
    tenant_id: str
    graph: str

    @property
    def node_id(self) -> str:
        """The state's id, 32 hex digits: a name-based UUID over the four parts, each with its length, so that no two states meet."""
        parts = (self.doc_id, self.node, self.tenant_id, self.graph)
        return uuid5(NAMESPACE, "".join(f"{len(part.encode())}:{part}" for part in parts)).hex


def intake_state(tenant_id: str, doc_id: str) -> StateIdentity:
    """The state of a document's source bytes."""
    return StateIdentity(doc_id, INTAKE_NODE, tenant_id, f"{DriveKind.INTAKE}:{tenant_id}")


def earlier_state(tenant_id: str, doc_id: str, content_hash: str) -> StateIdentity:
    """The state of source bytes that a document had before, while they are still needed."""
    return StateIdentity(doc_id, f"{INTAKE_NODE}/{content_hash}", tenant_id, f"{DriveKind.INTAKE}:{tenant_id}")


def content_node(tenant_id: str, content_hash: str) -> str:
    """The node id under which a content's bytes lie on the intake drive: those that have it are states of their own."""
    return StateIdentity(content_hash, CONTENT_NODE, tenant_id, f"{DriveKind.INTAKE}:{tenant_id}").node_id


def pipeline_state(tenant_id: str, content_hash: str, output: str) -> StateIdentity:
    """The state of what was made of a content. `output` is the version of the parse's output (primer_core/reviews.py)."""
    return StateIdentity(content_hash, recipe_key(output), tenant_id, f"{DriveKind.PIPELINE}:{tenant_id}")


@dataclass(frozen=True, slots=True)
class WrittenBy:
    """Who wrote a part: the stage, the run, and the version string that shaped it."""

    stage: str
    run: str
    recipe: str


PartKey = tuple[Part, str]
"""A part and its sub-key: "" for a part of one object."""


@dataclass(frozen=True, slots=True)
class PartEntry:
    """What a manifest says of one object. `size` (bytes) and `sha256` are of the body, kept after it is gone; `object_key` is None unless
    it is PRESENT."""

    part: Part
    sub_key: str
    state: PartState
    size: int
    sha256: str | None
    updated_at: datetime
    object_key: str | None
    written_by: WrittenBy
    deleted_reason: DeletedReason | None = None

    @property
    def key(self) -> PartKey:
        """Which object of the state it is."""
        return self.part, self.sub_key

    def has_body_of(self, other: "PartEntry | None") -> bool:
        """Whether another entry is kept and has the same body."""
        return other is not None and (other.state, other.sha256) == (self.state, self.sha256) and other.state is not PartState.DELETED

    def deleted(self, reason: DeletedReason, at: datetime) -> "PartEntry":
        """The same without its body."""
        return replace(self, state=PartState.DELETED, object_key=None, deleted_reason=reason, updated_at=at)

    @property
    def is_lost(self) -> bool:
        """Whether the body is gone without anybody having deleted it."""
        return self.deleted_reason is DeletedReason.LOST

    def kept_again(self, object_key: str, at: datetime) -> "PartEntry":
        """The same with its body again, under another key."""
        return replace(self, state=PartState.PRESENT, object_key=object_key, deleted_reason=None, updated_at=at)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, for the catalog."""
        return {
            "part": self.part.value,
            "sub_key": self.sub_key,
            "state": self.state.value,
            "size": self.size,
            "sha256": self.sha256,
            "updated_at": self.updated_at.isoformat(),
            "object_key": self.object_key,
            "deleted_reason": None if self.deleted_reason is None else self.deleted_reason.value,
            "written_by": {"stage": self.written_by.stage, "run": self.written_by.run, "recipe": self.written_by.recipe},
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "PartEntry":
        """The entry back from the catalog's JSON."""
        reason = data["deleted_reason"]
        return PartEntry(
            Part(data["part"]),
            data["sub_key"],
            PartState(data["state"]),
            data["size"],
            data["sha256"],
            datetime.fromisoformat(data["updated_at"]),
            data["object_key"],
            WrittenBy(**data["written_by"]),
            None if reason is None else DeletedReason(reason),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """All entries of a state, by part and sub-key. A value: changes give a new one."""

    entries: Mapping[PartKey, PartEntry] = field(default_factory=dict)

    @staticmethod
    def of(entries: Iterable[PartEntry]) -> "Manifest":
        """A manifest of these entries; of two with one key the later counts."""
        return Manifest({entry.key: entry for entry in entries})

    def find(self, part: Part, sub_key: str = "") -> PartEntry | None:
        """One entry; None where the state never had it."""
        return self.entries.get((part, sub_key))

    def has(self, part: Part, sub_key: str = "") -> bool:
        """Whether the part is kept: its body, or the fact that it is empty."""
        entry = self.find(part, sub_key)
        return entry is not None and entry.state is not PartState.DELETED

    def masked(self, wanted: Collection[Part] | Collection[PartKey]) -> tuple[PartEntry, ...]:
        """The entries of these parts, or of these objects, in a stable order."""
        return tuple(entry for key, entry in sorted(self.entries.items()) if key in wanted or key[0] in wanted)

    def present(self) -> tuple[PartEntry, ...]:
        """The entries that have an object."""
        return tuple(entry for _, entry in sorted(self.entries.items()) if entry.state is PartState.PRESENT)

    def merged(self, entries: Iterable[PartEntry]) -> "Manifest":
        """With these entries in the place of those of the same keys."""
        return Manifest({**self.entries, **{entry.key: entry for entry in entries}})

    def without_object(self, object_key: str, at: datetime) -> "Manifest":
        """The same after an object was found to be lost; unchanged where no entry has it, since another took its place meanwhile."""
        return self.merged(entry.deleted(DeletedReason.LOST, at) for entry in self.present() if entry.object_key == object_key)

    def without_bodies(self, parts: Collection[Part], reason: DeletedReason, at: datetime) -> "Manifest":
        """The same after the bodies of these parts are deleted; what has none stays as it is."""
        return self.merged(
            entry.deleted(reason, at) for entry in self.entries.values() if entry.part in parts and entry.state is PartState.PRESENT
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Plain JSON, for the catalog."""
        return [entry.to_json() for _, entry in sorted(self.entries.items())]

    @staticmethod
    def from_json(data: Iterable[Mapping[str, Any]]) -> "Manifest":
        """The manifest back from the catalog's JSON."""
        return Manifest.of(PartEntry.from_json(each) for each in data)


@dataclass(frozen=True, slots=True)
class SavePlan:
    """What saving bodies does: those to write, and those that are stored already as they are. Both in a stable order."""

    write: tuple[PartKey, ...]
    keep: tuple[PartKey, ...]


def plan_save(manifest: Manifest, bodies: Mapping[PartKey, str]) -> SavePlan:
    """Compare bodies (key → SHA-256, "" for an empty one) with a manifest: only what differs is written."""

    def is_kept(key: PartKey) -> bool:
        entry = manifest.entries.get(key)
        if entry is None or entry.state is PartState.DELETED:
            return False
        return bodies[key] == ("" if entry.state is PartState.EMPTY else entry.sha256)

    return SavePlan(
        write=tuple(key for key in sorted(bodies) if not is_kept(key)),
        keep=tuple(key for key in sorted(bodies) if is_kept(key)),
    )
