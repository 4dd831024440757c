"""A sync of what events tell: the source is asked for each document that one names, and what it shows is settled like a piece of a feed.

An event is no content and no order of its own. What is seen when the source is asked, under its lease, is the newest there is; so events
may come late, twice and in any order.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from primer_assets.source_feed import FeedSync
from primer_assets.source_reading import Reading
from primer_core import ids
from primer_core.events import EventState, Shown, compare_labels, compare_shown
from primer_core.failures import Deferred, PrimerError, Transient
from primer_core.source_time import from_ns
from primer_core.stages import Operation
from primer_resources.catalog.documents import KnownDocument
from primer_resources.catalog.events import UNTIL_KNOWN, Event
from primer_resources.catalog.jobs import DEFER
from primer_resources.connectors.base import ORDER_STEP, Change, ListedItem
from primer_resources.scratch import Scratch

EVENTS_A_BATCH = 100
"""Events settled in one transaction: what a crash may look at again."""


@dataclass(slots=True)
class _Looked:
    """What looking at the documents of a batch gave: path → the item as it stands (None: the source has none), or why it did not answer."""

    shown: dict[str, ListedItem | None] = field(default_factory=dict)
    failed: dict[str, PrimerError] = field(default_factory=dict)


@dataclass(slots=True)
class EventSync(FeedSync):
    """One sync that settles events as well."""

    def settle_events(self, received_until: datetime) -> None:
        """Settle the events that are due and were received until then. Ends early where the source does not answer; they wait."""
        self._acls = self.catalog.acls.of_source(self.source.source_id)
        after, answers = 0, True
        with Scratch() as work:
            reading = Reading(self.catalog, self.store, self.connector, self.expander, self.fast, work)
            while answers and (batch := self.catalog.events.due(self.source.source_id, received_until, after, EVENTS_A_BATCH)):
                after = batch[-1].seq
                answers = self._settle_batch(batch, reading)
            self.notices = (*self.notices, *reading.notices)
            self.report.bytes_read += reading.bytes_read

    def _settle_batch(self, batch: Sequence[Event], reading: Reading) -> bool:
        """One batch. Returns False where the source answered to nothing."""
        by_path = self._by_path(batch)
        known = self.catalog.documents.by_path(self.source.source_id, by_path)
        self._tell(by_path, known)
        told = {path: [event for event in events if event.op is not Operation.ACL or path not in known] for path, events in by_path.items()}
        followed = {path for path, document in known.items() if all(self._has_followed(event, document) for event in told[path])}
        looked = self._look([path for path in told if told[path] and path not in followed])
        gone = self._tombstones([path for path in looked.shown if path not in known])
        changes = []
        for path, item in looked.shown.items():
            if item is None or not _is_from_before(item, gone.get(path)):
                change = _seen(path, item, told[path], known.get(path), gone.get(path))
                changes.extend([] if change is None else [change])

        def end(connection: Connection) -> None:
            self.catalog.events.finish(connection, [event.seq for path in followed for event in told[path]])
            changing = self.catalog.documents.changing(connection, self.source.source_id, looked.shown)
            for path, item in looked.shown.items():
                for event in told[path]:
                    if path in changing:
                        error = f"{self.source.source_id}/{path} kept changing while it was read"
                        self.catalog.events.put_back(connection, event, error, EventState.DEAD)
                    elif item is None:
                        self._end_unseen(connection, event, known.get(path) or gone.get(path))
                    else:
                        self._end_seen(connection, event, item, gone.get(path))
            self._put_back_unanswered(connection, looked, told)

        self._settle_changes(changes, reading, end)
        return not looked.failed or bool(looked.shown)

    def _by_path(self, batch: Sequence[Event]) -> dict[str, list[Event]]:
        """path → its events, each where its document stands now. A member is asked for by what holds it."""
        by_id = self.catalog.documents.by_id({event.doc_id for event in batch if event.doc_id is not None})
        by_path = self.catalog.documents.by_path(self.source.source_id, {event.path for event in batch})
        found: dict[str, list[Event]] = {}
        for event in batch:
            document = by_path.get(event.path) if event.doc_id is None else by_id.get(event.doc_id)
            if document is None or document.deleted_at is not None:
                found.setdefault(event.path, []).append(event)
            elif document.container is not None and event.op is Operation.ACL:
                with self.catalog.database.begin() as connection:
                    self.catalog.events.bury(connection, event.seq, members_follow(document.path, document.container))
            else:
                found.setdefault(document.container or document.path, []).append(event)
        return found

    def _tell(self, by_path: Mapping[str, Sequence[Event]], known: Collection[str]) -> None:
        """Permissions of documents that became known since they were told."""
        acls = [event for path in by_path if path in known for event in by_path[path] if event.op is Operation.ACL]
        if acls:
            with self.catalog.database.begin() as connection:
                versions = self.catalog.deployments.written_to(connection)
                self.catalog.sources.check(connection, self.source.source_id, self.epoch)
                self.catalog.inbox.tell(connection, self.source, acls, versions)

    def _tombstones(self, paths: Sequence[str]) -> dict[str, KnownDocument]:
        """path → the document that was deleted there."""
        doc_ids = {ids.doc_id(self.source.source_id, path): path for path in paths}
        found = self.catalog.documents.by_id(doc_ids)
        return {doc_ids[doc_id]: document for doc_id, document in found.items() if document.deleted_at is not None}

    def _has_followed(self, event: Event, document: KnownDocument) -> bool:
        """Whether the feed, which was followed before this, has brought the version that was told. A source without one is always asked."""
        if self.source.cursor is None or event.op is not Operation.UPSERT:
            return False
        order = compare_labels(document.source_version.rpartition("-")[0], event.source_version)
        return order >= 0 if order is not None else document.event_time >= event.event_time

    def _look(self, paths: Sequence[str]) -> _Looked:
        looked = _Looked()
        cursor = self.catalog.sources.get(self.source.source_id).cursor  # the feed was followed since this sync began
        for path in paths:
            try:
                looked.shown[path] = self.connector.look(path, cursor)
            except (Transient, Deferred) as error:
                looked.failed[path] = error
        return looked

    def _end_unseen(self, connection: Connection, event: Event, document: KnownDocument | None) -> None:
        """The source has no such document. `document` is what is known of it: it was there a moment ago, or is a tombstone."""
        where = f"{self.source.source_id}/{event.path}"
        if event.op is Operation.ACL:
            error = f"{where} is not known yet; these permissions hold from when it is"
            self.catalog.events.put_off(connection, [event.seq], UNTIL_KNOWN, error)
        elif event.op is Operation.UPSERT and (document is None or (document.deleted_at and document.event_time < event.event_time)):
            self.catalog.events.put_back(connection, event, f"the source shows no document {where}", EventState.DONE)
        else:
            self.catalog.events.finish(connection, [event.seq])

    def _end_seen(self, connection: Connection, event: Event, item: ListedItem, tombstone: KnownDocument | None) -> None:
        """The source shows the document: the event is done, unless the state that it tells of is not there yet."""
        if tombstone is not None and _is_from_before(item, tombstone):
            deleted = tombstone.event_time.isoformat()
            error = f"the source shows {self.source.source_id}/{event.path} as it was before it was deleted at {deleted}"
            self.catalog.events.put_back(connection, event, error, EventState.DEAD)
            return
        modified = from_ns(item.modified_ns)
        is_delete = event.op is Operation.DELETE
        shown = compare_shown(event.source_version, event.event_time, item.version, modified, is_delete)
        if shown is Shown.CURRENT or event.op is Operation.ACL:
            self.catalog.events.finish(connection, [event.seq])
            return
        seen, what = item.version or modified.isoformat(), "the delete after" if is_delete else "version"
        told = f"{what} {event.source_version} of {event.event_time.isoformat()}"
        error = f"the source shows version {seen} of {self.source.source_id}/{event.path}, older than {told}"
        self.catalog.events.put_back(connection, event, error, EventState.DEAD if shown is Shown.OLDER else EventState.DONE)

    def _put_back_unanswered(self, connection: Connection, looked: _Looked, told: Mapping[str, Sequence[Event]]) -> None:
        """A look that failed where others did not is an attempt. Where all failed the source is down, and no event is to blame."""
        for path, error in looked.failed.items():
            if looked.shown and isinstance(error, Transient):
                for event in told[path]:
                    self.catalog.events.put_back(connection, event, str(error), EventState.DEAD)
            else:
                self.catalog.events.put_off(connection, [event.seq for event in told[path]], DEFER, str(error))


def members_follow(path: str, container: str) -> str:
    """Why permissions of a member cannot be told."""
    return f"{path} is a member of {container}, whose permissions it has; tell those of {container}"


def _is_from_before(item: ListedItem, tombstone: KnownDocument | None) -> bool:
    """Whether a source that orders versions shows one from before the delete: a part of it lags. Where times are all it has, as in a
    folder, an older file was put in place."""
    return tombstone is not None and item.order != 0 and from_ns(item.modified_ns) < tombstone.event_time


def _seen(
    path: str, item: ListedItem | None, told: Sequence[Event], document: KnownDocument | None, tombstone: KnownDocument | None
) -> Change | None:
    """What is seen, as a change of a feed; None where nothing is there and nothing was."""
    if item is not None:
        order = item.order
        if order == 0:
            # The source orders versions by their times alone, and those go back where an older file is put in place.
            least = 0 if tombstone is None else tombstone.version_order + ORDER_STEP
            order = max(item.modified_ns, least if document is None else document.version_order)
        return Change(Operation.UPSERT, path, item.version, order, from_ns(item.modified_ns), item)
    if document is None:
        return None
    newest = max(told, key=lambda event: (event.event_time, event.seq))
    return Change(Operation.DELETE, path, newest.source_version, document.version_order + ORDER_STEP, newest.event_time)
