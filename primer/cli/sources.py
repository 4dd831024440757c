"""`primer source`: what to read from where."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

import typer
from pydantic import TypeAdapter, ValidationError

from primer.cli.output import JsonOption, err, out, print_json, print_table
from primer.workspace import Workspace, open_workspace
from primer_assets.source_sync import LISTED_A_BATCH, delete_documents
from primer_core.failures import PrimerError
from primer_resources.catalog.sources import Source
from primer_resources.connectors.access import access_file_beside
from primer_resources.connectors.drive import DriveSettings
from primer_resources.connectors.registry import KINDS, check_source, kind_of
from primer_resources.settings import Duration

app = typer.Typer(no_args_is_help=True, help="Add, change, list and remove sources.")
DRIVE = "drive"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


Groups = Annotated[str | None, typer.Option(help="Groups that may read it, comma-separated, where no access file says otherwise.")]
AccessFile = Annotated[Path | None, typer.Option(help="Access file; for a folder, FOLDER.access.yaml beside it when left out.")]
Library = Annotated[str | None, typer.Option(help="Library that the documents belong to.")]
Poll = Annotated[str | None, typer.Option(help="Time between two syncs by the sensor, with a unit, such as 5m.")]
Credentials = Annotated[str | None, typer.Option(help="Where the secret is: env:NAME or file:/PATH. It is never stored.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of this type; repeat it for more. An empty value means its default."),
]


@app.command()
def add(
    location: Annotated[
        str, typer.Argument(help="What to read: a folder, or the URL of a WebDAV collection, a wiki, a repository, a tracker or a bucket.")
    ],
    type_: Annotated[str, typer.Option("--type", help=f"One of {', '.join(KINDS)}.")] = DRIVE,
    name: Annotated[str, typer.Option(help="Name of the source; the last part of the location when left out.")] = "",
    groups: Groups = None,
    access_file: AccessFile = None,
    credentials: Credentials = None,
    set_: Set = None,
    library: Library = None,
    poll: Poll = None,
    json: JsonOption = False,
) -> None:
    """Add a source. Nothing is read yet: `primer sync` or the sensor does that."""
    kind = kind_of(type_)
    where = _resolved(location)
    source_id = name or re.sub(r"[^a-z0-9._-]+", "-", _last_part(where)).strip("-._")
    if not NAME.fullmatch(source_id):
        raise PrimerError(f"source name {source_id!r} is not valid; choose --name of lower-case letters, digits, '.', '_' and '-'")
    with open_workspace() as workspace:
        given = {kind.location: where, "groups": _names(groups), "max_file_mb": workspace.settings.max_file_mb}
        if access_file is not None:
            given["access_file"] = str(access_file.resolve())
        source = Source(
            source_id=source_id,
            tenant_id=workspace.settings.tenant,
            library=library or workspace.settings.library,
            type=type_,
            settings=_checked(workspace, type_, given, _pairs(set_), credentials),
            sync="poll",
            poll_interval_s=_seconds(poll) if poll is not None else round(workspace.settings.poll_interval.total_seconds()),
            credentials_ref=credentials,
        )
        is_new = workspace.catalog.sources.add(source)
        workspace.add_partitions()
        _warn_of_overlaps(workspace, source)
        added = workspace.catalog.sources.get(source_id)
    if json:
        print_json(_shown(added))
    else:
        out.print(f"source {source_id} {'added' if is_new else 'is there already'}: {where}", markup=False)


@app.command("set")
def set_source(
    source: Annotated[str, typer.Argument(help="The source to change.")],
    location: Annotated[str | None, typer.Option(help="Where it is now.")] = None,
    groups: Groups = None,
    access_file: AccessFile = None,
    credentials: Credentials = None,
    set_: Set = None,
    library: Library = None,
    poll: Poll = None,
    json: JsonOption = False,
) -> None:
    """Change settings of a source; what is left out stays. Its documents stay, and the next sync settles what follows."""
    with open_workspace() as workspace:
        present = workspace.catalog.sources.get(source)
        given = dict(present.settings)
        if location is not None:
            given[kind_of(present.type).location] = _resolved(location)
        if groups is not None:
            given["groups"] = _names(groups)
        if access_file is not None:
            given["access_file"] = str(access_file.resolve())
        reference = credentials or present.credentials_ref
        settings = _checked(workspace, present.type, given, _pairs(set_), reference)
        seconds = present.poll_interval_s if poll is None else _seconds(poll)
        workspace.catalog.sources.change(present.source_id, settings, reference, seconds, library or present.library)
        changed = workspace.catalog.sources.get(present.source_id)
        _warn_of_overlaps(workspace, changed)
    if json:
        print_json(_shown(changed))
    else:
        out.print(f"source {source} changed; `primer sync {source}` settles what follows", markup=False)


def _resolved(location: str) -> str:
    """A path in its absolute form, since Dagster runs elsewhere; a URL as it is."""
    is_url = "://" in location or re.fullmatch(r"[\w.-]+@[\w.-]+:.+", location)
    return location if is_url else str(Path(location).resolve())


def _last_part(location: str) -> str:
    """What a source is called that was given no name; an API is called by its host."""
    if location.endswith("/api.php"):
        return urlsplit(location).hostname or ""
    return location.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()


def _pairs(settings: list[str] | None) -> dict[str, str]:
    """name → value of what --set gave. Raises PrimerError for what is no pair."""
    pairs = {}
    for text in settings or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise PrimerError(f"--set {text!r} is no pair; write it as --set NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _names(groups: str | None) -> list[str]:
    return [group.strip() for group in (groups or "").split(",") if group.strip()]


def _seconds(poll: str) -> int:
    try:
        interval = TypeAdapter(Duration).validate_python(poll)
    except ValidationError as error:
        raise PrimerError(f"--poll {poll!r} is no duration with a unit; write it as 90s, 5m, 2h, 7d or PT90S") from error
    return max(1, round(interval.total_seconds()))


def _checked(
    workspace: Workspace, type_: str, given: Mapping[str, object], pairs: Mapping[str, str], credentials: str | None
) -> dict[str, object]:
    """Settings with what --set gave, as the catalog keeps them. Raises PrimerError for a source that is not valid or nobody could read."""
    settings = {name: value for name, value in {**given, **pairs}.items() if value != ""}
    checked = check_source(type_, settings, credentials)
    location = str(settings[kind_of(type_).location])
    is_folder = isinstance(checked, DriveSettings)
    if is_folder:
        _check_folder(workspace, Path(location))
    beside = access_file_beside(Path(location)) if is_folder else None
    if not checked.groups and checked.access_file is None and not (beside is not None and beside.exists()):
        where = f" at {beside}" if beside is not None else " with --access-file"
        raise PrimerError(f"nobody could read {location}: give --groups, or an access file{where}")
    return {name: value for name, value in checked.model_dump(mode="json", exclude_unset=True).items() if value is not None}


def _check_folder(workspace: Workspace, root: Path) -> None:
    """Raise PrimerError for a folder that is not there or holds PRIMER_HOME."""
    if not root.is_dir():
        raise PrimerError(f"{root} is not a folder; give the folder that holds the documents")
    if workspace.settings.home.resolve().is_relative_to(root):
        raise PrimerError(f"{root} holds PRIMER_HOME = {workspace.settings.home}, so Primer would read itself; move one of them")


def _warn_of_overlaps(workspace: Workspace, source: Source) -> None:
    """Say where another source reads the same folder or collection, or one in the other: such documents are found under both names."""
    if source.type != DRIVE:
        return
    root = PurePosixPath(str(source.settings["root"]))
    for other in workspace.catalog.sources.all():
        place = PurePosixPath(str(other.settings.get("root", "")))
        if other.type != DRIVE:
            continue
        if other.source_id != source.source_id and (root.is_relative_to(place) or place.is_relative_to(root)):
            root_there = other.settings["root"]
            err.print(
                f"note: source {other.source_id} reads {root_there} as well; what both hold is read twice, and listed under both",
                markup=False,
            )


def _shown(source: Source) -> dict[str, object]:
    return {
        "source": source.source_id,
        "type": source.type,
        "library": source.library,
        "settings": dict(source.settings),
        "credentials": source.credentials_ref,
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
            s.settings.get(kind_of(s.type).location),
            f"{s.poll_interval_s} s",
            s.last_synced_at or "never",
            s.held_count,
            s.last_error or "",
        ]
        for s in sources
    ]
    print_table(["source", "type", "location", "poll", "last synced", "held", "last error"], rows)


@app.command()
def remove(source: str, json: JsonOption = False) -> None:
    """Remove a source and delete all of its documents. The next sync or sweep takes their rows out of the indexes."""
    with open_workspace() as workspace:
        found = workspace.catalog.sources.get(source)
        workspace.catalog.sources.remove(found.source_id)
        versions = [version.name for version in workspace.catalog.deployments.open_versions()]
        deleted = 0
        after = ""
        while page := workspace.catalog.documents.living_page(found.source_id, after, LISTED_A_BATCH):
            after = page[-1].doc_id
            with workspace.catalog.database.begin() as connection:
                deleted += delete_documents(workspace.catalog, connection, found, page, versions)
        from primer_assets.partitions import SOURCE

        workspace.instance.delete_dynamic_partition(SOURCE, found.source_id)
        shutil.rmtree(workspace.settings.source_folders / found.source_id, ignore_errors=True)
    if json:
        print_json({"source": source, "deleted": deleted})
    else:
        out.print(f"source {source} removed, {deleted} documents deleted; `primer sync` takes their rows out of the indexes now")
