"""Adding and changing sources: one set of rules for the command line and the HTTP API."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from primer_core.failures import PrimerError
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.sources import POLL, WEBHOOK, Source
from primer_resources.connectors.access import access_file_beside
from primer_resources.connectors.drive import DriveSettings
from primer_resources.connectors.registry import check_source, kind_of
from primer_resources.credentials import check_reference
from primer_resources.settings import Settings

DRIVE = "drive"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A source as somebody asks for it. `settings` are those of its type, its location among them; None is the deployment's default."""

    type: str
    settings: Mapping[str, object]
    name: str | None = None
    tenant_id: str | None = None
    library: str | None = None
    sync: str = POLL
    poll_interval_s: int | None = None
    credentials_ref: str | None = None
    webhook_secret_ref: str | None = None


def add_source(catalog: Catalog, settings: Settings, wanted: Wanted) -> tuple[Source, bool]:
    """Add a source. Returns it, and whether it is new. Raises PrimerError for one that is not valid, or that nobody could read.

    Nothing is read yet.
    """
    location = _location(wanted.type, wanted.settings)
    source_id = wanted.name or re.sub(r"[^a-z0-9._-]+", "-", _last_part(location)).strip("-._")
    if not NAME.fullmatch(source_id):
        raise PrimerError(f"source name {source_id!r} is not valid; choose a name of lower-case letters, digits, '.', '_' and '-'")
    present = catalog.sources.find(source_id)
    tenant_id = wanted.tenant_id or settings.tenant
    if present is not None and present.tenant_id != tenant_id:
        raise PrimerError(f"source name {source_id!r} is taken; choose another one")
    catalog.tenants.get(tenant_id)
    given = {"max_file_mb": settings.max_file_mb, **wanted.settings}
    seconds = round(settings.poll_interval.total_seconds()) if wanted.poll_interval_s is None else wanted.poll_interval_s
    source = Source(
        source_id=source_id,
        tenant_id=tenant_id,
        library=wanted.library or settings.library,
        type=wanted.type,
        settings=given,
        sync=wanted.sync,
        poll_interval_s=seconds,
        credentials_ref=wanted.credentials_ref,
        webhook_secret_ref=wanted.webhook_secret_ref,
    )
    is_new = catalog.sources.add(_checked(settings, source))
    return catalog.sources.get(source_id), is_new


def change_source(catalog: Catalog, settings: Settings, source: Source) -> Source:
    """Give a source the settings of `source`; its documents stay. Raises PrimerError like `add_source`."""
    catalog.sources.change(_checked(settings, source))
    return catalog.sources.get(source.source_id)


def find_overlaps(catalog: Catalog, source: Source) -> list[str]:
    """Where another source reads the same folder or collection, or one in the other: such documents are found under both names."""
    if source.type != DRIVE:
        return []
    root = PurePosixPath(str(source.settings["root"]))
    others = [other for other in catalog.sources.all() if other.type == DRIVE and other.source_id != source.source_id]
    places = [(other.source_id, str(other.settings["root"])) for other in others]
    return [
        f"source {name} reads {place} as well; what both hold is read twice, and listed under both"
        for name, place in places
        if root.is_relative_to(place) or PurePosixPath(place).is_relative_to(root)
    ]


def _checked(settings: Settings, source: Source) -> Source:
    """The source with its settings as the catalog keeps them; one whose value is empty has its default."""
    kind = kind_of(source.type)
    given = {name: value for name, value in source.settings.items() if value != ""}
    location = _location(source.type, given)
    given[kind.location] = location
    checked = check_source(source.type, given, source.credentials_ref)
    if source.webhook_secret_ref is not None:
        check_reference(source.webhook_secret_ref)
    elif source.sync == WEBHOOK:
        raise PrimerError(
            f"source {source.source_id} tells of changes by webhook: say where the secret that signs them is, as env:NAME or file:/PATH"
        )
    is_folder = isinstance(checked, DriveSettings)
    if is_folder:
        _check_folder(settings, Path(location))
    beside = access_file_beside(Path(location)) if is_folder else None
    if not checked.groups and checked.access_file is None and not (beside is not None and beside.exists()):
        where = f" at {beside}" if beside is not None else " with --access-file"
        raise PrimerError(f"nobody could read {location}: give --groups, or an access file{where}")
    kept = checked.model_dump(mode="json", exclude_unset=True)
    return replace(source, settings={name: value for name, value in kept.items() if value is not None})


def _location(type_: str, settings: Mapping[str, object]) -> str:
    """Where the source is: a path in its absolute form, since Dagster runs elsewhere; a URL as it is."""
    name = kind_of(type_).location
    location = settings.get(name)
    if not isinstance(location, str) or not location:
        raise PrimerError(f"a source of type {type_} needs the setting {name!r}: where it is")
    is_url = "://" in location or re.fullmatch(r"[\w.-]+@[\w.-]+:.+", location)
    try:
        return location if is_url else str(Path(location).resolve())
    except (OSError, ValueError, RuntimeError) as error:
        raise PrimerError(f"{location!r} is no path ({error}); give the folder that holds the documents") from error


def _last_part(location: str) -> str:
    """What a source is called that was given no name; an API is called by its host."""
    if location.endswith("/api.php"):
        return urlsplit(location).hostname or ""
    return location.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()


def _check_folder(settings: Settings, root: Path) -> None:
    """Raise PrimerError for a folder that is not there or holds PRIMER_HOME."""
    if not root.is_dir():
        raise PrimerError(f"{root} is not a folder; give the folder that holds the documents")
    if settings.home.resolve().is_relative_to(root):
        raise PrimerError(f"{root} holds PRIMER_HOME = {settings.home}, so Primer would read itself; move one of them")
