"""What is told is taken in here: events into the inbox, and permissions at once, since a group that lost a document must not see it while
the event waits for its source's turn."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, or_, select, update

from primer_core import ids
from primer_core.stages import Operation
from primer_resources.catalog.acls import TOLD_SCOPE, AclRow, Acls
from primer_resources.catalog.copies import Copies
from primer_resources.catalog.database import Database
from primer_resources.catalog.deployments import Deployments
from primer_resources.catalog.documents import Documents, KnownDocument
from primer_resources.catalog.events import Event, Events, NewEvent
from primer_resources.catalog.schema import documents
from primer_resources.catalog.sources import Source, Sources


class Inbox:
    """Takes events in, and moves documents to the permissions that they tell."""

    def __init__(
        self,
        database: Database,
        deployments: Deployments,
        sources: Sources,
        documents_: Documents,
        acls: Acls,
        copies: Copies,
        events: Events,
    ) -> None:
        self._db, self._deployments = database, deployments
        self._sources, self._documents, self._acls, self._copies, self._events = sources, documents_, acls, copies, events

    def receive(self, source: Source, told: Sequence[NewEvent]) -> set[str]:
        """Keep events of one source; permissions of known documents hold when this returns. Returns the event_ids that were new."""
        with self._db.begin() as connection:
            index_versions = self._deployments.written_to(connection)
            fresh = self._events.receive(connection, told)
            place = {event.event_id: number for number, event in enumerate(told)}
            acls = sorted((event for event in fresh if event.op is Operation.ACL), key=lambda event: place[event.event_id])
            if any(event.acl_groups is None for event in acls):
                self._sources.make_due(connection, source.source_id, in_full=True)
            self.tell(connection, source, acls, index_versions)
        return {event.event_id for event in fresh}

    def tell(self, connection: Connection, source: Source, acls: Sequence[Event], index_versions: Sequence[str]) -> None:
        """Inside a transaction: acl events of documents that are known are applied and done; those of others stay in the inbox.

        Of two with one time the later in `acls` counts.
        """
        found = {event.seq: self._documents.find(connection, source.source_id, event.doc_id, event.path) for event in acls}
        members = self._members(connection, source, [document for document in found.values() if document is not None])
        changing = {document.doc_id for document in found.values() if document is not None}
        changing |= {member.doc_id for inside in members.values() for member in inside}
        self._copies.lock(connection, (source.tenant_id, source.library), changing, changing)
        for event in sorted(acls, key=lambda event: event.event_time):
            document = found[event.seq]
            if document is None or document.container is not None:
                continue
            self._move(connection, source, event, [document, *members.get(document.path, ())], index_versions)
            self._events.finish(connection, [event.seq])

    def _members(self, connection: Connection, source: Source, containers: Collection[KnownDocument]) -> dict[str, list[KnownDocument]]:
        living = {document.path for document in containers if document.deleted_at is None}
        return self._documents.members_in(connection, source.source_id, living)

    def _move(
        self, connection: Connection, source: Source, event: Event, moved: Sequence[KnownDocument], index_versions: Sequence[str]
    ) -> None:
        """A document and its members under the ACL that is told, unless a later event told of it already."""
        document = moved[0]
        told = None if event.acl_groups is None else ids.acl_id(source.tenant_id, source.source_id, f"{TOLD_SCOPE}{document.doc_id}")
        ids_ = [each.doc_id for each in moved]
        now_under = select(documents.c.doc_id, documents.c.acl_id).where(documents.c.doc_id.in_(ids_))
        before = {row.doc_id: row.acl_id for row in connection.execute(now_under)}
        # One second may hold two events, and then the one that came later is taken as the later one.
        is_latest = or_(documents.c.acl_told_at.is_(None), documents.c.acl_told_at <= event.event_time)
        values = {"told_acl_id": told, "acl_told_at": event.event_time}
        if told is not None:
            values |= {"acl_id": told, "acl_error": None}
        held = connection.execute(update(documents).where(documents.c.doc_id == document.doc_id, is_latest).values(**values))
        if held.rowcount != 1:
            return
        connection.execute(update(documents).where(documents.c.doc_id.in_(ids_)).values(**values))
        if told is None or event.acl_groups is None:
            return
        row = AclRow(told, f"{TOLD_SCOPE}{document.doc_id}", tuple(sorted(set(event.acl_groups))), readable=True, error="")
        self._acls.put(connection, source, row, self._db.clock.now())
        for each in moved:
            if before[each.doc_id] != told and each.bucket is not None and each.deleted_at is None:
                self._copies.rewrite(connection, each.doc_id, index_versions)
