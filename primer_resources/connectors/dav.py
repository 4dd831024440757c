"""The drive connector over WebDAV (Nextcloud, ownCloud, Apache, SharePoint's and others' servers): settings, and what a connector does.

The walk is in dav_walk, the requests in dav_client.
"""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field

from primer_core.failures import DocumentFault, PrimerError, Reason, Transient
from primer_resources.connectors.access import load_rules_file
from primer_resources.connectors.base import Cursor, Fetched, ListedItem
from primer_resources.connectors.dav_client import DavClient
from primer_resources.connectors.dav_walk import DavListing
from primer_resources.connectors.dav_xml import Resource
from primer_resources.connectors.kind import SourceSettings
from primer_resources.connectors.service import Refused
from primer_resources.credentials import Address
from primer_resources.settings import Duration

_GONE = (404, 410)
_ANOTHER_STATE = 412


class DavSettings(SourceSettings):
    """Settings of one drive on a WebDAV server. The secret is USER:PASSWORD (Basic or Digest, as the server asks) or a bearer token."""

    root: Annotated[Address, Field(pattern=r"^https?://[^?#]+$")]
    """The collection whose files are the documents, such as https://cloud.example/remote.php/dav/files/me."""
    include_hidden: bool = False
    """Whether names that begin with a dot are listed (see drive_names.HIDDEN_PREFIX)."""
    throttle_quota: Duration = timedelta(seconds=60)
    """How long one sync may wait because the server asks it to."""


class DavConnector:
    """A collection and all below it as a source of documents."""

    def __init__(
        self, settings: DavSettings, credentials_ref: str | None, _work: Path, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.settings = settings
        self._client = DavClient(settings.root, credentials_ref, settings.throttle_quota, sleep)

    def list(self, cursor: Cursor | None = None) -> DavListing:
        """A full listing; the access file is read now, once."""
        rules = load_rules_file(self.settings.access_file, self.settings.groups)
        return DavListing(self._client, rules, self.settings.include_hidden)

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The file under a path as a listing shows it. Raises Transient, Deferred or SystemFault where the server cannot tell."""
        return self.list().find(path)

    def changes(self, cursor: Cursor) -> None:
        """WebDAV servers have no feed that all of them keep: every sync is a listing."""

    def decode(self, headers: Mapping[str, str], body: bytes) -> None:
        """WebDAV servers send no webhooks."""

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Stream the file's bytes to `target`, hashing them, and see that its state is the same afterwards.

        A file that changed since it was listed is read once more in its new state. Raises DocumentFault (the item's own fault,
        too_large, unreadable), Transient (gone, or changed while it was read), Deferred or SystemFault (no room at the target).
        """
        if item.fault is not None:
            raise DocumentFault(item.fault, f"{item.path}: {item.error}")
        try:
            fetched = self._read_state(item, target, item.fingerprint, item.size, item.modified_ns)
            if fetched is None:
                now = self._client.look(item.native_path)
                fetched = self._read_state(item, target, now.fingerprint, now.size or 0, now.modified_ns, any_state=True)
        except Refused as refused:
            target.unlink(missing_ok=True)
            if refused.status in _GONE:
                raise Transient(f"{item.path} is gone; the next listing tells") from refused
            raise DocumentFault(Reason.UNREADABLE, f"{item.path} cannot be read: {refused}") from refused
        except DocumentFault as fault:
            target.unlink(missing_ok=True)
            raise DocumentFault(fault.reason, f"{item.path}: {fault.message}") from fault
        except PrimerError:
            target.unlink(missing_ok=True)
            raise
        if fetched is None:
            target.unlink(missing_ok=True)
            raise Transient(f"{item.path} changed while it was read; it is tried again")
        return fetched

    def _read_state(
        self, item: ListedItem, target: Path, fingerprint: str, size: int, modified_ns: int, any_state: bool = False
    ) -> Fetched | None:
        """The file in that state; None where it is in another by now. `any_state` leaves it to the look afterwards to find that out, for
        servers that know an entity tag under another name when asked for it."""
        limit = self.settings.max_bytes
        if size > limit:
            raise DocumentFault(Reason.TOO_LARGE, f"it has {size} bytes, over the limit of {limit}; split it, or raise max_file_mb")
        etag = fingerprint if fingerprint.startswith('"') and not any_state else ""
        try:
            content_hash, copied = self._client.copy(item.native_path, target, limit, etag)
        except Refused as refused:
            if refused.status != _ANOTHER_STATE:
                raise
            return None
        after: Resource = self._client.look(item.native_path)
        if after.fingerprint != fingerprint or after.size not in (None, copied):
            return None
        return Fetched(content_hash, copied, fingerprint, modified_ns)
