"""What a kind of source must give to be put through the connector suite: one bench, a source that a test changes from the outside.

To join: subclass ConnectorBench beside the others in sources.py, and add a class with its `source` fixture to test_connectors.py.

A bench gives, always:

| what | meaning |
|---|---|
| `open()` | a new connector to the source; it fetches documents of up to 3 MB and refuses those of more than 4 MB |
| `put`, `remove` | create a document or replace its content; delete one. All within one second of the source's clock, until `pass_time` |
| `share(groups)` | open everything to these groups; None makes the permissions unreadable |
| `blank()`, `unblank()` | let a listing show nothing, and say that this is all of it; and everything again |
| `vanish()` | take the whole source away, so that nothing can be told of a document |
| `pass_time(span)` | let the source's clock go on; nothing where it has none of its own |

and for each Trait either the acts of ACTS, or a row in `lacks` with the reason why the trait's tests do not apply. That table is checked:
a trait that is lacking must have none of its acts, and where a connector says itself that it lacks something (no cursor, no webhooks, one
scope), the suite asserts that it does.

A source has pages of two items where it has pages, and gives its connector's clients no real time to wait.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum

from primer_core.stages import Operation
from primer_resources.connectors.base import Connector


class Trait(StrEnum):
    """What some kinds of sources have and others do not."""

    FOLDERS = "documents are files in folders, under names that can change; the bytes put are the bytes fetched"
    FOLDER_PERMISSIONS = "a folder can be shared by itself"
    PERMISSION_PAGES = "permissions come in pages"
    FEED = "there is a change feed"
    DELETES_TOLD = "the feed tells of deletes"
    RENAMES_TOLD = "the feed tells of renames"
    WEBHOOKS = "the source sends webhooks"
    PAGES = "a listing is more than one request, so that it can break off and things can move between two of them"
    SERVICE = "a service answers, which can fail for a moment"
    WAITS = "the service names a time to wait"
    TOKENS = "the service takes a token that can run out"
    ZONES = "times are written as text, in which the zone can be missing"
    FORBIDDEN = "one document can be closed to us, and the others not"


ACTS: Mapping[Trait, tuple[str, ...]] = {
    Trait.FOLDERS: ("rename",),
    Trait.FOLDER_PERMISSIONS: ("share_folder",),
    Trait.PERMISSION_PAGES: ("break_permissions",),
    Trait.FEED: ("expire",),
    Trait.DELETES_TOLD: (),
    Trait.RENAMES_TOLD: (),
    Trait.WEBHOOKS: ("webhook", "foreign_webhook"),
    Trait.PAGES: ("break_listing", "between_pages", "loop_pages"),
    Trait.SERVICE: ("trouble",),
    Trait.WAITS: (),
    Trait.TOKENS: ("change_token",),
    Trait.ZONES: ("tell_no_zone",),
    Trait.FORBIDDEN: ("forbid",),
}
"""The acts of a bench that a trait's tests need. Those with none use the acts of another: the feed's, the service's."""


class ConnectorBench:
    """A source that a test can change from the outside. `lacks`: trait → why it has it not."""

    lacks: Mapping[Trait, str] = {}
    has_sizes = True
    """Whether a listing tells sizes."""
    keeps_states = False
    """Whether what was listed can be fetched as it was, whatever became of it since (git)."""

    _opened: Connector | None = None

    @property
    def connector(self) -> Connector:
        """A connector that stays open over a test."""
        self._opened = self._opened or self.open()
        return self._opened

    def has(self, trait: Trait) -> bool:
        """Whether the source has it."""
        return trait not in self.lacks

    def open(self) -> Connector:
        """See the module."""
        raise NotImplementedError

    def put(self, path: str, data: bytes) -> None:
        """See the module."""
        raise NotImplementedError

    def remove(self, path: str) -> None:
        """See the module."""
        raise NotImplementedError

    def share(self, groups: Sequence[str] | None) -> None:
        """See the module."""
        raise NotImplementedError

    def blank(self) -> None:
        """See the module."""
        raise NotImplementedError

    def unblank(self) -> None:
        """See the module."""
        raise NotImplementedError

    def vanish(self) -> None:
        """See the module."""
        raise NotImplementedError

    def pass_time(self, span: timedelta) -> None:
        """See the module."""

    def rename(self, old: str, new: str) -> None:
        """FOLDERS: move a document."""
        raise NotImplementedError

    def share_folder(self, folder: str, groups: Sequence[str]) -> None:
        """FOLDER_PERMISSIONS: open what lies below a folder to these groups, and everything else to everyone."""
        raise NotImplementedError

    def break_permissions(self, after: int) -> None:
        """PERMISSION_PAGES: refuse the pages of the permissions after so many."""
        raise NotImplementedError

    def expire(self) -> None:
        """FEED: make the source forget every cursor given so far."""
        raise NotImplementedError

    def webhook(self, operation: Operation, path: str, zone: str) -> tuple[Mapping[str, str], bytes]:
        """WEBHOOKS: headers and body that tell of a change of a document. `zone` is written behind the time: "Z", or "" for none."""
        raise NotImplementedError

    def foreign_webhook(self) -> tuple[Mapping[str, str], bytes]:
        """WEBHOOKS: one of the same service that has nothing to do with this source's documents."""
        raise NotImplementedError

    def break_listing(self, after: int) -> None:
        """PAGES: fail for good after so many pages of a listing."""
        raise NotImplementedError

    def between_pages(self, act: Callable[[], None]) -> None:
        """PAGES: do something once, after the first page of the next listing."""
        raise NotImplementedError

    def loop_pages(self) -> None:
        """PAGES: let every page name a next one, for ever."""
        raise NotImplementedError

    def trouble(self, status: int, headers: Mapping[str, str], times: int) -> None:
        """SERVICE: answer so many requests like this."""
        raise NotImplementedError

    def change_token(self, known: bool) -> None:
        """TOKENS: take a new token from now on, which the connector's reference gives as well or (not `known`) does not."""
        raise NotImplementedError

    def tell_no_zone(self) -> None:
        """ZONES: write times without a zone from now on."""
        raise NotImplementedError

    def forbid(self, path: str) -> None:
        """FORBIDDEN: close one document to the connector. It is still listed."""
        raise NotImplementedError
