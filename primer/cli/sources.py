"""`primer source`: what to read from where."""

import shutil
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from primer.cli.output import JsonOption, err, out, print_json, print_table
from primer.source_admin import DRIVE, Wanted, add_source, change_source, find_overlaps
from primer.workspace import open_workspace
from primer_assets.source_deletes import delete_documents
from primer_assets.source_sync import LISTED_A_BATCH
from primer_core.failures import PrimerError
from primer_core.name_lists import split_names
from primer_resources.catalog.sources import POLL, WEBHOOK, Source
from primer_resources.connectors.registry import KINDS, kind_of
from primer_resources.settings import Duration

app = typer.Typer(no_args_is_help=True, help="Add, change, list and remove sources.")


class Learning(StrEnum):
    """How a source tells of changes."""

    POLL = POLL
    WEBHOOK = WEBHOOK


Groups = Annotated[str | None, typer.Option(help="Groups that may read it, comma-separated, where no access file says otherwise.")]
AccessFile = Annotated[Path | None, typer.Option(help="Access file; for a folder, FOLDER.access.yaml beside it when left out.")]
Library = Annotated[str | None, typer.Option(help="Library that the documents belong to.")]
Poll = Annotated[str | None, typer.Option(help="Time between two syncs by the sensor, with a unit, such as 5m.")]
Credentials = Annotated[str | None, typer.Option(help="Where the secret is: env:NAME or file:/PATH. It is never stored.")]
Sync = Annotated[Learning | None, typer.Option(help="Whether it is polled, or tells of changes by webhook (the HTTP API).")]
WebhookSecret = Annotated[str | None, typer.Option(help="Where the secret is that signs its events: env:NAME or file:/PATH.")]
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
    sync: Sync = None,
    webhook_secret: WebhookSecret = None,
    json: JsonOption = False,
) -> None:
    """Add a source. Nothing is read yet: `primer sync` or the sensor does that."""
    given: dict[str, object] = {kind_of(type_).location: location, "groups": split_names(groups or ""), **_pairs(set_)}
    if access_file is not None:
        given["access_file"] = str(access_file.resolve())
    wanted = Wanted(
        type_,
        given,
        name=name or None,
        library=library,
        sync=(sync or Learning.POLL).value,
        poll_interval_s=None if poll is None else _seconds(poll),
        credentials_ref=credentials,
        webhook_secret_ref=webhook_secret,
    )
    with open_workspace() as workspace:
        added, is_new = add_source(workspace.catalog, workspace.settings, wanted)
        workspace.add_partitions()
        overlaps = find_overlaps(workspace.catalog, added)
    _note(overlaps)
    if json:
        print_json(_shown(added))
    else:
        where = added.settings[kind_of(type_).location]
        out.print(f"source {added.source_id} {'added' if is_new else 'is there already'}: {where}", markup=False)


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
    sync: Sync = None,
    webhook_secret: WebhookSecret = None,
    json: JsonOption = False,
) -> None:
    """Change settings of a source; what is left out stays. Its documents stay, and the next sync settles what follows."""
    with open_workspace() as workspace:
        present = workspace.catalog.sources.get(source)
        given = {**present.settings, **_pairs(set_)}
        if location is not None:
            given[kind_of(present.type).location] = location
        if groups is not None:
            given["groups"] = split_names(groups or "")
        if access_file is not None:
            given["access_file"] = str(access_file.resolve())
        wanted = replace(
            present,
            settings=given,
            credentials_ref=credentials or present.credentials_ref,
            webhook_secret_ref=webhook_secret or present.webhook_secret_ref,
            poll_interval_s=present.poll_interval_s if poll is None else _seconds(poll),
            library=library or present.library,
            sync=present.sync if sync is None else sync.value,
        )
        changed = change_source(workspace.catalog, workspace.settings, wanted)
        overlaps = find_overlaps(workspace.catalog, changed)
    _note(overlaps)
    if json:
        print_json(_shown(changed))
    else:
        out.print(f"source {source} changed; `primer sync {source}` settles what follows", markup=False)


def _note(overlaps: list[str]) -> None:
    for overlap in overlaps:
        err.print(f"note: {overlap}", markup=False)


def _pairs(settings: list[str] | None) -> dict[str, str]:
    """name → value of what --set gave. Raises PrimerError for what is no pair."""
    pairs = {}
    for text in settings or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise PrimerError(f"--set {text!r} is no pair; write it as --set NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _seconds(poll: str) -> int:
    try:
        interval = TypeAdapter(Duration).validate_python(poll)
    except ValidationError as error:
        raise PrimerError(f"--poll {poll!r} is no duration with a unit; write it as 90s, 5m, 2h, 7d or PT90S") from error
    return max(1, round(interval.total_seconds()))


def _shown(source: Source) -> dict[str, object]:
    return {
        "source": source.source_id,
        "type": source.type,
        "library": source.library,
        "settings": dict(source.settings),
        "credentials": source.credentials_ref,
        "webhook_secret": source.webhook_secret_ref,
        "sync": source.sync,
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
            "webhook" if s.sync == WEBHOOK else f"{s.poll_interval_s} s",
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
        deleted = 0
        after = ""
        while page := workspace.catalog.documents.living_page(found.source_id, after, LISTED_A_BATCH):
            after = page[-1].doc_id
            with workspace.catalog.database.begin() as connection:
                deleted += delete_documents(workspace.catalog, connection, found, page)
        from primer_assets.partitions import SOURCE

        workspace.instance.delete_dynamic_partition(SOURCE, found.source_id)
        shutil.rmtree(workspace.settings.source_folders / found.source_id, ignore_errors=True)
    if json:
        print_json({"source": source, "deleted": deleted})
    else:
        out.print(f"source {source} removed, {deleted} documents deleted; `primer sync` takes their rows out of the indexes now")
