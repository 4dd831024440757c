"""Replays: pages of documents judged from their manifests, and the jobs that take those up which have all that a stage needs.

Beside a live sync a replay is safe by its locks and by its versions: its job is on the version that a document has under lock, it is made
only where no job of the document is under way, and any version that comes later is behind it in line and wins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, or_, select, tuple_, update

from primer_core.failures import Deferred
from primer_core.lanes import Lane
from primer_core.outcomes import Outcome
from primer_core.part_keys import DOCUMENT, ELEMENTS
from primer_core.replay import Judgement, Kept, ReplayAction, ReplayVerdict, Selectors, judge_replay
from primer_core.reviews import output_version
from primer_core.stages import CHUNK, PARSE, WRITE, Operation, Stage
from primer_core.stored_states import Manifest, intake_state, pipeline_state
from primer_resources.catalog.contents import lock_contents
from primer_resources.catalog.database import Database
from primer_resources.catalog.deployments import IndexVersion, is_live
from primer_resources.catalog.generations import lock_documents, slices
from primer_resources.catalog.job_order import LIVE
from primer_resources.catalog.jobs import Job, Jobs, NewJob
from primer_resources.catalog.ledger import Entry, Ledger
from primer_resources.catalog.parses import Parses
from primer_resources.catalog.reviews import Reviews
from primer_resources.catalog.schema import documents, jobs
from primer_resources.catalog.schema_bodies import contents, parsed, stored_states
from primer_resources.catalog.sources import Source

PAGE = 200
"""Documents judged at once, and replayed in one transaction."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that meets the selectors: how its newest attempt ended, the verdict on it, and what is done for it, or in a dry run would
    be; None where nothing can be."""

    doc_id: str
    source_id: str
    path: str
    outcome: Outcome
    source_version: str
    judgement: Judgement
    action: ReplayAction | None


class Replays:
    """Finds, judges and replays documents."""

    def __init__(self, database: Database, ledger: Ledger, jobs_: Jobs, reviews: Reviews, parses: Parses) -> None:
        self._db = database
        self._ledger, self._jobs, self._reviews, self._parses = ledger, jobs_, reviews, parses

    def pages(self, selectors: Selectors, version: IndexVersion, sources: Sequence[Source]) -> Iterator[list[Entry]]:
        """Pages of the ledger's entries that meet the selectors, of these sources, each page in a transaction of its own."""
        mine = {source.source_id for source in sources}
        for part in slices(tuple(dict.fromkeys(selectors.doc_ids)), PAGE):
            entries = self._ledger.of(part, version.name).values()
            met = [each for each in entries if each.source_id in mine and selectors.meets(each.source_id, each.outcome, each.ended_at)]
            yield sorted(met, key=lambda each: each.doc_id)
        if selectors.doc_ids:
            return
        for source_id in sorted(mine):
            for outcome in Outcome:
                if selectors.source_id in (None, source_id) and selectors.outcome in (None, outcome):
                    yield from self._turn(selectors, version.name, source_id, outcome)

    def _turn(self, selectors: Selectors, index_version: str, source_id: str, outcome: Outcome) -> Iterator[list[Entry]]:
        after = ""
        while True:
            page = self._ledger.with_outcome(outcome, index_version, source_id, selectors.since, selectors.until, after, PAGE)
            yield page
            if len(page) < PAGE:
                return
            after = page[-1].doc_id

    def look(self, entries: Sequence[Entry], version: IndexVersion, stage: Stage, sources: Sequence[Source]) -> list[Candidate]:
        """Judge a page of entries; nothing is changed."""
        with self._db.read() as connection:
            return [candidate for candidate, _ in self._judge(connection, entries, version, stage, sources)]

    def apply(self, entries: Sequence[Entry], version: IndexVersion, stage: Stage, sources: Sequence[Source]) -> list[Candidate]:
        """Judge a page of entries and act on it, in one transaction. What is to be fetched waits for the next sync that sees it: whoever
        calls makes its source due."""
        ids = [entry.doc_id for entry in entries]
        with self._db.begin() as connection:
            theirs = documents.c.doc_id.in_(ids)
            held = connection.execute(select(documents.c.tenant_id, documents.c.content_hash).where(theirs)).all()
            lock_contents(connection, ((row.tenant_id, row.content_hash) for row in held if row.content_hash is not None))
            lock_documents(connection, ids)
            judged = self._judge(connection, entries, version, stage, sources)
            for candidate, facts in judged:
                if candidate.action is ReplayAction.FETCH or (candidate.action is ReplayAction.JOB and stage is PARSE):
                    self.parse_anew(connection, facts, version)
                if candidate.action is ReplayAction.JOB:
                    self._replay(connection, facts, version, stage)
            self.fetch_again(connection, [facts.row.doc_id for candidate, facts in judged if candidate.action is ReplayAction.FETCH])
        return [candidate for candidate, _ in judged]

    def parse_anew(self, connection: Connection, facts: "Facts", version: IndexVersion) -> None:
        """Inside a transaction that has locked the content: what is not kept of a parse counts as parsed no longer, or its documents would
        pass the stage and find nothing after it."""
        row = facts.row
        if row.content_hash is not None and not (facts.output.has(*DOCUMENT) and facts.output.has(*ELEMENTS)):
            output = output_version(version.recipe.parser.version, facts.accepted_pages)
            self._parses.forget(connection, row.tenant_id, row.content_hash, [output])

    def _replay(self, connection: Connection, facts: "Facts", version: IndexVersion, stage: Stage) -> None:
        row = facts.row
        at = WRITE if facts.is_copy else stage
        self._jobs.add_replay(connection, facts.job(at, self._db.now()), version.name, at, facts.accepted_pages)
        mine = and_(documents.c.doc_id == row.doc_id, is_live(version.name))
        connection.execute(update(documents).where(mine).values(status="pending", reason=None))

    def fetch_again(self, connection: Connection, ids: Sequence[str]) -> None:
        """Inside a transaction that has locked these documents: the next sync that sees them fetches them again, and what holds them, since
        a member comes out of its container."""
        mine = select(documents.c.source_id, documents.c.container).where(documents.c.doc_id.in_(ids), documents.c.container.is_not(None))
        holders = {(row.source_id, row.container) for row in connection.execute(mine)}
        inside = and_(tuple_(documents.c.source_id, documents.c.path).in_(sorted(holders)), documents.c.deleted_at.is_(None))
        if ids:
            marked = update(documents).where(or_(documents.c.doc_id.in_(ids), inside))
            connection.execute(marked.values(fetch_again=True))

    def rebuild(self, job: Job, content_hash: str, accepted_pages: str, owner: str) -> None:
        """A held permission change whose rows cannot be planned, since the chunk set that they are of is not kept any more: a job that
        makes the chunk set again and writes the rows takes its place, or it waits where the document is on its way to another content."""
        with self._db.begin() as connection:
            lock_documents(connection, [job.doc_id])
            row = connection.execute(select(documents).where(documents.c.doc_id == job.doc_id)).one()
            others = select(jobs.c.job_id).where(jobs.c.doc_id == job.doc_id, jobs.c.index_version == job.index_version, LIVE)
            is_busy = connection.execute(others.where(jobs.c.operation != Operation.ACL).limit(1)).first() is not None
            is_same = (row.content_hash, row.canonical_doc_id, row.deleted_at) == (content_hash, job.doc_id, None)
            if is_same and not is_busy:
                self._jobs.put_back(connection, WRITE, [job], owner)
                again = NewJob(
                    row.doc_id,
                    row.source_id,
                    row.source_version,
                    content_hash,
                    row.bucket,
                    Lane.FAST,
                    Operation.UPSERT,
                    self._db.now(),
                )
                self._jobs.add_replay(connection, again, job.index_version, CHUNK, accepted_pages)
                return
        self._jobs.fail(WRITE, job, owner, Deferred(f"document {job.doc_id} has no chunk set; its rows follow when its next job ends"))

    def _judge(
        self, connection: Connection, entries: Sequence[Entry], version: IndexVersion, stage: Stage, sources: Sequence[Source]
    ) -> list[tuple[Candidate, "Facts"]]:
        standing = {source.source_id for source in sources if source.removed_at is None}
        known = self.facts(connection, [entry.doc_id for entry in entries], version)
        judged = []
        for entry in entries:
            facts = known[entry.doc_id]
            judgement = judge_replay(stage, facts.kept(version, entry.source_id in standing))
            action = None if judgement.verdict is ReplayVerdict.BODY_MISSING else ReplayAction.FETCH
            action = ReplayAction.JOB if judgement.verdict is ReplayVerdict.REPLAYABLE else action
            if action is not None and facts.is_under_way:
                action = ReplayAction.UNDER_WAY
            path = facts.row.path
            candidate = Candidate(entry.doc_id, entry.source_id, path, entry.outcome, facts.row.source_version, judgement, action)
            judged.append((candidate, facts))
        return judged

    def facts(self, connection: Connection, ids: Sequence[str], version: IndexVersion) -> dict[str, "Facts"]:
        """Inside a transaction: doc_id → what is known of it, a fixed number of statements a page."""
        rows = connection.execute(select(documents).where(documents.c.doc_id.in_(ids))).all()
        busy = select(jobs.c.doc_id).where(jobs.c.doc_id.in_(ids), jobs.c.index_version == version.name, LIVE)
        under_way = set(connection.execute(busy.where(jobs.c.operation != Operation.ACL)).scalars())
        facts: dict[str, Facts] = {}
        for tenant_id in sorted({row.tenant_id for row in rows}):
            mine = [row for row in rows if row.tenant_id == tenant_id]
            hashes = {row.content_hash for row in mine if row.content_hash is not None}
            labels = self._reviews.let_through(connection, tenant_id, hashes)
            lanes = self._lanes(connection, tenant_id, hashes)
            for row in mine:
                label = labels.get(row.content_hash, "")
                lane = lanes.get(row.content_hash, Lane.FAST)
                facts[row.doc_id] = Facts(row, Manifest(), Manifest(), label, lane, row.doc_id in under_way)
        return self._with_manifests(connection, facts, version)

    def _with_manifests(self, connection: Connection, facts: dict[str, "Facts"], version: IndexVersion) -> dict[str, "Facts"]:
        nodes: dict[str, tuple[str, str | None]] = {}
        for doc_id, each in facts.items():
            row, output = each.row, output_version(version.recipe.parser.version, each.accepted_pages)
            made = None if row.content_hash is None else pipeline_state(row.tenant_id, row.content_hash, output).node_id
            nodes[doc_id] = intake_state(row.tenant_id, doc_id).node_id, made
        every = {node for pair in nodes.values() for node in pair if node is not None}
        statement = select(stored_states.c.node_id, stored_states.c.manifest).where(stored_states.c.node_id.in_(sorted(every)))
        found = {row.node_id: Manifest.from_json(row.manifest) for row in connection.execute(statement)}
        return {
            doc_id: replace(facts[doc_id], intake=found.get(intake, Manifest()), output=found.get(made or "", Manifest()))
            for doc_id, (intake, made) in nodes.items()
        }

    def _lanes(self, connection: Connection, tenant_id: str, hashes: set[str]) -> dict[str, Lane]:
        """content → where its parse goes: what is parsed already passes the stage, and needs no slow lane for it."""
        mine = and_(contents.c.tenant_id == tenant_id, contents.c.content_hash.in_(sorted(hashes)))
        lanes = {row.content_hash: Lane(row.lane) for row in connection.execute(select(contents).where(mine))}
        same = and_(parsed.c.tenant_id == tenant_id, parsed.c.content_hash.in_(sorted(hashes)), parsed.c.reason.is_(None))
        return lanes | dict.fromkeys(connection.execute(select(parsed.c.content_hash).where(same)).scalars(), Lane.FAST)


@dataclass(frozen=True, slots=True)
class Facts:
    """A document's row, the manifests of its bytes and of its parse output, the label of the pages that shape that, the lane of its parse,
    and whether a job of it is under way."""

    row: Row[Any]
    intake: Manifest
    output: Manifest
    accepted_pages: str
    lane: Lane
    is_under_way: bool

    @property
    def is_copy(self) -> bool:
        """A copy has no passages of its own: it is only written, when the rows that stand for it are there."""
        return bool(self.row.canonical_doc_id != self.row.doc_id)

    def kept(self, version: IndexVersion, source_stands: bool) -> Kept:
        """What is kept of the document for an index version."""
        return Kept(self.intake, self.output, version.recipe.chunker.version, self.row.deleted_at is None, source_stands)

    def job(self, stage: Stage, now: datetime) -> NewJob:
        """A job on the version that the document has, which begins at `stage`."""
        row = self.row
        return NewJob(
            row.doc_id,
            row.source_id,
            row.source_version,
            row.content_hash,
            row.bucket,
            self.lane if stage is PARSE else Lane.FAST,
            Operation.COPY if self.is_copy else Operation.UPSERT,
            now,
        )
