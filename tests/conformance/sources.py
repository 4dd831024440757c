"""Sources of every kind for the connector suite: what a test does to them from the outside."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
from obstore.store import MemoryStore, S3Store

from primer_resources.connectors.drive import DriveConnector, DriveSettings
from primer_resources.connectors.object_store import ObjectStoreConnector, ObjectStoreSettings
from primer_resources.connectors.tickets import TicketsConnector, TicketsSettings
from primer_resources.connectors.wiki import WikiConnector, WikiSettings
from tests.conformance.connector_suite import Kind
from tests.git_history import HistoryRepo
from tests.ticket_server import Tracker, later

NO_TROUBLE = "this kind of source has none"


class _Files:
    """A source whose permissions are an access file, and which is no service."""

    rules: Path

    def share(self, groups: Sequence[str] | None) -> None:
        self.rules.write_text("groups: [" if groups is None else f"groups: [{', '.join(groups)}]\n")

    def share_folder(self, folder: str, groups: Sequence[str]) -> None:
        self.rules.write_text(f"groups: [everyone]\nfolders: {{{folder}: [{', '.join(groups)}]}}\n")

    def pass_time(self, span: timedelta) -> None:
        """It has no clock of its own."""

    def expire(self) -> None:
        raise AssertionError(NO_TROUBLE)

    def trouble(self, status: int, headers: Mapping[str, str], times: int, after: int = 0) -> None:
        raise AssertionError(NO_TROUBLE)

    def between_pages(self, act: Callable[[], None]) -> None:
        raise AssertionError(NO_TROUBLE)

    def change_token(self, known: bool) -> None:
        raise AssertionError(NO_TROUBLE)

    def tell_no_zone(self) -> None:
        raise AssertionError(NO_TROUBLE)


class DriveSource(_Files):
    """A folder."""

    kind = Kind(
        is_files=True, has_sizes=True, keeps_states=False, has_feed=False, feed_tells_deletes=False, feed_tells_renames=False,
        has_webhooks=False, has_pages=False, is_remote=False, has_folder_permissions=True,
    )  # fmt: skip

    def __init__(self, place: Path) -> None:
        self.root, self.rules = place / "the drive", place / "drive.access.yaml"
        self.root.mkdir()
        self.share(["everyone"])
        self.connector = DriveConnector(DriveSettings(root=self.root, access_file=self.rules, max_file_mb=3))

    def put(self, path: str, data: bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def rename(self, old: str, new: str) -> None:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)

    def vanish(self) -> None:
        self.root.rename(self.root.with_name("unmounted"))


class WikiSource(_Files):
    """A git repository; each act is a commit, all in one second."""

    kind = Kind(
        is_files=True, has_sizes=False, keeps_states=True, has_feed=True, feed_tells_deletes=True, feed_tells_renames=True,
        has_webhooks=True, has_pages=False, is_remote=False, has_folder_permissions=True,
    )  # fmt: skip

    def __init__(self, place: Path) -> None:
        self.repo, self.rules = HistoryRepo(place / "the wiki.git"), place / "wiki.access.yaml"
        self.share(["everyone"])
        settings = WikiSettings(url=str(self.repo.folder), suffixes=("*",), access_file=self.rules, max_file_mb=3)
        self.connector = WikiConnector(settings, None, place / "work")

    def put(self, path: str, data: bytes) -> None:
        self.repo.put(path, data)
        self.repo.commit()

    def remove(self, path: str) -> None:
        self.repo.remove(path)
        self.repo.commit()

    def rename(self, old: str, new: str) -> None:
        self.repo.rename(old, new)
        self.repo.commit()

    def vanish(self) -> None:
        self.repo.folder.rename(self.repo.folder.with_name("moved"))

    def expire(self) -> None:
        """Rewrite the history: the same files in one commit."""
        self.repo.reset(self.repo.commit(at=1, parents=[], move=False))


class BucketSource(_Files):
    """Objects in memory."""

    kind = Kind(
        is_files=True, has_sizes=True, keeps_states=False, has_feed=False, feed_tells_deletes=False, feed_tells_renames=False,
        has_webhooks=True, has_pages=False, is_remote=False, has_folder_permissions=True,
    )  # fmt: skip

    def __init__(self, place: Path) -> None:
        self.store, self.rules = MemoryStore(), place / "bucket.access.yaml"
        self.share(["everyone"])
        settings = ObjectStoreSettings(url="s3://bucket", access_file=self.rules, max_file_mb=3)
        self.connector = ObjectStoreConnector(settings, None, place, lambda _settings, _secret: self.store)

    def put(self, path: str, data: bytes) -> None:
        obstore.put(self.store, path, data)

    def remove(self, path: str) -> None:
        obstore.delete(self.store, path)

    def rename(self, old: str, new: str) -> None:
        obstore.rename(self.store, old, new)

    def vanish(self) -> None:
        retry: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=1)}
        self.connector.store = S3Store("bucket", endpoint="http://127.0.0.1:9", client_options={"allow_http": True}, retry_config=retry,
                                       skip_signature=True)  # fmt: skip


class TicketSource:
    """A tracker over HTTP, with pages of two."""

    kind = Kind(
        is_files=False, has_sizes=False, keeps_states=False, has_feed=True, feed_tells_deletes=False, feed_tells_renames=False,
        has_webhooks=True, has_pages=True, is_remote=True, has_folder_permissions=False,
    )  # fmt: skip

    def __init__(self, tracker: Tracker, place: Path) -> None:
        self.tracker, self.secret = tracker, place / "token"
        self._tokens = itertools.count(1)
        self.change_token(known=True)
        self._act: Callable[[], None] | None = None
        self._good: int | None = None
        self._bad: list[tuple[int, dict[str, str]]] = []
        self.share(["everyone"])
        values = {"url": tracker.base, "permissions": "teams", "page_size": 2, "max_file_mb": 3}
        self.connector = TicketsConnector(TicketsSettings.model_validate(values), f"file:{self.secret}", place, lambda _: None)
        tracker.before_page = self._before_page

    def put(self, path: str, data: bytes) -> None:
        self.tracker.put(int(path), data.decode())

    def remove(self, path: str) -> None:
        self.tracker.remove(int(path))

    def rename(self, old: str, new: str) -> None:
        raise AssertionError(NO_TROUBLE)

    def share(self, groups: Sequence[str] | None) -> None:
        self.tracker.refused = {"/teams": 403} if groups is None else {}
        self.tracker.teams = list(groups or ())

    def share_folder(self, folder: str, groups: Sequence[str]) -> None:
        raise AssertionError(NO_TROUBLE)

    def vanish(self) -> None:
        self.tracker.refused = {"/": 404}

    def pass_time(self, span: timedelta) -> None:
        later(self.tracker, span.total_seconds())

    def expire(self) -> None:
        """The only thing that makes a moment worthless: other people may read now."""
        self.share([*self.tracker.teams, "others"])

    def trouble(self, status: int, headers: Mapping[str, str], times: int, after: int = 0) -> None:
        bad = [(status, dict(headers))] * times
        if after:
            self._good, self._bad = after, bad
        else:
            self.tracker.answers = bad

    def between_pages(self, act: Callable[[], None]) -> None:
        self._good, self._act = 1, act

    def change_token(self, known: bool) -> None:
        self.tracker.token = f"token-{next(self._tokens)}"
        if known:
            self.secret.write_text(self.tracker.token)

    def tell_no_zone(self) -> None:
        self.tracker.suffix = ""

    def _before_page(self, _number: int) -> None:
        if self._good is None:
            return
        self._good -= 1
        if self._good == 0:
            self.tracker.answers = self._bad
        if self._good == -1 and self._act is not None:
            self._act()
            self._good = self._act = None
