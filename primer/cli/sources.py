"""`primer source`: what to read from where."""

import re
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from primer.cli.output import JsonOption, err, out, print_json, print_table
from primer.workspace import Workspace, open_workspace
from primer_assets.source_sync import LISTED_A_BATCH, delete_documents
from primer_core.failures import PrimerError
from primer_resources.catalog.sources import Source
from primer_resources.connectors.access import access_file_beside
from primer_resources.connectors.registry import Connectors
from primer_resources.settings import Duration

app = typer.Typer(no_args_is_help=True, help="Add, change, list and remove sources.")
DRIVE = "drive"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


Groups = Annotated[str | None, typer.Option(help="Groups that may read it, comma-separated, where no access file says otherwise.")]
AccessFile = Annotated[Path | None, typer.Option(help="Access file; FOLDER.access.yaml beside the folder when left out.")]
Library = Annotated[str | None, typer.Option(help="Library that the documents belong to.")]
Poll = Annotated[str | None, typer.Option(help="Time between two syncs by the sensor, with a unit, such as 5m.")]


@app.command()
def add(
    path: Annotated[Path, typer.Argument(help="The folder to read.")],
    name: Annotated[str, typer.Option(help="Name of the source; the folder's own name when left out.")] = "",
    groups: Groups = None,
    access_file: AccessFile = None,
    library: Library = None,
    poll: Poll = None,
    json: JsonOption = False,
) -> None:
    """Add a folder as a source. Nothing is read yet: `primer sync` or the sensor does that."""
    source_id = name or re.sub(r"[^a-z0-9._-]+", "-", path.resolve().name.lower()).strip("-._")
    if not NAME.fullmatch(source_id):
        raise PrimerError(f"source name {source_id!r} is not valid; choose --name of lower-case letters, digits, '.', '_' and '-'")
    with open_workspace() as workspace:
        source = Source(
            source_id=source_id,
            tenant_id=workspace.settings.tenant,
            library=library or workspace.settings.library,
            type=DRIVE,
            settings=_drive_settings(workspace, path, _names(groups), access_file),
            sync="poll",
            poll_interval_s=_seconds(poll) if poll is not None else round(workspace.settings.poll_interval.total_seconds()),
        )
        is_new = workspace.catalog.sources.add(source)
        workspace.add_partitions()
        _warn_of_overlaps(workspace, source)
        added = workspace.catalog.sources.get(source_id)
    if json:
        print_json(_shown(added))
    else:
        out.print(f"source {source_id} {'added' if is_new else 'is there already'}: {path.resolve()}", markup=False)


@app.command("set")
def set_(
    source: Annotated[str, typer.Argument(help="The source to change.")],
    path: Annotated[Path | None, typer.Option(help="Where the folder is now.")] = None,
    groups: Groups = None,
    access_file: AccessFile = None,
    library: Library = None,
    poll: Poll = None,
    json: JsonOption = False,
) -> None:
    """Change settings of a source; what is left out stays. Its documents stay, and the next sync settles what follows."""
    with open_workspace() as workspace:
        present = workspace.catalog.sources.get(source)
        root = Path(str(present.settings["root"])) if path is None else path
        names = list(present.settings.get("groups", ())) if groups is None else _names(groups)
        named = present.settings.get("access_file")
        beside = access_file or (Path(str(named)) if named else None)
        settings = _drive_settings(workspace, root, names, beside)
        seconds = present.poll_interval_s if poll is None else _seconds(poll)
        workspace.catalog.sources.change(present.source_id, settings, seconds, library or present.library)
        changed = workspace.catalog.sources.get(present.source_id)
        _warn_of_overlaps(workspace, changed)
    if json:
        print_json(_shown(changed))
    else:
        out.print(f"source {source} changed; `primer sync {source}` settles what follows", markup=False)


def _names(groups: str | None) -> list[str]:
    return [group.strip() for group in (groups or "").split(",") if group.strip()]


def _seconds(poll: str) -> int:
    try:
        interval = TypeAdapter(Duration).validate_python(poll)
    except ValidationError as error:
        raise PrimerError(f"--poll {poll!r} is no duration with a unit; write it as 90s, 5m, 2h, 7d or PT90S") from error
    return max(1, round(interval.total_seconds()))


def _drive_settings(workspace: Workspace, path: Path, groups: list[str], access_file: Path | None) -> dict[str, object]:
    """Settings of the folder at `path`. Raises PrimerError for a folder that is not there, nobody could read, or holds PRIMER_HOME."""
    root, home = path.resolve(), workspace.settings.home.resolve()
    if not root.is_dir():
        raise PrimerError(f"{path} is not a folder; give the folder that holds the documents")
    beside = access_file or access_file_beside(root)
    if not groups and not beside.exists():
        raise PrimerError(f"nobody could read {path}: give --groups, or an access file at {beside}")
    if home.is_relative_to(root):
        raise PrimerError(f"{path} holds PRIMER_HOME = {workspace.settings.home}, so Primer would read itself; move one of them")
    settings: dict[str, object] = {"root": str(root), "groups": groups, "max_file_mb": workspace.settings.max_file_mb}
    if access_file is not None:
        settings["access_file"] = str(access_file.resolve())
    Connectors().check(DRIVE, settings)
    return settings


def _warn_of_overlaps(workspace: Workspace, source: Source) -> None:
    """Say where another source reads the same folder, or one inside the other: such documents are indexed once a source."""
    root = Path(str(source.settings["root"]))
    for other in workspace.catalog.sources.all():
        place = Path(str(other.settings.get("root", "")))
        if other.source_id != source.source_id and (root.is_relative_to(place) or place.is_relative_to(root)):
            err.print(f"note: source {other.source_id} reads {place} as well; what both hold is indexed twice", markup=False)


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
