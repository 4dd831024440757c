"""`primer acl`: who may see a document, and what a group opens."""

from typing import Annotated, Any

import typer

from primer.cli.documents import DOC, resolve
from primer.cli.output import JsonOption, out, print_json, print_table, visible
from primer.workspace import open_workspace
from primer_resources.catalog.access import DocumentAccess

app = typer.Typer(no_args_is_help=True, help="Permissions: who may see a document, and what a group opens.")
SHOWN_PEOPLE = 20


@app.command()
def show(doc: DOC, json: JsonOption = False) -> None:
    """Show who may see a document, why nobody may, and whether the rows of the indexes follow already."""
    with open_workspace() as workspace:
        found = workspace.catalog.access.of_document(resolve(workspace, doc))
        people: tuple[str, ...] | None = None
        if workspace.settings.directory_file is not None:
            groups = {group for scope in found.scopes for group in scope.groups if scope.readable}
            people = workspace.directory.people_in(groups) if found.readable else ()
    if json:
        print_json(_to_json(found) | {"people": None if people is None else list(people)})
        return
    out.print(f"{found.source}/{visible(found.path)}", markup=False)
    out.print("readable" if found.readable else f"hidden from everybody: {visible(found.error or '')}", markup=False)
    rows = [[s.scope or "(the source)", ", ".join(s.groups) or "nobody", f"{s.since:%Y-%m-%d %H:%M} UTC", s.path] for s in found.scopes]
    print_table(["scope", "groups", "since", "document"], rows)
    for row in found.rows:
        out.print(f"rows of {row.index_version}: {'follow' if row.follow else 'still carry another ACL; the catalog decides already'}")
    if people is not None:
        more = f" and {len(people) - SHOWN_PEOPLE} more" if len(people) > SHOWN_PEOPLE else ""
        out.print(f"people: {', '.join(people[:SHOWN_PEOPLE]) or 'nobody'}{more}", markup=False)


def _to_json(found: DocumentAccess) -> dict[str, Any]:
    names = ("doc_id", "uri", "source", "path", "readable", "error", "scopes", "rows")
    return {name: list(value) if isinstance(value := getattr(found, name), tuple) else value for name in names}


@app.command()
def who(
    group: Annotated[str, typer.Argument(help="The group.")],
    source: Annotated[str | None, typer.Option(help="Only of this source.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many documents to show.")] = 20,
    after: Annotated[str, typer.Option(help="Show the documents after this doc_id: the next page.")] = "",
    json: JsonOption = False,
) -> None:
    """Show which scopes a group opens, how many documents stand there, and some of them."""
    with open_workspace() as workspace:
        if source is not None:
            workspace.catalog.sources.get(source)
        tenant, access = workspace.settings.tenant, workspace.catalog.access
        scopes = access.opened_scopes(tenant, group, source)
        sample = access.opened_documents(tenant, group, after, limit, source)
    shown = sum(scope.documents - scope.hidden for scope in scopes)
    next_page = sample[-1].doc_id if len(sample) == limit else None
    if json:
        print_json({"group": group, "documents": shown, "scopes": scopes, "sample": sample, "next": next_page})
        return
    out.print(f"group {visible(group)} opens {shown} documents in {len(scopes)} scopes", markup=False)
    print_table(["source", "scope", "documents", "hidden"], [[s.source, s.scope or "(the source)", s.documents, s.hidden] for s in scopes])
    print_table(["doc_id", "document"], [[d.doc_id, f"{d.source}/{d.path}"] for d in sample])
    if next_page is not None:
        out.print(f"more: --after {next_page}", markup=False)
