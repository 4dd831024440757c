"""A catalog that reads and does not write: what a sync would write is written down instead.

Its connections refuse every write, so a write that is not caught here is an error and never a change.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, event

from primer_core.failures import DocumentFault
from primer_core.retry import RetryPolicy
from primer_core.stages import Operation
from primer_core.stored_states import WrittenBy
from primer_resources.catalog.acls import AclRow, Acls
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.contents import Contents
from primer_resources.catalog.copies import Content, Copies
from primer_resources.catalog.database import Database
from primer_resources.catalog.dead_letters import DeadLetters
from primer_resources.catalog.documents import Deletion, Documents, KnownDocument, Placement, VersionFacts
from primer_resources.catalog.held_deletes import HeldDeletes
from primer_resources.catalog.jobs import Jobs, NewJob
from primer_resources.catalog.sources import Source, Sources
from primer_resources.catalog.stored_states import StoredStates
from primer_resources.clock import Clock


@dataclass(slots=True)
class WrittenDown:
    """What would have been written, in order: documents added or brought to a new version, moved or re-shared, deleted; ACL rows; the
    ids whose deletes would be held; the cursor that a feed would go on from."""

    added: list[tuple[str, Placement, VersionFacts]] = field(default_factory=list)
    advanced: list[tuple[str, Placement, VersionFacts]] = field(default_factory=list)
    moved: list[tuple[str, Placement]] = field(default_factory=list)
    granted: list[tuple[str, str, str | None]] = field(default_factory=list)
    deleted: list[KnownDocument] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    acls: dict[str, AclRow] = field(default_factory=dict)
    cursor: Mapping[str, Any] | None = None


class _ReadingDatabase(Database):
    """A database whose writing transactions are reading ones."""

    def __init__(self, url: str, clock: Clock) -> None:
        super().__init__(url, clock)
        if self.is_sqlite:

            @event.listens_for(self.engine, "connect")
            def _on_connect(connection: Any, _record: Any) -> None:
                connection.execute("PRAGMA query_only=ON")

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self.read() as connection:
            yield connection


class _Documents(Documents):
    def __init__(self, database: Database, written: WrittenDown) -> None:
        super().__init__(database)
        self._written = written

    def lock(self, connection: Connection, doc_ids: Collection[str]) -> None:
        """Nothing is changed, so nothing is taken."""

    def mark_missing(self, connection: Connection, doc_ids: Sequence[str], scan: int) -> None:
        self._written.held.extend(doc_ids)

    def mark_present(self, connection: Connection, doc_ids: Sequence[str]) -> None:
        """That a held document came back is no operation of a plan: nothing happens to it."""

    def add(self, connection: Connection, source: Source, doc_id: str, place: Placement, version: VersionFacts) -> bool:
        self._written.added.append((doc_id, place, version))
        return True

    def bucket(self, connection: Connection, doc_id: str) -> str | None:
        return None

    def move(self, connection: Connection, doc_id: str, place: Placement) -> None:
        self._written.moved.append((doc_id, place))

    def grant(self, connection: Connection, doc_id: str, acl_id: str, acl_error: str | None) -> None:
        self._written.granted.append((doc_id, acl_id, acl_error))

    def advance(self, connection: Connection, doc_id: str, place: Placement, version: VersionFacts) -> bool:
        self._written.advanced.append((doc_id, place, version))
        return True

    def fetched(self, connection: Connection, doc_id: str) -> None:
        """Nothing: that it is fetched again shows in nothing but its bytes."""

    def tombstone(
        self,
        connection: Connection,
        gone: Sequence[KnownDocument],
        now: datetime,
        told: Mapping[str, Deletion] = MappingProxyType({}),
        if_missing: bool = False,
    ) -> list[str]:
        self._written.deleted.extend(gone)
        return [document.doc_id for document in gone]


class _Jobs(Jobs):
    """Makes no jobs: they follow from the documents."""

    def add(self, connection: Connection, new: Iterable[NewJob], index_versions: Sequence[str]) -> None:
        """Nothing."""

    def supersede(self, connection: Connection, doc_id: str, now: datetime) -> None:
        """Nothing."""


class _DeadLetters(DeadLetters):
    """Makes none: what could not be read is told by the look itself."""

    def add(self, connection: Connection, change: NewJob, index_versions: Sequence[str], stage: str, fault: DocumentFault) -> None:
        """Nothing."""


class _Copies(Copies):
    """Links no copies: a plan tells of documents, and which of them has the rows is settled when they are written."""

    def lock(
        self,
        connection: Connection,
        place: tuple[str, str],
        doc_ids: Collection[str],
        changing: Collection[str] = (),
        hashes: Collection[str] = (),
    ) -> list[Content]:
        return []

    def join(self, connection: Connection, doc_id: str, content_hash: str, index_versions: Sequence[str]) -> Operation:
        return Operation.UPSERT

    def rewrite(self, connection: Connection, doc_id: str, index_versions: Sequence[str]) -> None:
        """Nothing."""

    def settle(self, connection: Connection, locked: Iterable[Content], index_versions: Sequence[str]) -> None:
        """Nothing."""


class _Acls(Acls):
    def __init__(self, database: Database, written: WrittenDown) -> None:
        super().__init__(database)
        self._written = written

    def put(self, connection: Connection, source: Source, acl: AclRow, now: datetime) -> None:
        self._written.acls[acl.acl_id] = acl


class _Sources(Sources):
    def __init__(self, database: Database, written: WrittenDown) -> None:
        super().__init__(database)
        self._written = written

    def check(self, connection: Connection, source_id: str, epoch: int) -> None:
        """Nobody holds the source for a look."""

    def save_cursor(self, connection: Connection, source_id: str, cursor: Mapping[str, Any]) -> None:
        self._written.cursor = dict(cursor)


class _Contents(Contents):
    """Nothing is stored, so nothing is marked."""

    def owned(self, connection: Connection, tenant_id: str, content_hash: str) -> None:
        """Nothing."""


class _StoredStates(StoredStates):
    """No document gets bytes or loses them."""

    def own(self, connection: Connection, tenant_id: str, doc_id: str, content_hash: str | None, by: WrittenBy) -> None:
        """Nothing."""

    def doom(self, connection: Connection, doc_ids: Collection[str]) -> None:
        """Nothing."""


class _HeldDeletes(HeldDeletes):
    def hold(self, connection: Connection, source_id: str, digest: str, scan: int, documents: int, reasons: Sequence[str]) -> None:
        """What would be held is in the documents' marks."""

    def close(self, connection: Connection, source_id: str, digest: str, is_held: bool) -> None:
        """Nothing."""


class DryCatalog(Catalog):
    """A catalog over the same database as another one, that changes nothing in it; `written` is what it would have changed."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog.database.url.render_as_string(hide_password=False), catalog.database.clock, Random(0))
        self.written = WrittenDown()
        self.documents = _Documents(self.database, self.written)
        self.dead_letters = _DeadLetters(self.database, self.ledger)
        self.jobs = _Jobs(self.database, RetryPolicy(), Random(0), self.ledger, self.dead_letters)
        self.copies = _Copies(self.database, self.jobs)
        self.acls = _Acls(self.database, self.written)
        self.sources = _Sources(self.database, self.written)
        self.held_deletes = _HeldDeletes(self.database)
        self.states = _StoredStates(self.database)
        self.contents = _Contents(self.database)

    @staticmethod
    def _open(url: str, clock: Clock) -> Database:
        return _ReadingDatabase(url, clock)
