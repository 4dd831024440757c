"""Proving: where every piece of a document is, looked for now, or when and why each is gone."""

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from primer.workspace import Workspace
from primer_core.failures import PrimerError
from primer_core.ids import row_id
from primer_core.stored_states import DriveKind, PartEntry
from primer_resources.catalog.documents import KnownDocument
from primer_resources.catalog.purges import Proof
from primer_resources.document_store.drive import Drive


@dataclass(frozen=True, slots=True)
class Piece:
    """A body of a document. `state` is that of its manifest, with the reason where it is deleted; `is_there` whether the object was found
    just now, None where there is none to find, and False for one that was lost and has not been made again."""

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
    """What can be shown of a document. `state` is living, deleted (its purge has yet to end), or purged. `rows` are index version →
    index → rows that should be there and rows that are."""

    doc_id: str
    uri: str
    state: str
    copy_of: str | None
    pieces: tuple[Piece, ...]
    rows: dict[str, dict[str, dict[str, int]]]
    proofs: tuple[Proof, ...]

    @property
    def is_whole(self) -> bool:
        """Whether everything is where the catalog says."""
        rows_agree = all(counts["expected"] == counts["found"] for indexes in self.rows.values() for counts in indexes.values())
        return rows_agree and all(piece.is_there is not False for piece in self.pieces)

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
    proofs = tuple(catalog.purges.proofs(doc_id))
    if known is None:
        raise PrimerError(f"document {doc_id} is unknown")
    owned = catalog.states.of_documents([doc_id]).get(doc_id)
    pieces = [] if owned is None else _pieces(workspace, known, owned.manifest.entries.values(), DriveKind.INTAKE)
    if owned is not None:
        for state in catalog.states.of_content(known.tenant_id, owned.content_hash):
            pieces += _pieces(workspace, known, state.manifest.entries.values(), DriveKind.PIPELINE)
    gone = "purged" if proofs and owned is None else "deleted"
    copy_of = None if known.canonical_doc_id == doc_id else known.canonical_doc_id
    return Evidence(doc_id, uri, gone if known.deleted_at else "living", copy_of, tuple(pieces), _rows(workspace, doc_id), proofs)


def _pieces(workspace: Workspace, known: KnownDocument, entries: Any, kind: DriveKind) -> list[Piece]:
    store = workspace.store.of(known.tenant_id)
    drive: Drive = store.intake if kind is DriveKind.INTAKE else store.pipeline.drive
    return [_piece(drive, entry) for entry in sorted(entries, key=lambda entry: entry.key)]


def _piece(drive: Drive, entry: PartEntry) -> Piece:
    is_there = False if entry.is_lost else None if entry.object_key is None else drive.head(entry.object_key) is not None
    state = f"{entry.state} ({entry.deleted_reason})" if entry.deleted_reason else str(entry.state)
    by = f"{entry.written_by.stage} {entry.written_by.recipe}".strip()
    return Piece(drive.place, entry.part, entry.sub_key, state, entry.size, entry.sha256, entry.object_key, is_there, by)


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
