"""`primer source`: what to read from where."""

import re
from pathlib import Path
from typing import Annotated

import typer

from primer.cli.output import JsonOption, out, print_json, print_table
from primer.workspace import Workspace, open_workspace
from primer_assets.source_sync import LISTED_A_BATCH, delete_documents
from primer_core.failures import PrimerError
from primer_resources.catalog.sources import Source
from primer_resources.connectors.access import access_file_beside
from primer_resources.connectors.registry import Connectors

app = typer.Typer(no_args_is_help=True, help="Add, list and remove sources.")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@app.command()
def add(
    path: Annotated[Path, typer.Argument(help="The folder to read.")],
    name: Annotated[str, typer.Option(help="Name of the source; the folder's own name when left out.")] = "",
    groups: Annotated[str, typer.Option(help="Groups that may read it, comma-separated, where no access file says otherwise.")] = "",
    access_file: Annotated[Path | None, typer.Option(help="Access file; FOLDER.access.yaml beside the folder when left out.")] = None,
    library: Annotated[str, typer.Option(help="Library that the documents belong to.")] = "",
    poll: Annotated[str, typer.Option(help="Time between two syncs by the sensor, with a unit.")] = "",
    json: JsonOption = False,
) -> None:
    """Add a folder as a source. Nothing is read yet: `primer sync` or the sensor does that."""
    root = path.resolve()
    source_id = name or re.sub(r"[^a-z0-9._-]+", "-", root.name.lower()).strip("-._")
    if not NAME.fullmatch(source_id):
        raise PrimerError(f"source name {source_id!r} is not valid; choose --name of lower-case letters, digits, '.', '_' and '-'")
    if not root.is_dir():
        raise PrimerError(f"{path} is not a folder; give the folder that holds the documents")
    names = [group.strip() for group in groups.split(",") if group.strip()]
    beside = access_file or access_file_beside(root)
    if not names and not beside.exists():
        raise PrimerError(f"nobody could read {path}: give --groups, or an access file at {beside}")
    with open_workspace() as workspace:
        if root == workspace.settings.home.resolve() or workspace.settings.home.resolve().is_relative_to(root):
            raise PrimerError(f"{path} holds PRIMER_HOME = {workspace.settings.home}, so Primer would read itself; move one of them")
        settings: dict[str, object] = {"root": str(root), "groups": names, "max_file_mb": workspace.settings.max_file_mb}
        if access_file is not None:
            settings["access_file"] = str(access_file.resolve())
        Connectors().check("drive", settings)
        is_new = workspace.catalog.sources.add(_source(workspace, source_id, settings, library, poll))
        workspace.add_partitions()
        added = workspace.catalog.sources.get(source_id)
    if json:
        print_json(_shown(added))
    else:
        out.print(f"source {source_id} {'added' if is_new else 'is there already'}: {root}")


def _source(workspace: Workspace, source_id: str, settings: dict[str, object], library: str, poll: str) -> Source:
    from primer_resources.settings import load_settings

    interval = load_settings(poll_interval=poll).poll_interval if poll else workspace.settings.poll_interval
    return Source(
        source_id=source_id,
        tenant_id=workspace.settings.tenant,
        library=library or workspace.settings.library,
        type="drive",
        settings=settings,
        sync="poll",
        poll_interval_s=max(1, round(interval.total_seconds())),
    )


def _shown(source: Source) -> dict[str, object]:
    return {
        "source": source.source_id,
        "type": source.type,
        "library": source.library,
        "settings": dict(source.settings),
        "poll_interval_s": source.poll_interval_s,
        "last_synced_at": source.last_synced_at,
        "held": source.held_count,
        "last_error": source.last_error,
    }


@app.command("list")
def list_(json: JsonOption = False) -> None:
    """List the sources."""
    with open_workspace() as workspace:
        sources = workspace.catalog.sources.all()
    if json:
        print_json([_shown(source) for source in sources])
        return
    rows = [
        [
            s.source_id,
            s.type,
            s.settings.get("root"),
            f"{s.poll_interval_s} s",
            s.last_synced_at or "never",
            s.held_count,
            s.last_error or "",
        ]
        for s in sources
    ]
    print_table(["source", "type", "root", "poll", "last synced", "held", "last error"], rows)


@app.command()
def remove(source: str, json: JsonOption = False) -> None:
    """Remove a source and delete all of its documents. The next sync or sweep takes their rows out of the indexes."""
    with open_workspace() as workspace:
        found = workspace.catalog.sources.get(source)
        workspace.catalog.sources.remove(found.source_id)
        versions = [version.name for version in workspace.catalog.deployments.open_versions()]
        deleted = 0
        for page in workspace.catalog.documents.unseen(found.source_id, -1, LISTED_A_BATCH):
            with workspace.catalog.database.begin() as connection:
                deleted += delete_documents(workspace.catalog, connection, found.source_id, page, versions, None)
        from primer_assets.partitions import SOURCE

        workspace.instance.delete_dynamic_partition(SOURCE, found.source_id)
    if json:
        print_json({"source": source, "deleted": deleted})
    else:
        out.print(f"source {source} removed, {deleted} documents deleted; `primer sync` takes their rows out of the indexes now")
