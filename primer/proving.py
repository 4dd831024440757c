"""Proving: where every piece of a document is, looked for now, or when and why each is gone."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from primer.workspace import Workspace
from primer_core.failures import PrimerError
from primer_core.ids import row_id
from primer_core.stored_states import DriveKind, PartEntry
from primer_resources.catalog.documents import KnownDocument
from primer_resources.catalog.purges import Proof, Purge
from primer_resources.catalog.stored_states import StoredState
from primer_resources.document_store.drive import Drive


class Standing(StrEnum):
    """Where a document stands. DELETED is one whose purge has yet to end; of an UNSTORED one nothing was kept since it came."""

    LIVING = "living"
    DELETED = "deleted"
    PURGED = "purged"
    UNSTORED = "unstored"


class Owner(StrEnum):
    """Whose a piece is: of what the document has now, of what it had before an edit and indexes may still show, or of nobody since its
    purge was begun."""

    PRESENT = "present"
    EARLIER = "earlier"
    FREED = "freed"


@dataclass(frozen=True, slots=True)
class Piece:
    """A body of a document. `state` is that of its manifest, with the reason where it is deleted; `is_there` whether the object was found
    just now, None where there is none to find, and False for one that was lost and has not been made again."""

    owner: Owner
    drive: str
    part: str
    sub_key: str
    state: str
    size: int
    sha256: str | None
    object_key: str | None
    is_there: bool | None
    written_by: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What can be shown of a document. `rows` are index version → index → rows that should be there and rows that are."""

    doc_id: str
    uri: str
    state: Standing
    copy_of: str | None
    pieces: tuple[Piece, ...]
    rows: dict[str, dict[str, dict[str, int]]]
    proofs: tuple[Proof, ...]

    @property
    def is_whole(self) -> bool:
        """Whether everything is where the catalog says."""
        rows_agree = all(counts["expected"] == counts["found"] for indexes in self.rows.values() for counts in indexes.values())
        return rows_agree and all(piece.is_there is not False for piece in self.pieces if piece.owner is not Owner.FREED)

    def to_json(self) -> dict[str, Any]:
        """Plain values, with stable field names."""
        return {
            "doc_id": self.doc_id,
            "uri": self.uri,
            "state": self.state,
            "copy_of": self.copy_of,
            "is_whole": self.is_whole,
            "pieces": [asdict(piece) for piece in self.pieces],
            "rows": self.rows,
            "proofs": [asdict(proof) for proof in self.proofs],
        }


def prove(workspace: Workspace, doc_id: str, uri: str) -> Evidence:
    """Look at every place where something of the document is or was. Raises PrimerError for a document that nothing is known of."""
    catalog = workspace.catalog
    known = catalog.documents.by_id([doc_id]).get(doc_id)
    if known is None:
        raise PrimerError(f"document {doc_id} is unknown")
    # From the living to the dead, so that what moves on meanwhile is seen once more and never missed.
    present = catalog.states.of_documents([doc_id]).get(doc_id)
    earlier = catalog.states.earlier_of(doc_id)
    purges = catalog.purges.of_document(doc_id)
    proofs = tuple(catalog.purges.proofs(doc_id))
    pieces = [] if present is None else _kept(workspace, present, Owner.PRESENT)
    for state in earlier:
        pieces += _kept(workspace, state, Owner.EARLIER)
    for purge in purges:
        pieces += _freed(workspace, purge)
    copy_of = None if known.canonical_doc_id == doc_id else known.canonical_doc_id
    standing = _standing(known, bool(present or earlier or purges), proofs)
    return Evidence(doc_id, uri, standing, copy_of, tuple(pieces), _rows(workspace, doc_id), proofs)


def _standing(known: KnownDocument, is_left: bool, proofs: Sequence[Proof]) -> Standing:
    if known.deleted_at is None:
        return Standing.LIVING
    if is_left:
        return Standing.DELETED
    # A proof of an earlier life says nothing of this one.
    return Standing.PURGED if any(proof.deleted_at >= known.deleted_at for proof in proofs) else Standing.UNSTORED


def _kept(workspace: Workspace, intake: StoredState, owner: Owner) -> list[Piece]:
    """The source bytes of a state, and what was made of its content."""
    store = workspace.store.of(intake.tenant_id)
    pieces = [_piece(store.intake, entry, owner) for _, entry in sorted(intake.manifest.entries.items())]
    for state in workspace.catalog.states.of_content(intake.tenant_id, intake.content_hash):
        pieces += [_piece(store.pipeline.drive, entry, owner) for _, entry in sorted(state.manifest.entries.items())]
    return pieces


def _freed(workspace: Workspace, purge: Purge) -> list[Piece]:
    """What a purge has yet to remove."""
    store = workspace.store.of(purge.tenant_id)
    drives = {DriveKind.INTAKE: store.intake, DriveKind.PIPELINE: store.pipeline.drive}
    entries = {entry.object_key: entry for content in purge.contents for entry in content.entries}
    freed = workspace.catalog.states.freed_by([purge.purge_id])
    return [_piece(drives[each.kind], entries[each.object_key], Owner.FREED) for each in freed if each.object_key in entries]


def _piece(drive: Drive, entry: PartEntry, owner: Owner) -> Piece:
    is_there = False if entry.is_lost else None if entry.object_key is None else drive.head(entry.object_key) is not None
    state = f"{entry.state} ({entry.deleted_reason})" if entry.deleted_reason else str(entry.state)
    by = f"{entry.written_by.stage} {entry.written_by.recipe}".strip()
    return Piece(owner, drive.place, entry.part, entry.sub_key, state, entry.size, entry.sha256, entry.object_key, is_there, by)


def _rows(workspace: Workspace, doc_id: str) -> dict[str, dict[str, dict[str, int]]]:
    """What the indexes hold of the rows that the document's manifest names."""
    catalog = workspace.catalog
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    bucket = catalog.documents.by_id([doc_id])[doc_id].bucket
    for version in catalog.deployments.open_versions():
        state = catalog.generations.states(version.name, [doc_id]).get(doc_id)
        if state is None or bucket is None:
            continue
        rows = [row_id(chunk, added) for chunk, added in state.manifest.items()]
        tools = workspace.toolkit.of(version)
        for name, there in (("vector", tools.vectors.present(rows)), ("keyword", tools.keywords.present(bucket, rows))):
            found[version.name][name] = {"expected": len(rows), "found": len(there)}
    return dict(found)
