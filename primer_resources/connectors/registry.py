"""Which connector a source's type stands for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primer_core.failures import PrimerError
from primer_resources.catalog.sources import Source
from primer_resources.connectors.base import Connector
from primer_resources.connectors.dav import DavConnector, DavSettings
from primer_resources.connectors.drive import DriveConnector, DriveSettings
from primer_resources.connectors.kind import SourceSettings, load_source_settings
from primer_resources.connectors.mediawiki import MediaWikiConnector, MediaWikiSettings
from primer_resources.connectors.object_store import ObjectStoreConnector, ObjectStoreSettings
from primer_resources.connectors.tickets import TicketsConnector, TicketsSettings
from primer_resources.connectors.wiki import WikiConnector, WikiSettings
from primer_resources.credentials import check_reference


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of source: its settings, the setting that says where it is, and how its connector is opened.

    `open` takes the settings, the reference of the credentials and a folder that the source may keep things in.
    """

    settings: type[SourceSettings]
    location: str
    takes_credentials: bool
    open: Callable[[Any, str | None, Path], Connector]


KINDS: Mapping[str, Kind] = {
    "drive": Kind(DriveSettings, "root", False, lambda settings, _credentials, _work: DriveConnector(settings)),
    "wiki": Kind(WikiSettings, "url", True, WikiConnector),
    "object_store": Kind(ObjectStoreSettings, "url", True, ObjectStoreConnector),
    "tickets": Kind(TicketsSettings, "url", True, TicketsConnector),
}
"""Type → its kind, where the location says nothing else."""

_BY_LOCATION: Mapping[str, tuple[re.Pattern[str], Kind]] = {
    "drive": (re.compile(r"https?://.*", re.IGNORECASE), Kind(DavSettings, "root", True, DavConnector)),
    "wiki": (re.compile(r"https?://.*/api\.php", re.IGNORECASE), Kind(MediaWikiSettings, "url", True, MediaWikiConnector)),
}
"""Type → the kind that stands for it where the location looks like this: documents of the same sort, read by another protocol."""


def kind_of(type_: str, location: str = "") -> Kind:
    """The kind of that name at that location. Raises PrimerError that names those there are."""
    kind = KINDS.get(type_)
    if kind is None:
        raise PrimerError(f"source type {type_!r} is unknown; known types: {', '.join(KINDS)}")
    form, other = _BY_LOCATION.get(type_, (None, kind))
    return other if form is not None and form.fullmatch(location) else kind


def root_of(source: Source) -> str:
    """The address below which the source keeps its documents; a folder's as file://."""
    location = str(source.settings[kind_of(source.type).location])
    return location if "://" in location else Path(location).as_uri() if location.startswith("/") else location


@dataclass(frozen=True, slots=True)
class Connectors:
    """Opens the connector of a source. `home` is where connectors may keep a folder a source, such as the mirror of a repository."""

    home: Path

    def open(self, source: Source) -> Connector:
        """The connector of a source. Raises PrimerError where its settings are no longer valid."""
        kind = _kind_at(source.type, source.settings)
        settings = check_source(source.type, source.settings, source.credentials_ref)
        return kind.open(settings, source.credentials_ref, self.home / source.source_id)


def check_source(type_: str, settings: Mapping[str, Any], credentials_ref: str | None) -> SourceSettings:
    """The settings of a source. Raises PrimerError where the type is unknown, or settings or credentials are not valid for it."""
    kind = _kind_at(type_, settings)
    if credentials_ref is not None:
        if not kind.takes_credentials:
            raise PrimerError(f"a source of type {type_} takes no credentials at {settings.get(kind.location)}; leave --credentials out")
        check_reference(credentials_ref)
    return load_source_settings(type_, kind.settings, settings)


def _kind_at(type_: str, settings: Mapping[str, Any]) -> Kind:
    return kind_of(type_, str(settings.get(kind_of(type_).location, "")))
