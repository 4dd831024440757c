"""Copies: documents with one content in one library. One of them is canonical, its rows stand for all, and the others have none.

The canonical document of a content is a row of `canonicals`, which every transaction that gives a document a content or takes it away
locks before it locks documents, contents in order. So no document is ever linked to one that is gone or has another content.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, case, delete, exists, or_, select, tuple_, union, update

from primer_core.failures import Deferred, DocumentFault, PrimerError, Reason
from primer_core.lanes import Lane
from primer_core.stages import Operation, State
from primer_resources.catalog.contents import lock_contents
from primer_resources.catalog.database import Database
from primer_resources.catalog.deployments import is_live
from primer_resources.catalog.generations import Left, lock_documents, slices
from primer_resources.catalog.jobs import Job, Jobs, NewJob
from primer_resources.catalog.schema import LIVE_STATES, canonicals, documents, in_states, index_state, jobs
from primer_resources.catalog.schema_bodies import contents, parsed
from primer_resources.catalog.upsert import insert_if_absent, insert_or_update


class Content(NamedTuple):
    """A content of a library: the place where equal bytes are one."""

    tenant_id: str
    library: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class DeadCopy:
    """A copy that died with its content: the canonical document, and the copy's dead letters."""

    canonical: str
    job_ids: tuple[int, ...]


_KEY = (canonicals.c.tenant_id, canonicals.c.library, canonicals.c.content_hash)
_PLACE = (documents.c.tenant_id, documents.c.library, documents.c.content_hash)
_LIVING = documents.c.deleted_at.is_(None)


class Copies:
    """Chooses canonical documents, links copies to them, and makes the jobs that follow."""

    def __init__(self, database: Database, jobs: Jobs) -> None:
        self._db = database
        self._jobs = jobs

    def lock(
        self,
        connection: Connection,
        place: tuple[str, str],
        doc_ids: Collection[str],
        changing: Collection[str] = (),
        hashes: Collection[str] = (),
    ) -> list[Content]:
        """Inside a transaction, before it changes a document: lock all that it will change, in the order that all others lock in.

        `doc_ids` are its documents. `changing` are those of them whose content or permissions may change, `hashes` what contents they
        and new documents of `place` (tenant, library) may get. Returns the contents that are locked, for `settle`.
        """
        known = self._contents_of(connection, changing)
        places = {place, *((content.tenant_id, content.library) for content in known.values())}
        wanted = sorted({*known.values(), *(Content(*each, content_hash) for each in places for content_hash in hashes)})
        lock_contents(connection, ((content.tenant_id, content.content_hash) for content in wanted))
        led: set[str] = set()
        for part in slices(wanted):
            rows = [{**content._asdict(), "doc_id": None} for content in part]
            # An update that changes nothing locks the row where there is one.
            lock = insert_or_update(self._db, canonicals, ("content_hash",)).values(rows).returning(canonicals.c.doc_id)
            led.update(doc_id for doc_id in connection.execute(lock).scalars() if doc_id in known)
        followers: list[str] = []
        for leading in slices(sorted(led)):
            theirs = documents.c.content_hash.in_({known[doc_id].content_hash for doc_id in leading})
            linked = select(documents.c.doc_id).where(theirs, documents.c.canonical_doc_id.in_(leading), _LIVING)
            followers.extend(connection.execute(linked).scalars())
        lock_documents(connection, {*doc_ids, *followers})
        return wanted

    def join(self, connection: Connection, doc_id: str, content_hash: str, index_versions: Sequence[str]) -> Operation:
        """Inside a transaction that has locked the content: a document has it now. Returns what its jobs are to do.

        The first document becomes canonical and goes its own way; any other is linked, and the canonical rows are to carry its ACL id.
        """
        row = connection.execute(select(documents.c.tenant_id, documents.c.library).where(documents.c.doc_id == doc_id)).one()
        content = Content(row.tenant_id, row.library, content_hash)
        # The transaction may have settled the content meanwhile, and forgotten it when its last document went.
        connection.execute(insert_if_absent(self._db, canonicals), {**content._asdict(), "doc_id": doc_id})
        free = or_(canonicals.c.doc_id.is_(None), canonicals.c.doc_id == doc_id)
        if connection.execute(update(canonicals).where(_is(content), free).values(doc_id=doc_id)).rowcount == 1:
            return Operation.UPSERT
        leading: str = connection.execute(select(canonicals.c.doc_id).where(_is(content))).scalar_one()
        connection.execute(update(documents).where(documents.c.doc_id == doc_id).values(canonical_doc_id=leading))
        self.rewrite(connection, leading, index_versions)
        return Operation.COPY

    def rewrite(self, connection: Connection, doc_id: str, index_versions: Sequence[str]) -> None:
        """Inside a transaction: the rows that stand for a document are to carry the ACL ids that its content has now."""
        leading = documents.alias("leading")
        statement = (
            select(leading)
            .join(documents, documents.c.canonical_doc_id == leading.c.doc_id)
            .where(documents.c.doc_id == doc_id, leading.c.bucket.is_not(None))
        )
        row = connection.execute(statement).one_or_none()
        if row is not None:
            self._jobs.add_rewrite(connection, self._job(row, Lane.FAST, Operation.ACL), index_versions)

    def settle(self, connection: Connection, locked: Iterable[Content], index_versions: Sequence[str]) -> None:
        """Inside a transaction that has locked these contents, when all its changes are made: a content whose canonical document is
        gone, or has another content now, gets another one, whose own rows are made; one that nobody has is forgotten."""
        for part in slices(sorted(set(locked))):
            statement = (
                select(*_KEY, documents.c.doc_id.label("leading"))
                .outerjoin(documents, and_(documents.c.doc_id == canonicals.c.doc_id, *_same_content(), _LIVING))
                .where(tuple_(*_KEY).in_(part))
            )
            for row in connection.execute(statement).all():
                if row.leading is None:
                    self._lead_anew(connection, Content(row.tenant_id, row.library, row.content_hash), index_versions)

    def _lead_anew(self, connection: Connection, content: Content, index_versions: Sequence[str]) -> None:
        theirs = and_(*(column == value for column, value in zip(_PLACE, content, strict=True)), _LIVING)
        row = connection.execute(select(documents).where(theirs).order_by(documents.c.doc_id).limit(1)).one_or_none()
        if row is None:
            connection.execute(delete(canonicals).where(_is(content)))
            return
        connection.execute(update(canonicals).where(_is(content)).values(doc_id=row.doc_id))
        connection.execute(update(documents).where(theirs).values(canonical_doc_id=row.doc_id))
        connection.execute(update(documents).where(documents.c.doc_id == row.doc_id).values(status="pending", reason=None))
        self._make_rows(connection, row.doc_id, index_versions)

    def _make_rows(self, connection: Connection, doc_id: str, index_versions: Sequence[str]) -> None:
        """The whole way for a document as it is; what was made of its content before is found in the stores, without the slow lane."""
        same = and_(parsed.c.tenant_id == documents.c.tenant_id, parsed.c.content_hash == documents.c.content_hash)
        is_parsed = exists().where(same, parsed.c.reason.is_(None))
        lane = case((is_parsed, Lane.FAST.value), else_=contents.c.lane).label("job_lane")
        its = and_(contents.c.tenant_id == documents.c.tenant_id, contents.c.content_hash == documents.c.content_hash)
        with_lane = select(documents, lane).join(contents, its)
        row = connection.execute(with_lane.where(documents.c.doc_id == doc_id)).one()
        self._jobs.add(connection, [self._job(row, Lane(row.job_lane), Operation.UPSERT)], index_versions)

    def _job(self, row: Row[Any], lane: Lane, operation: Operation) -> NewJob:
        return NewJob(row.doc_id, row.source_id, row.source_version, row.content_hash, row.bucket, lane, operation, self._db.clock.now())

    def _contents_of(self, connection: Connection, doc_ids: Collection[str]) -> dict[str, Content]:
        """doc_id → content of the living documents that have one."""
        found: dict[str, Content] = {}
        for part in slices(sorted(set(doc_ids))):
            statement = select(documents.c.doc_id, *_PLACE).where(
                documents.c.doc_id.in_(part), documents.c.content_hash.is_not(None), _LIVING
            )
            rows = connection.execute(statement)
            found.update({row.doc_id: Content(row.tenant_id, row.library, row.content_hash) for row in rows})
        return found

    def unready(self, index_version: str, copies: Sequence[Job]) -> dict[int, PrimerError]:
        """job_id → why a copy cannot be indexed: its content is a dead letter, whose reason it shares, or (Deferred) nobody has made the
        content's rows yet, which is then seen to."""
        state, copy, leading = index_state.alias("state"), documents.alias("copy"), documents.alias("leading")
        statement = (
            select(jobs.c.job_id, copy.c.title, copy.c.acl_id, leading.c.doc_id, leading.c.title.label("parsed_as"), state.c.acl_ids)
            .add_columns(and_(state.c.content_hash == jobs.c.content_hash, ~state.c.is_copy, state.c.generation > 0).label("stands"))
            .join(copy, copy.c.doc_id == jobs.c.doc_id)
            .join(leading, and_(leading.c.doc_id == copy.c.canonical_doc_id, leading.c.doc_id != copy.c.doc_id))
            .outerjoin(state, and_(state.c.doc_id == leading.c.doc_id, state.c.index_version == index_version))
            .where(copy.c.content_hash == jobs.c.content_hash, copy.c.deleted_at.is_(None))
        )
        found: dict[int, PrimerError] = {}
        for part in slices([job.job_id for job in copies]):
            with self._db.begin() as connection:
                for row in connection.execute(statement.where(jobs.c.job_id.in_(part))).all():
                    if not row.stands:
                        found[row.job_id] = self._why(connection, index_version, row)
                    elif row.acl_id not in (row.acl_ids or ()):
                        self.rewrite(connection, row.doc_id, [index_version])
        return found

    def _why(self, connection: Connection, index_version: str, row: Row[Any]) -> PrimerError:
        letters = select(jobs).where(
            jobs.c.doc_id == row.doc_id, jobs.c.index_version == index_version, in_states(jobs.c.state, [State.DEAD])
        )
        letter = connection.execute(letters.order_by(jobs.c.job_id.desc()).limit(1)).one_or_none()
        if letter is not None:
            return DocumentFault(Reason(letter.reason), letter.error.replace(row.parsed_as, row.title))
        under_way = and_(jobs.c.doc_id == row.doc_id, jobs.c.index_version == index_version, in_states(jobs.c.state, LIVE_STATES))
        if connection.execute(select(jobs.c.job_id).where(under_way, jobs.c.operation == Operation.UPSERT)).first() is None:
            self._make_rows(connection, row.doc_id, [index_version])
        return Deferred(f"the content of {row.title} is not indexed in {index_version} yet")

    def left(self, connection: Connection, index_version: str, gone: Iterable[Left]) -> None:
        """Inside the transaction of a flip, at its end: these documents were copies, so the rows that stood for them carry their ACL ids
        no longer than that is undone."""
        for each in sorted(gone, key=lambda each: each.doc_id):
            same = and_(*(a == b for a, b in zip(_PLACE[:2], _KEY[:2], strict=True)), canonicals.c.content_hash == each.content_hash)
            statement = select(canonicals.c.doc_id).join(documents, same).where(documents.c.doc_id == each.doc_id)
            leading = connection.execute(statement).scalar_one_or_none()
            if leading is not None and leading != each.doc_id:
                self.rewrite(connection, leading, [index_version])

    def dead_with(self, connection: Connection, index_version: str, indexed: Mapping[str, str]) -> dict[str, DeadCopy]:
        """Inside the transaction of a flip: copies (by doc_id) that died with the contents that are indexed now, given as doc_id of the
        document whose rows they are → content hash."""
        found: dict[str, DeadCopy] = {}
        for part in slices(sorted(indexed)):
            statement = (
                select(jobs.c.doc_id, jobs.c.job_id, documents.c.canonical_doc_id)
                .join(documents, documents.c.doc_id == jobs.c.doc_id)
                .where(documents.c.content_hash.in_({indexed[doc_id] for doc_id in part}), documents.c.canonical_doc_id.in_(part), _LIVING)
                .where(jobs.c.index_version == index_version, jobs.c.operation == Operation.COPY, in_states(jobs.c.state, [State.DEAD]))
            )
            for row in connection.execute(statement):
                before = found[row.doc_id].job_ids if row.doc_id in found else ()
                found[row.doc_id] = DeadCopy(row.canonical_doc_id, (*before, row.job_id))
        return found

    def revive(self, connection: Connection, index_version: str, dead: Mapping[str, DeadCopy]) -> None:
        """Inside a transaction that has locked these copies: their content is indexed after all, and so can they be."""
        again = {
            "state": State.PENDING_WRITE,
            "attempts": 0,
            "not_before": self._db.now(),
            "reason": None,
            "error": None,
            "finished_at": None,
        }
        for part in slices(sorted(dead)):
            letters = [job_id for doc_id in part for job_id in dead[doc_id].job_ids]
            connection.execute(update(jobs).where(jobs.c.job_id.in_(letters), jobs.c.state == State.DEAD).values(**again))
            theirs = and_(documents.c.doc_id.in_(part), is_live(index_version))
            connection.execute(update(documents).where(theirs).values(status="pending", reason=None))

    def acl_ids(self, connection: Connection, doc_id: str, index_version: str, content_hash: str | None) -> tuple[str, ...]:
        """Inside a transaction: the ACL ids that a document's rows of a content are to carry: its own, those of its copies, and those of
        documents that are still indexed as copies of the content. Too many are no leak: the catalog decides who may see what, for each
        document as it is now."""
        leading, copy, state = documents.alias("leading"), documents.alias("copy"), index_state.alias("state")
        same = and_(copy.c.tenant_id == leading.c.tenant_id, copy.c.library == leading.c.library, copy.c.deleted_at.is_(None))
        mine = leading.c.doc_id == doc_id
        linked = and_(copy.c.content_hash == leading.c.content_hash, copy.c.canonical_doc_id == leading.c.doc_id, same)
        indexed = select(copy.c.acl_id).join(state, state.c.doc_id == copy.c.doc_id).join(leading, same)
        in_version = and_(state.c.index_version == index_version, state.c.content_hash == content_hash, state.c.is_copy)
        every = union(
            select(leading.c.acl_id).where(mine), select(copy.c.acl_id).join(leading, linked).where(mine), indexed.where(mine, in_version)
        )
        return tuple(sorted(connection.execute(every).scalars()))


def _is(content: Content) -> ColumnElement[bool]:
    return and_(*(column == value for column, value in zip(_KEY, content, strict=True)))


def _same_content() -> tuple[ColumnElement[bool], ...]:
    return tuple(a == b for a, b in zip(_PLACE, _KEY, strict=True))
