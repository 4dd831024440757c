"""`primer review`: pages that were read below the bar. Look at them, and let them through or leave them out."""

from pathlib import Path
from typing import Annotated

import typer

from primer.cli.documents import DOC, resolve
from primer.cli.output import JsonOption, out, print_json, print_table
from primer.cli.person import person
from primer.workspace import Workspace, open_workspace
from primer_core.failures import PrimerError
from primer_core.reviews import ReviewState, page_label
from primer_resources.catalog.reviews import Review

app = typer.Typer(no_args_is_help=True, help="Pages that could not be read well enough: they are in no index until they are accepted.")
PAGES = Annotated[list[int] | None, typer.Argument(help="Page numbers from 1; all pages that wait when left out.", min=1)]
LISTED = ("doc_id", "uri", "source", "path", "page", "region", "confidence", "state")
SHOWN = (*LISTED, "text", "image", "parser_version", "decided_at", "decided_by")


@app.command("list")
def list_(
    source: Annotated[str | None, typer.Option(help="Only of this source.")] = None,
    every: Annotated[bool, typer.Option("--all", help="The pages that were decided, too.")] = False,
    json: JsonOption = False,
) -> None:
    """List the pages that wait for a decision."""
    with open_workspace() as workspace:
        if source is not None:
            workspace.catalog.sources.get(source)
        found = workspace.catalog.reviews.listed(tuple(ReviewState) if every else (ReviewState.OPEN,), source_id=source)
    if json:
        print_json([{name: getattr(review, name) for name in LISTED} for review in found])
        return
    rows = [[f"{r.source}/{r.path}", r.page, f"{r.confidence:.0%}", r.state, " ".join(r.text.split())[:80]] for r in found]
    print_table(["document", "page", "sure of", "state", "what was read"], rows)


@app.command()
def show(
    doc: DOC,
    pages: PAGES = None,
    image: Annotated[Path | None, typer.Option(help="Write the picture of the page, a PNG, to this file.")] = None,
    json: JsonOption = False,
) -> None:
    """Show what was read on a document's pages, and where their pictures are."""
    with open_workspace() as workspace:
        doc_id = resolve(workspace, doc)
        found = workspace.catalog.reviews.listed(tuple(ReviewState), doc_id=doc_id, pages=pages or ())
        if not found:
            raise PrimerError(
                f"document {doc} has no {'such ' if pages else ''}page under review; `primer review list --all` has all pages"
            )
        if image is not None:
            _write(workspace, found, image)
        store = workspace.store.of(found[0].tenant_id)
        shown = [{name: getattr(r, name) for name in SHOWN if name != "image"} | {"image": store.locate(r.object)} for r in found]
    if json:
        print_json([{name: values[name] for name in SHOWN} for values in shown])
        return
    for values in shown:
        decided = f" by {values['decided_by']} at {values['decided_at']:%Y-%m-%d %H:%M} UTC" if values["decided_at"] else ""
        out.print(f"page {values['page']}: {values['state']}{decided}, sure of {values['confidence']:.0%}; picture: {values['image']}")
        out.print(f"{values['text']}\n", markup=False)


def _write(workspace: Workspace, found: list[Review], image: Path) -> None:
    if len(found) != 1:
        shown = page_label(review.page for review in found)
        raise PrimerError(f"--image {image} takes one picture, and pages {shown} have {len(found)}; name one page")
    try:
        image.write_bytes(workspace.store.of(found[0].tenant_id).get_picture(found[0].object))
    except OSError as error:
        raise PrimerError(f"--image {image}: {error.strerror}; name a file in a folder that can be written") from error


@app.command()
def accept(doc: DOC, pages: PAGES = None, json: JsonOption = False) -> None:
    """Let pages through as they were read. The next sync or sweep indexes them, for every document with this content."""
    _decide(doc, pages, ReviewState.ACCEPTED, json)


@app.command()
def reject(doc: DOC, pages: PAGES = None, json: JsonOption = False) -> None:
    """Leave pages out. They are not asked again; to index them all the same, accept them by number."""
    _decide(doc, pages, ReviewState.REJECTED, json)


def _decide(doc: str, pages: list[int] | None, state: ReviewState, json: bool) -> None:
    with open_workspace() as workspace:
        doc_id = resolve(workspace, doc)
        known = workspace.catalog.documents.by_id([doc_id])[doc_id]
        if known.deleted_at is not None or known.content_hash is None:
            raise PrimerError(f"document {doc} is deleted or was never read, so it has no page to decide; see `primer review list`")
        decision = workspace.catalog.reviews.decide(known.tenant_id, known.content_hash, pages or (), state, person())
    if json:
        print_json({"doc_id": doc_id, "state": state, "pages": list(decision.pages), "made_again": list(decision.doc_ids)})
        return
    out.print(f"pages {page_label(decision.pages)} {state}")
    if decision.doc_ids:
        out.print(f"{len(decision.doc_ids)} documents are read again by the next `primer sync` or sweep")
