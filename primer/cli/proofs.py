"""`primer prove` and `primer purge`: where a document is or that it is gone, and making it so."""

from typing import Annotated

import typer

from primer.cli.documents import resolve
from primer.cli.output import DIFFERENCE_EXIT, JsonOption, out, print_json, print_table
from primer.proving import Owner, Piece, Standing
from primer.proving import prove as look
from primer.workspace import open_workspace

UNREAD = "unread_chunk_sets"
"""The figure of a proof that says what could not be looked for."""


def prove(
    doc: Annotated[str, typer.Argument(help="A doc_id, a uri, or SOURCE/relative/path, of a living document or a deleted one.")],
    json: JsonOption = False,
) -> None:
    """Show where every piece of a document is, looked for now, or when and why each is gone. Exit 1 where one is not where it should be."""
    with open_workspace() as workspace:
        doc_id = resolve(workspace, doc)
        evidence = look(workspace, doc_id, doc)
    if json:
        print_json(evidence.to_json())
    else:
        out.print(f"{doc} ({doc_id}) {_STANDING[evidence.state]}", markup=False)
        if evidence.copy_of is not None:
            out.print(f"its passages are those of {evidence.copy_of}, which has the same content", markup=False)
        if evidence.pieces:
            print_table(["of", "part", "made by", "state", "bytes", "looked", "where"], [_row(piece) for piece in evidence.pieces])
        for version, indexes in evidence.rows.items():
            for index, counts in indexes.items():
                out.print(f"{version} {index} index: {counts['found']} of {counts['expected']} rows found", markup=False)
        for proof in evidence.proofs:
            looked = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in proof.looked_at.items() if name != UNREAD)
            deleted, purged = (f"{at:%Y-%m-%d %H:%M:%S} UTC" for at in (proof.deleted_at, proof.purged_at))
            out.print(f"proof {proof.purge_id}: deleted {deleted}, purged {purged}; looked for and not found: {looked}", markup=False)
            if unread := proof.looked_at.get(UNREAD, 0):
                out.print(f"  {unread} chunk sets were lost before the purge: their vectors could not be looked for")
            for content in proof.contents:
                out.print(f"  content {content['content_hash']}, {content['size']} bytes: {content['bytes']}", markup=False)
    if not evidence.is_whole:
        raise typer.Exit(DIFFERENCE_EXIT)


_STANDING = {
    Standing.LIVING: "is living",
    Standing.DELETED: "is deleted, and its purge has yet to end",
    Standing.PURGED: "is purged",
    Standing.UNSTORED: "is deleted, and nothing was stored of it since it came",
}


def _row(piece: Piece) -> list[object]:
    absent = "gone" if piece.owner is Owner.FREED else "MISSING"
    looked = {True: "found", False: absent, None: ""}[piece.is_there]
    where = f"{piece.drive}/{piece.object_key}" if piece.object_key else ""
    return [piece.owner, piece.part, piece.sub_key[:24], piece.state, piece.size, looked, where]


def purge(json: JsonOption = False) -> None:
    """Remove the bodies that are due to go, and prove it. `primer sync` and the sensors do the same by themselves."""
    from primer.materialise import Materialiser

    with open_workspace() as workspace:
        overrides = {
            "settings": workspace.settings,
            "catalog": workspace.catalog,
            "drives": workspace.drives,
            "store": workspace.store,
            "toolkit": workspace.toolkit,
        }
        figures = Materialiser(workspace.instance, overrides).purge()
    if json:
        print_json(figures)
        return
    out.print(", ".join(f"{figures[name]} {name.replace('_', ' ')}" for name in ("proofs", "objects", "bytes_freed", "vectors")))
    left = ", ".join(f"{figures[name]} {name.replace('_', ' ')}" for name in ("states_left", "objects_left") if figures[name])
    if left:
        out.print(f"{left}: an index still serves them, or they are young")
