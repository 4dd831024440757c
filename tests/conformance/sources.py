"""The benches of the kinds of sources: each a source that a test changes from the outside (see connector_bench)."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from primer_core.stages import Operation
from primer_resources.connectors.dav import DavConnector, DavSettings
from primer_resources.connectors.drive import DriveConnector, DriveSettings
from primer_resources.connectors.mediawiki import MediaWikiConnector, MediaWikiSettings
from primer_resources.connectors.object_store import ObjectStoreConnector, ObjectStoreSettings
from primer_resources.connectors.tickets import TicketsConnector, TicketsSettings
from primer_resources.connectors.wiki import WikiConnector, WikiSettings
from tests.conformance.connector_bench import ConnectorBench, Trait
from tests.dav_server import MOUNT, DavServer
from tests.git_history import HistoryRepo
from tests.git_server import GitHost
from tests.mediawiki_server import Wiki
from tests.s3_server import Bucket
from tests.ticket_server import Tracker, later

NO_FEED = {
    Trait.DELETES_TOLD: "there is no feed",
    Trait.RENAMES_TOLD: "there is no feed",
}
FOREVER = 10_000
"""Requests: more than any test makes."""


class AccessFileBench(ConnectorBench):
    """A source whose permissions are an access file."""

    rules: Path

    def share(self, groups: Sequence[str] | None) -> None:
        self.rules.write_text("groups: [" if groups is None else f"groups: [{', '.join(groups)}]\n")

    def share_folder(self, folder: str, groups: Sequence[str]) -> None:
        self.rules.write_text(f"groups: [everyone]\nfolders: {{{folder}: [{', '.join(groups)}]}}\n")


class PagedServer:
    """What the servers of pages are told: to fail, or to do something, once so many pages of a listing were asked for."""

    def __init__(self, server: Tracker | Bucket | DavServer | Wiki) -> None:
        self._server = server
        self._good: int | None = None
        self._then: Callable[[], None] = lambda: None
        server.before_page = self._before_page

    def after(self, pages: int, act: Callable[[], None]) -> None:
        """Do something when the page after so many is asked for."""
        self._good, self._then = pages, act

    def fail(self, status: int, headers: Mapping[str, str], times: int) -> None:
        """Answer the next requests like this."""
        self._server.answers = [(status, dict(headers))] * times

    def _before_page(self, _number: int) -> None:
        if self._good is None:
            return
        if self._good == 0:
            self._good = None
            self._then()
        else:
            self._good -= 1


class FolderBench(AccessFileBench):
    """A folder, however it is read."""

    root: Path

    def put(self, path: str, data: bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def rename(self, old: str, new: str) -> None:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)

    def blank(self) -> None:
        """A share that is not mounted leaves the empty folder under it."""
        self.vanish()
        self.root.mkdir()

    def unblank(self) -> None:
        self.root.rmdir()
        self.root.with_name("unmounted").rename(self.root)

    def vanish(self) -> None:
        self.root.rename(self.root.with_name("unmounted"))


class DriveBench(FolderBench):
    """A folder."""

    lacks: Mapping[Trait, str] = {
        Trait.FEED: "a folder tells of no changes",
        **NO_FEED,
        Trait.PERMISSION_PAGES: "permissions are one file, read at once",
        Trait.WEBHOOKS: "a folder sends none",
        Trait.PAGES: "a folder is read entry by entry; what breaks off is one folder, in test_drive_listing.py",
        Trait.SERVICE: "the file system answers, not a service",
        Trait.WAITS: "no service",
        Trait.TOKENS: "no service",
        Trait.ZONES: "a file system counts from the epoch",
    }

    def __init__(self, place: Path) -> None:
        self.root, self.rules = place / "the drive", place / "drive.access.yaml"
        self.root.mkdir()
        self.share(["everyone"])

    def open(self) -> DriveConnector:
        return DriveConnector(DriveSettings(root=self.root, access_file=self.rules, max_file_mb=3))

    def forbid(self, path: str) -> None:
        """A link to nothing cannot be read, by root either; rights are taken away in test_drive_listing.py."""
        self.remove(path)
        (self.root / path).symlink_to("nowhere")


class DavBench(FolderBench):
    """A folder behind a WebDAV server; a page is a collection."""

    lacks: Mapping[Trait, str] = {
        Trait.FEED: "no feed that every server keeps",
        **NO_FEED,
        Trait.PERMISSION_PAGES: "permissions are one file, read at once",
        Trait.WEBHOOKS: "WebDAV has none",
    }

    def __init__(self, server: DavServer, place: Path) -> None:
        self.server, self.root, self.rules, self.secret = server, server.folder, place / "dav.access.yaml", place / "token"
        self.pages = PagedServer(server)
        self._tokens = itertools.count(1)
        self.change_token(known=True)
        self.share(["everyone"])

    def open(self) -> DavConnector:
        values = {"root": self.server.root, "access_file": self.rules, "max_file_mb": 3}
        return DavConnector(DavSettings.model_validate(values), f"file:{self.secret}", self.rules.parent, lambda _: None)

    def break_listing(self, after: int) -> None:
        self.pages.after(after, lambda: self.trouble(502, {}, FOREVER))

    def between_pages(self, act: Callable[[], None]) -> None:
        self.pages.after(1, act)

    def loop_pages(self) -> None:
        """A folder that stands in itself."""
        (self.root / "loop").mkdir()
        (self.root / "loop" / "again").symlink_to(self.root / "loop")

    def trouble(self, status: int, headers: Mapping[str, str], times: int) -> None:
        self.pages.fail(status, headers, times)

    def change_token(self, known: bool) -> None:
        self.server.token = f"token-{next(self._tokens)}"
        if known:
            self.secret.write_text(self.server.token)

    def tell_no_zone(self) -> None:
        self.server.edit = lambda environ, body: body.replace(b" GMT<", b"<")

    def forbid(self, path: str) -> None:
        self.server.refused[f"{MOUNT}/{path}"] = 403


class WikiBench(AccessFileBench):
    """A git repository over HTTP; each act is a commit, all in one second."""

    has_sizes, keeps_states = False, True
    lacks: Mapping[Trait, str] = {
        Trait.PERMISSION_PAGES: "permissions are one file, read at once",
        Trait.PAGES: "a tree at a commit is whole: it is fetched by one request, and read from the mirror",
        Trait.WAITS: "git hosts refuse a fetch that comes too soon; the next turn of the source is the wait",
        Trait.ZONES: "git counts from the epoch; a push's times are a webhook's",
        Trait.FORBIDDEN: "a repository is open or closed as a whole",
    }

    def __init__(self, repo: HistoryRepo, host: GitHost, place: Path) -> None:
        self.repo, self.host, self.place, self.secret = repo, host, place, place / "token"
        self.rules = place / "wiki.access.yaml"
        self._tokens = itertools.count(1)
        self.change_token(known=True)
        self.share(["everyone"])

    def open(self) -> WikiConnector:
        settings = WikiSettings(url=self.host.url, branch="main", suffixes=("*",), access_file=self.rules, max_file_mb=3)
        return WikiConnector(settings, f"file:{self.secret}", self.place / "work")

    def put(self, path: str, data: bytes) -> None:
        self.repo.put(path, data)
        self.repo.commit()

    def remove(self, path: str) -> None:
        self.repo.remove(path)
        self.repo.commit()

    def rename(self, old: str, new: str) -> None:
        self.repo.rename(old, new)
        self.repo.commit()

    def blank(self) -> None:
        """A history that begins anew, with nothing in it."""
        self._kept = dict(self.repo.files), self.repo.head
        self.repo.files.clear()
        self.expire()

    def unblank(self) -> None:
        files, head = self._kept
        assert head is not None
        self.repo.files.update(files)
        self.repo.reset(head)

    def vanish(self) -> None:
        self.trouble(404, {}, FOREVER)

    def expire(self) -> None:
        """Rewrite the history: the same files in one commit."""
        self.repo.reset(self.repo.commit(at=1, parents=[], move=False))

    def webhook(self, operation: Operation, path: str, zone: str) -> tuple[Mapping[str, str], bytes]:
        paths = {"removed" if operation is Operation.DELETE else "modified": [path]}
        commit = {"id": "c" * 40, "timestamp": f"2026-06-01T12:00:00{zone}", **paths}
        return {}, json.dumps({"ref": "refs/heads/main", "commits": [commit]}).encode()

    def foreign_webhook(self) -> tuple[Mapping[str, str], bytes]:
        return {}, json.dumps({"ref": "refs/heads/draft", "commits": []}).encode()

    def trouble(self, status: int, headers: Mapping[str, str], times: int) -> None:
        self.host.answers = [(status, dict(headers))] * times

    def change_token(self, known: bool) -> None:
        self.host.token = f"token-{next(self._tokens)}"
        if known:
            self.secret.write_text(self.host.token)


class MediaWikiBench(ConnectorBench):
    """A MediaWiki whose pages have numbers for titles, with parts of two, asked by a bot with a password."""

    has_sizes = False
    lacks: Mapping[Trait, str] = {
        Trait.FOLDERS: "a page has a title, and its document is the HTML of its text; moves are in test_mediawiki.py",
        Trait.FOLDER_PERMISSIONS: "titles here are numbers; rules for titles with subpages are in test_mediawiki.py",
        Trait.PERMISSION_PAGES: "permissions are one file, read at once",
        Trait.RENAMES_TOLD: "numbers do not change here; moves are in test_mediawiki.py",
        Trait.WEBHOOKS: "MediaWiki sends none",
        Trait.FORBIDDEN: "a wiki is open or closed as a whole; what an extension closes is in test_mediawiki.py",
    }

    def __init__(self, wiki: Wiki, place: Path) -> None:
        self.wiki, self.rules, self.secret = wiki, place / "mediawiki.access.yaml", place / "password"
        self.pages = PagedServer(wiki)
        self._tokens = itertools.count(1)
        self.change_token(known=True)
        self.share(["everyone"])

    def open(self) -> MediaWikiConnector:
        values = {"url": self.wiki.url, "access_file": self.rules, "page_size": 2, "max_file_mb": 3}
        return MediaWikiConnector(MediaWikiSettings.model_validate(values), f"file:{self.secret}", self.rules.parent, lambda _: None)

    share = AccessFileBench.share

    def put(self, path: str, data: bytes) -> None:
        self.wiki.put(path, data.decode())

    def remove(self, path: str) -> None:
        self.wiki.remove(path)

    def blank(self) -> None:
        self._kept, self.wiki.pages = self.wiki.pages, {}

    def unblank(self) -> None:
        self.wiki.pages = self._kept

    def vanish(self) -> None:
        self.trouble(404, {}, FOREVER)

    def pass_time(self, span: timedelta) -> None:
        self.wiki.clock += span

    def expire(self) -> None:
        """Let so much time pass that the wiki forgets its recent changes."""
        self.wiki.clock += timedelta(days=91)
        self.wiki.purge(self.wiki.clock - timedelta(days=90))

    def break_listing(self, after: int) -> None:
        self.pages.after(after, lambda: self.trouble(502, {}, FOREVER))

    def between_pages(self, act: Callable[[], None]) -> None:
        self.pages.after(1, act)

    def loop_pages(self) -> None:
        self.wiki.stuck = True

    def trouble(self, status: int, headers: Mapping[str, str], times: int) -> None:
        self.pages.fail(status, headers, times)

    def change_token(self, known: bool) -> None:
        token = f"token-{next(self._tokens)}"
        self.wiki.bots, self.wiki.sessions = {"Reader@primer": token}, {}
        if known:
            self.secret.write_text(f"Reader@primer:{token}")

    def tell_no_zone(self) -> None:
        self.wiki.suffix = ""


class BucketBench(AccessFileBench):
    """A bucket over HTTP, with pages of two."""

    lacks: Mapping[Trait, str] = {
        Trait.FEED: "a store cannot be asked what changed; it sends notifications",
        **NO_FEED,
        Trait.PERMISSION_PAGES: "permissions are one file, read at once",
        Trait.WAITS: "a store that is busy (503 SlowDown) names no time; its client spaces the tries by itself",
    }

    def __init__(self, bucket: Bucket, place: Path) -> None:
        self.bucket, self.secret, self.rules = bucket, place / "keys", place / "bucket.access.yaml"
        self.pages = PagedServer(bucket)
        self._tokens = itertools.count(1)
        self.change_token(known=True)
        self.share(["everyone"])

    def open(self) -> ObjectStoreConnector:
        values = {"url": "s3://bucket", "endpoint": self.bucket.base, "access_file": self.rules, "max_file_mb": 3}
        return ObjectStoreConnector(ObjectStoreSettings.model_validate(values), f"file:{self.secret}", self.rules.parent)

    def put(self, path: str, data: bytes) -> None:
        self.bucket.put(path, data)

    def remove(self, path: str) -> None:
        del self.bucket.objects[path]

    def rename(self, old: str, new: str) -> None:
        self.bucket.objects[new] = self.bucket.objects.pop(old)

    def blank(self) -> None:
        self.bucket.is_blank = True

    def unblank(self) -> None:
        self.bucket.is_blank = False

    def vanish(self) -> None:
        self.bucket.is_gone = True

    def pass_time(self, span: timedelta) -> None:
        self.bucket.clock += span

    def webhook(self, operation: Operation, path: str, zone: str) -> tuple[Mapping[str, str], bytes]:
        return {}, self._notification("bucket", operation, path, zone)

    def foreign_webhook(self) -> tuple[Mapping[str, str], bytes]:
        return {}, self._notification("another", Operation.UPSERT, "plan.txt", "Z")

    def break_listing(self, after: int) -> None:
        self.pages.after(after, lambda: self.trouble(502, {}, FOREVER))

    def between_pages(self, act: Callable[[], None]) -> None:
        self.pages.after(1, act)

    def loop_pages(self) -> None:
        self.bucket.loops = True

    def trouble(self, status: int, headers: Mapping[str, str], times: int) -> None:
        self.pages.fail(status, headers, times)

    def change_token(self, known: bool) -> None:
        self.bucket.key_id = f"token-{next(self._tokens)}"
        if known:
            self.secret.write_text(f"{self.bucket.key_id}:secret")

    def tell_no_zone(self) -> None:
        self.bucket.suffix = ""

    def forbid(self, path: str) -> None:
        self.bucket.forbidden.add(path)

    def _notification(self, bucket: str, operation: Operation, path: str, zone: str) -> bytes:
        name = "ObjectRemoved:Delete" if operation is Operation.DELETE else "ObjectCreated:Put"
        thing = {"key": quote_plus(path, safe="/"), "eTag": "abc", "sequencer": "0055AED6DCD90281E5"}
        record = {"eventName": name, "eventTime": f"2026-06-01T12:00:00{zone}", "s3": {"bucket": {"name": bucket}, "object": thing}}
        return json.dumps({"Records": [record]}).encode()


class TicketBench(ConnectorBench):
    """A tracker over HTTP, with pages of two."""

    has_sizes = False
    lacks: Mapping[Trait, str] = {
        Trait.FOLDERS: "a ticket has a number, and its document is made from its fields",
        Trait.FOLDER_PERMISSIONS: "the tracker's teams see all tickets",
        Trait.DELETES_TOLD: "the tracker lists no tickets that are gone",
        Trait.RENAMES_TOLD: "numbers do not change",
    }

    def __init__(self, tracker: Tracker, place: Path) -> None:
        self.tracker, self.secret = tracker, place / "token"
        self.pages = PagedServer(tracker)
        self._tokens = itertools.count(1)
        self.change_token(known=True)
        self.share(["everyone"])

    def open(self) -> TicketsConnector:
        values = {"url": self.tracker.base, "permissions": "teams", "page_size": 2, "max_file_mb": 3}
        return TicketsConnector(TicketsSettings.model_validate(values), f"file:{self.secret}", self.secret.parent, lambda _: None)

    def put(self, path: str, data: bytes) -> None:
        self.tracker.put(int(path), data.decode())

    def remove(self, path: str) -> None:
        self.tracker.remove(int(path))

    def share(self, groups: Sequence[str] | None) -> None:
        self.tracker.refused.pop("/teams", None)
        self.tracker.refused_pages.clear()
        if groups is None:
            self.tracker.refused["/teams"] = 403
        self.tracker.teams = list(groups or ())

    def blank(self) -> None:
        self._kept, self.tracker.tickets = self.tracker.tickets, {}

    def unblank(self) -> None:
        self.tracker.tickets = self._kept

    def vanish(self) -> None:
        self.tracker.refused = {"/": 404}

    def pass_time(self, span: timedelta) -> None:
        later(self.tracker, span.total_seconds())

    def break_permissions(self, after: int) -> None:
        self.tracker.refused_pages = {("/teams", after + 1): 403}

    def expire(self) -> None:
        """The only thing that makes a moment worthless: other people may read now."""
        self.share([*self.tracker.teams, f"others-{len(self.tracker.teams)}"])

    def webhook(self, operation: Operation, path: str, zone: str) -> tuple[Mapping[str, str], bytes]:
        self.tracker.suffix, kept = zone, self.tracker.suffix
        issue: Any = self.tracker.answer(f"/issues/{path}", {})[1]
        self.tracker.suffix = kept
        action = "deleted" if operation is Operation.DELETE else "edited"
        return {"X-GitHub-Event": "issues"}, json.dumps({"action": action, "issue": issue}).encode()

    def foreign_webhook(self) -> tuple[Mapping[str, str], bytes]:
        return {"X-GitHub-Event": "ping"}, b'{"zen": "Keep it logically awesome."}'

    def break_listing(self, after: int) -> None:
        self.pages.after(after, lambda: self.trouble(502, {}, FOREVER))

    def between_pages(self, act: Callable[[], None]) -> None:
        self.pages.after(1, act)

    def loop_pages(self) -> None:
        self.tracker.loops = True

    def trouble(self, status: int, headers: Mapping[str, str], times: int) -> None:
        self.pages.fail(status, headers, times)

    def change_token(self, known: bool) -> None:
        self.tracker.token = f"token-{next(self._tokens)}"
        if known:
            self.secret.write_text(self.tracker.token)

    def tell_no_zone(self) -> None:
        self.tracker.suffix = ""

    def forbid(self, path: str) -> None:
        self.tracker.refused_pages[f"/issues/{path}", 1] = 403
