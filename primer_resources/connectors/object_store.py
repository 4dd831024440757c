"""The object_store connector: the objects below a prefix of an S3 bucket as a source.

S3 lists keys in order and pages by key, so no object is missed or met twice while it is listed. It has no feed of changes; its event
notifications are decoded as webhooks.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import obstore
from obstore.exceptions import BaseError, InvalidPathError, PermissionDeniedError
from pydantic import Field

from primer_core.failures import DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_core.source_time import to_ns
from primer_resources.connectors.access import AccessRules, load_rules_file
from primer_resources.connectors.base import Change, Cursor, Decoded, Fetched, ListedItem
from primer_resources.connectors.drive_walk import NOT_READ_TO_THE_END
from primer_resources.connectors.kind import SourceSettings
from primer_resources.connectors.object_events import ObjectEvent, read_events
from primer_resources.credentials import Address, read_secret
from primer_resources.s3 import LIST_PAGE, NO_BUCKET, first_line, is_refused, open_bucket, read_keys

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

READ_BYTES = 1 << 20


class ObjectStoreSettings(SourceSettings):
    """Settings of one prefix. The secret is ACCESS_KEY_ID:SECRET_ACCESS_KEY, with :SESSION_TOKEN behind it where there is one; without
    credentials the machine's own role is asked for."""

    url: Annotated[str, Field(pattern=r"^s3://[^/]+(/.*)?$")]
    """s3://BUCKET or s3://BUCKET/PREFIX."""
    endpoint: Annotated[Address, Field(pattern=r"^(https?://.+)?$")] = ""
    """Address of a store that is not Amazon's."""
    region: str = "us-east-1"
    anonymous: bool = False
    """Whether to read without any credentials, as public buckets allow."""

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.url.removeprefix("s3://").partition("/")[0]

    @property
    def prefix(self) -> str:
        """What the keys begin with, without slashes at its ends; "" is the whole bucket."""
        return self.url.removeprefix("s3://").partition("/")[2].strip("/")


def open_s3(settings: ObjectStoreSettings, secret: str | None) -> "ObjectStore":
    """The bucket at its prefix. Raises PrimerError for a secret that is no pair of keys; the text does not show it."""
    keys = read_keys(secret, settings.url)
    return open_bucket(settings.bucket, settings.prefix, settings.region, settings.endpoint, keys, settings.anonymous)


class ObjectStoreConnector:
    """A prefix as a source of documents."""

    def __init__(
        self,
        settings: ObjectStoreSettings,
        credentials_ref: str | None,
        _work: Path,
        open_store: "Callable[[ObjectStoreSettings, str | None], ObjectStore]" = open_s3,
    ) -> None:
        self.settings = settings
        self._credentials_ref, self._open_store = credentials_ref, open_store
        self._secret = read_secret(credentials_ref)
        self.store = open_store(settings, self._secret)

    def list(self, cursor: Cursor | None = None) -> "ObjectListing":
        """A full listing; the access file is read now, once."""
        return ObjectListing(self, load_rules_file(self.settings.access_file, self.settings.groups))

    def changes(self, cursor: Cursor) -> None:
        """Object stores have no feed that can be asked."""

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The object as it stands. "Not found" is what a store says of an object in a bucket that is gone, too: so the bucket is asked for
        before an object counts as gone.

        Raises Transient (the store does not answer, or does not let the object be seen), SystemFault (no such bucket) or PrimerError for
        credentials that are refused.
        """
        if not path or path.endswith("/"):
            return None
        try:
            meta = self._head(path)
        except FileNotFoundError:
            self._check_bucket(path)
            return None
        except ValueError:
            return None  # No key that a listing could show: an empty part, "..", a control character.
        except BaseError as error:
            if is_refused(error):
                self._check_bucket(path)
                raise Transient(f"{path} may not be looked at; grant s3:GetObject on it") from error
            raise self.fault(error) from error
        rules = load_rules_file(self.settings.access_file, self.settings.groups)
        return self.item(meta, rules) if meta["path"] == path else None

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Stream the object's bytes to `target`, hashing them. One request reads one state of an object, whatever is written meanwhile.

        Raises DocumentFault (too_large, unreadable), Transient (gone, or the store does not answer now) or SystemFault (no room).
        """
        try:
            answer = obstore.get(self.store, item.native_path)
            meta = answer.meta
            if meta["size"] > self.settings.max_bytes:
                limit = self.settings.max_bytes
                message = f"{item.path} has {meta['size']} bytes, over the limit of {limit}; split it, or raise max_file_mb"
                raise DocumentFault(Reason.TOO_LARGE, message)
            content_hash, size = self._copy(answer.stream(min_chunk_size=READ_BYTES), target, item.path)
        except FileNotFoundError as error:
            raise Transient(f"{item.path} is gone; the next listing tells") from error
        except PermissionDeniedError as error:
            raise DocumentFault(Reason.UNREADABLE, f"{item.path} may not be read; grant s3:GetObject on it") from error
        except BaseError as error:
            target.unlink(missing_ok=True)
            raise Transient(f"reading {item.path} failed: {first_line(error)}") from error
        if size != meta["size"]:
            target.unlink(missing_ok=True)
            raise Transient(f"{item.path} broke off after {size} of {meta['size']} bytes")
        return Fetched(content_hash, size, _fingerprint(meta), _modified_ns(meta))

    def decode(self, headers: Mapping[str, str], body: bytes) -> Decoded:
        """The objects that an event notification of S3 tells of (see object_events)."""
        told: list[Change] = []
        ignored: list[str] = []
        for event in read_events(body, self.settings.url):
            path, reason = self._path_of(event)
            if event.operation is None or reason:
                ignored.append(reason or f"{event.name} changes no content")
            else:
                told.append(Change(event.operation, path, event.version, event.order, event.at))
        return Decoded(tuple(told), tuple(dict.fromkeys(ignored)))

    def close(self) -> None:
        """Nothing is held between calls."""

    def renew(self) -> bool:
        """Read the credentials anew. Returns whether they are others than before; the store is open with them then."""
        secret = read_secret(self._credentials_ref)
        if secret == self._secret:
            return False
        self._secret = secret
        self.store = self._open_store(self.settings, secret)
        return True

    @property
    def credentials(self) -> str:
        """Where the credentials come from, for people."""
        return self._credentials_ref or "the machine's own role"

    def item(self, meta: "ObjectMeta", rules: AccessRules) -> ListedItem:
        """An object as an item."""
        key = meta["path"]
        where = "/".join(part for part in (self.settings.bucket, self.settings.prefix, key) if part)
        modified = _modified_ns(meta)
        return ListedItem(
            path=key,
            native_path=key,
            uri="s3://" + quote(where),
            title=key.rpartition("/")[2],
            fingerprint=_fingerprint(meta),
            modified_ns=modified,
            size=meta["size"],
            access=rules.find(key.rpartition("/")[0]),
            version=(meta["e_tag"] or "").strip('"'),
            order=modified,
        )

    def fault(self, error: BaseError) -> PrimerError:
        """What it means that the store did not answer a request about the bucket."""
        url = self.settings.url
        if is_refused(error):
            return PrimerError(f"{url} refused the credentials ({self.credentials}); renew them, and grant s3:ListBucket and s3:GetObject")
        if isinstance(error, InvalidPathError):
            return SystemFault(f"{url} cannot be listed past one of its keys ({first_line(error)}); rename that object, or narrow `url`")
        if NO_BUCKET in str(error):
            return SystemFault(f"{url}: there is no such bucket; correct `url` in the source's settings")
        return Transient(f"{url} does not answer: {first_line(error)}")

    def _head(self, path: str) -> "ObjectMeta":
        """What the store says of an object; where it refuses, once more with credentials read anew."""
        try:
            return obstore.head(self.store, path)
        except BaseError as error:
            if not (is_refused(error) and self.renew()):
                raise
        return obstore.head(self.store, path)

    def stands(self, path: str) -> bool:
        """Whether there is an object under the path."""
        try:
            self._head(path)
        except FileNotFoundError:
            return False
        return True

    def _check_bucket(self, path: str) -> None:
        """Raise what stands in the way of listing the bucket, asked with the keys below `path` as if it were a folder."""
        try:
            next(iter(obstore.list(self.store, prefix=path)), None)
        except BaseError as error:
            raise self.fault(error) from error

    def _copy(self, pieces: Iterable[bytes], target: Path, shown: str) -> tuple[str, int]:
        sha, size = hashlib.sha256(), 0
        try:
            with target.open("wb") as file:
                for piece in pieces:
                    sha.update(piece)
                    size += file.write(piece)
        except OSError as error:
            target.unlink(missing_ok=True)
            raise SystemFault(f"copying {shown} to {target} failed: {error.strerror}; make room there") from error
        return sha.hexdigest(), size

    def _path_of(self, event: ObjectEvent) -> tuple[str, str]:
        """(path, why the event is not this source's)."""
        settings = self.settings
        if event.bucket != settings.bucket:
            return "", f"bucket {event.bucket} is not {settings.bucket}, which this source reads"
        start = f"{settings.prefix}/" if settings.prefix else ""
        if not event.key.startswith(start):
            return "", f"{event.key} does not lie below {start}, which this source reads"
        path = event.key.removeprefix(start)
        return path, f"{event.key} stands for a folder" if not path or path.endswith("/") else ""


def _modified_ns(meta: "ObjectMeta") -> int:
    """When the object was written, to the second: some stores list milliseconds, and the header of an answer never has them."""
    return to_ns(meta["last_modified"].replace(microsecond=0))


def _fingerprint(meta: "ObjectMeta") -> str:
    return f"{meta['e_tag'] or ''}:{meta['size']}:{_modified_ns(meta)}"


class ObjectListing:
    """All objects of a prefix, by key."""

    def __init__(self, connector: ObjectStoreConnector, rules: AccessRules) -> None:
        self._connector, self._rules = connector, rules
        self._problems: tuple[str, ...] = (NOT_READ_TO_THE_END,)
        self._skipped: Counter[str] = Counter()
        self._folders: set[str] = set()

    @property
    def cursor(self) -> None:
        """Object stores have no feed."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it is no evidence of absence; empty only after the last page."""
        return self._problems

    @property
    def notices(self) -> tuple[str, ...]:
        """Folders that the access file names and no key has: a misspelt name protects nothing."""
        missing = sorted(set(self._rules.folders) - self._folders) if not self._problems else []
        return tuple(f"the access file names folder {place!r}, which no key has: misspelt, or gone" for place in missing)

    @property
    def skipped(self) -> Mapping[str, int]:
        """Keys that stand for a folder."""
        return dict(self._skipped)

    def __iter__(self) -> Iterator[ListedItem]:
        self._problems, self._skipped, self._folders = (NOT_READ_TO_THE_END,), Counter(), set()
        count, begun = 0, set[str]()
        try:
            for page in self._pages():
                first = page[0]["path"]
                if first in begun:
                    self._problems = (f"the listing came back to {first!r} after {count} objects",)
                    return
                begun.add(first)
                for meta in page:
                    if self._is_marker(meta):
                        self._skipped["folder marker"] += 1
                        continue
                    count += 1
                    item = self._connector.item(meta, self._rules)
                    self._add_folders(item.path)
                    yield item
        except BaseError as error:
            self._problems = (f"the listing broke off after {count} objects: {first_line(error)}",)
            return
        self._problems = ()

    def _is_marker(self, meta: "ObjectMeta") -> bool:
        """Whether the key only stands for a folder: it ends in "/", which a listing may leave out; then nothing stands under what it
        shows."""
        return not meta["path"] or meta["path"].endswith("/") or (meta["size"] == 0 and not self._connector.stands(meta["path"]))

    def _add_folders(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        while folder and folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]

    def _pages(self) -> "Iterator[Sequence[ObjectMeta]]":
        """The pages; where the first one is refused, once more with credentials read anew."""
        connector = self._connector
        stream = iter(obstore.list(connector.store, chunk_size=LIST_PAGE))
        try:
            first = next(stream, None)
        except BaseError as error:
            if not (is_refused(error) and connector.renew()):
                raise connector.fault(error) from error
            stream = iter(obstore.list(connector.store, chunk_size=LIST_PAGE))
            try:
                first = next(stream, None)
            except BaseError as again:
                raise connector.fault(again) from again
        if first is not None:
            yield first
            yield from stream
