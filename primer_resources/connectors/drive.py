"""The drive connector: a folder tree on a local or mounted file system as a source. POSIX only.

Settings, and the two things that a connector does; the walk is in drive_walk, the copy in drive_fetch, the permissions in access.
"""

from collections.abc import Mapping
from pathlib import Path

from primer_resources.connectors.access import access_file_beside, load_rules
from primer_resources.connectors.base import Cursor, Fetched, ListedItem
from primer_resources.connectors.drive_fetch import fetch_file
from primer_resources.connectors.drive_walk import DriveListing, check_root
from primer_resources.connectors.kind import SourceSettings

MIB = 1 << 20


class DriveSettings(SourceSettings):
    """Settings of one drive. Without `access_file`, `<folder>.access.yaml` beside the folder is looked for."""

    root: Path
    """The folder whose files are the documents."""
    include_hidden: bool = False
    """Whether names that begin with a dot are listed (see drive_names.HIDDEN_PREFIX)."""


class DriveConnector:
    """A folder tree as a source of documents."""

    def __init__(self, settings: DriveSettings) -> None:
        self.settings = settings

    def list(self, cursor: Cursor | None = None) -> DriveListing:
        """A full listing; a folder has no feed, and so no cursor. The access file is read now, once, so that
        one listing never mixes two states of it."""
        rules = load_rules(self.settings.root, self.settings.access_file, self.settings.groups)
        access_file = self.settings.access_file or access_file_beside(self.settings.root)
        return DriveListing(self.settings.root, rules, access_file, self.settings.include_hidden)

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The item under a path as a listing shows it; only the folders on its way are read, unless one of them is a link.

        Raises Transient (a folder on the way cannot be read) or SystemFault (the drive is gone).
        """
        return self.list().find(path)

    def changes(self, cursor: Cursor) -> None:
        """Folders have no change feed: every sync is a listing."""

    def decode(self, headers: Mapping[str, str], body: bytes) -> None:
        """Folders send no webhooks."""

    def close(self) -> None:
        """Nothing is held between calls."""

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Copy the item's bytes to `target`, hashing while streaming.

        Raises DocumentFault (the item's own fault, too_large, unreadable, outside_root), Transient (gone, or changed while it was
        read) or SystemFault (the drive itself is gone, or no room at the target).
        """
        return fetch_file(check_root(self.settings.root), item, target, self.settings.max_file_mb * MIB)
