"""The drive connector: a folder tree on a local or mounted file system as a source. POSIX only.

Settings, and the two things that a connector does; the walk is in drive_walk, the copy in drive_fetch, the permissions in access.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from primer_core.failures import PrimerError
from primer_resources.connectors.access import access_file_beside, load_rules
from primer_resources.connectors.base import Fetched, ListedItem
from primer_resources.connectors.drive_fetch import fetch_file
from primer_resources.connectors.drive_walk import DriveListing, check_root

MIB = 1 << 20


class DriveSettings(BaseModel):
    """Settings of one drive, as they stand in the catalog's `sources.settings`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    root: Path
    """The folder whose files are the documents."""
    groups: tuple[str, ...] = ()
    """Who may read what the access file says nothing about; empty is nobody."""
    access_file: Path | None = None
    """Where the access file is; None looks for `<folder>.access.yaml` beside the folder. A file named here must exist."""
    max_file_mb: Annotated[int, Field(ge=1)] = 200
    """Largest file that is fetched, in MiB."""
    include_hidden: bool = False
    """Whether names that begin with a dot are listed (see drive_names.HIDDEN_PREFIX)."""


def load_drive_settings(values: Mapping[str, Any]) -> DriveSettings:
    """Settings from plain values. Raises PrimerError that names the setting, its value and the rule."""
    try:
        return DriveSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        known = ", ".join(DriveSettings.model_fields)
        raise PrimerError(f"drive setting {name} = {first['input']!r} is not valid: {first['msg']} (settings: {known})") from error


class DriveConnector:
    """A folder tree as a source of documents."""

    def __init__(self, settings: DriveSettings) -> None:
        self.settings = settings

    def list(self) -> DriveListing:
        """A full listing. The access file is read now, once, so one listing never mixes two states of it."""
        rules = load_rules(self.settings.root, self.settings.access_file, self.settings.groups)
        access_file = self.settings.access_file or access_file_beside(self.settings.root)
        return DriveListing(self.settings.root, rules, access_file, self.settings.include_hidden)

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Copy the item's bytes to `target`, hashing while streaming.

        Raises DocumentFault (the item's own fault, too_large, unreadable, outside_root), Transient (gone, or changed while it was
        read) or SystemFault (the drive itself is gone, or no room at the target).
        """
        return fetch_file(check_root(self.settings.root), item, target, self.settings.max_file_mb * MIB)
