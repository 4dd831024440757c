"""Reviews: the pages of each content that were read below the bar, what people decided on them, and the jobs that a decision makes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, or_, select, tuple_, update

from primer_core.failures import PrimerError
from primer_core.reviews import ReviewState, page_label
from primer_core.stages import Operation
from primer_resources.catalog.contents import is_content, lock_contents
from primer_resources.catalog.database import Database
from primer_resources.catalog.deployments import Deployments
from primer_resources.catalog.generations import lock_documents, slices
from primer_resources.catalog.jobs import Jobs, NewJob
from primer_resources.catalog.schema import documents, in_states
from primer_resources.catalog.schema_bodies import contents, reviews
from primer_resources.catalog.upsert import insert_or_update


@dataclass(frozen=True, slots=True)
class SeenPage:
    """A page, or a region of one, as a parse saw it. `region` counts those of one page from 0; `object` is its picture's key."""

    page: int
    region: int
    confidence: float
    text: str
    object: str


@dataclass(frozen=True, slots=True)
class Review:
    """A page to review, of one document that has the content; a content that several documents have is listed with each."""

    doc_id: str
    tenant_id: str
    uri: str
    source: str
    path: str
    page: int
    region: int
    confidence: float
    state: str
    text: str
    object: str
    parser_version: str
    decided_at: datetime | None
    decided_by: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """The pages that a decision was on, and the documents that are made again because of it."""

    pages: tuple[int, ...]
    doc_ids: tuple[str, ...]


class Reviews:
    """Records, lists and decides pages."""

    def __init__(self, database: Database, deployments: Deployments, jobs: Jobs) -> None:
        self._db, self._deployments = database, deployments
        self._jobs = jobs

    def accepted(self, connection: Connection, tenant_id: str, hashes: Collection[str]) -> dict[str, str]:
        """Inside a transaction: content of a tenant → label of the pages that people let through.

        The contents stay locked until its end, so no decision comes between this answer and what is done with it: a decision either
        sees the jobs that were moved on by it, or is seen here.
        """
        lock_contents(connection, ((tenant_id, content) for content in hashes))
        return self.let_through(connection, tenant_id, hashes)

    def let_through(self, connection: Connection, tenant_id: str, hashes: Collection[str]) -> dict[str, str]:
        """The same answer for a look, or inside a transaction that has locked the contents."""
        pages: dict[str, set[int]] = {content: set() for content in hashes}
        for part in slices(sorted(hashes)):
            mine = and_(reviews.c.tenant_id == tenant_id, reviews.c.content_hash.in_(part))
            let_through = and_(mine, reviews.c.state == ReviewState.ACCEPTED)
            for row in connection.execute(select(reviews.c.content_hash, reviews.c.page).where(let_through)):
                pages[row.content_hash].add(row.page)
        return {content: page_label(found) for content, found in pages.items()}

    def record(
        self,
        connection: Connection,
        tenant_id: str,
        content_hash: str,
        parser_version: str,
        in_use: Collection[str],
        seen: Sequence[SeenPage],
    ) -> None:
        """Inside a transaction: what a parse saw of a content. A page that was decided stays as it is.

        Open pages that this parser version saw before and does not any more go, and so do those of versions that are not `in_use`.
        """
        mine = and_(reviews.c.tenant_id == tenant_id, reviews.c.content_hash == content_hash)
        outdated = or_(reviews.c.parser_version == parser_version, reviews.c.parser_version.not_in(sorted(in_use)))
        still = tuple_(reviews.c.page, reviews.c.region).in_([(each.page, each.region) for each in seen])
        is_open = in_states(reviews.c.state, [ReviewState.OPEN])
        connection.execute(delete(reviews).where(mine, is_open, outdated, ~still))
        if not seen:
            return
        changed = ("parser_version", "confidence", "text", "object")
        statement = insert_or_update(self._db, reviews, changed, where=is_open)
        rows = [
            {
                "tenant_id": tenant_id,
                "content_hash": content_hash,
                "page": each.page,
                "region": each.region,
                "parser_version": parser_version,
                "confidence": each.confidence,
                "text": each.text,
                "object": each.object,
                "state": ReviewState.OPEN,
            }
            for each in seen
        ]
        connection.execute(statement, rows)

    def listed(
        self, states: Collection[ReviewState], source_id: str | None = None, doc_id: str | None = None, pages: Collection[int] = ()
    ) -> list[Review]:
        """Pages in these states of living documents, by source, path, page and region; all pages when none is named."""
        statement = (
            select(reviews, documents.c.doc_id, documents.c.uri, documents.c.path, documents.c.source_id)
            .join(documents, and_(*(documents.c[name] == reviews.c[name] for name in ("tenant_id", "content_hash"))))
            .where(in_states(reviews.c.state, states), documents.c.deleted_at.is_(None))
            .order_by(documents.c.source_id, documents.c.path, documents.c.doc_id, reviews.c.page, reviews.c.region)
        )
        if source_id is not None:
            statement = statement.where(documents.c.source_id == source_id)
        if doc_id is not None:
            statement = statement.where(documents.c.doc_id == doc_id)
        if pages:
            statement = statement.where(reviews.c.page.in_(sorted(pages)))
        with self._db.read() as connection:
            return [_review(row) for row in connection.execute(statement)]

    def decide(
        self,
        tenant_id: str,
        content_hash: str,
        pages: Collection[int],
        state: ReviewState,
        decided_by: str,
    ) -> Decision:
        """Decide pages of a tenant's content; every page that waits for it when none is named. A decision may be changed by another.

        Where that changes which pages are let through, the living documents with rows of this content get a job an index version, in the
        same transaction; their copies follow them. Raises PrimerError where a named page was never listed, or where none waits.
        """
        mine = and_(reviews.c.tenant_id == tenant_id, reviews.c.content_hash == content_hash)
        with self._db.begin() as connection:
            index_versions = self._deployments.written_to(connection)
            before = self.accepted(connection, tenant_id, [content_hash])[content_hash]
            listed = connection.execute(select(reviews.c.page, reviews.c.state).where(mine)).all()
            chosen = set(pages) or {row.page for row in listed if row.state == ReviewState.OPEN}
            self._check(chosen, {row.page: row.state for row in listed})
            connection.execute(
                update(reviews)
                .where(mine, reviews.c.page.in_(sorted(chosen)))
                .values(state=state, decided_at=self._db.now(), decided_by=decided_by)
            )
            again = before != self.accepted(connection, tenant_id, [content_hash])[content_hash]
            made = self._make_again(connection, tenant_id, content_hash, index_versions) if again else ()
        return Decision(tuple(sorted(chosen)), made)

    @staticmethod
    def _check(chosen: Collection[int], listed: dict[int, str]) -> None:
        waiting = page_label(page for page, state in listed.items() if state == ReviewState.OPEN) or "none"
        unknown = sorted(set(chosen) - set(listed))
        if unknown:
            raise PrimerError(f"page {page_label(unknown)} is not under review; pages that wait: {waiting}. See `primer review list --all`")
        if not chosen:
            raise PrimerError("no page of this document waits for a review; name the pages to change an earlier decision")

    def _make_again(self, connection: Connection, tenant_id: str, content_hash: str, index_versions: Sequence[str]) -> tuple[str, ...]:
        """Jobs for the living canonical documents of a content. They are locked in the order that all lock them in."""
        leading = documents.c.canonical_doc_id == documents.c.doc_id
        mine = and_(documents.c.tenant_id == tenant_id, documents.c.content_hash == content_hash)
        living = and_(mine, leading, documents.c.deleted_at.is_(None), documents.c.bucket.is_not(None))
        lock_documents(connection, connection.execute(select(documents.c.doc_id).where(living)).scalars())
        lane = connection.execute(select(contents.c.lane).where(is_content(tenant_id, content_hash))).scalar_one()
        found = connection.execute(select(documents).where(living).order_by(documents.c.doc_id)).all()
        now = self._db.now()
        new = [
            NewJob(row.doc_id, row.source_id, row.source_version, content_hash, row.bucket, lane, Operation.UPSERT, now) for row in found
        ]
        self._jobs.add(connection, new, index_versions)
        ids = tuple(row.doc_id for row in found)
        for part in slices(ids):
            connection.execute(update(documents).where(documents.c.doc_id.in_(part)).values(status="pending", reason=None))
        return ids


def _review(row: Row[Any]) -> Review:
    return Review(
        row.doc_id,
        row.tenant_id,
        row.uri,
        row.source_id,
        row.path,
        row.page,
        row.region,
        row.confidence,
        row.state,
        row.text,
        row.object,
        row.parser_version,
        row.decided_at,
        row.decided_by,
    )
