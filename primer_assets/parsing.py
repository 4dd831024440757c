"""What the two lanes of parsing share: claims while workers come free, and what is committed when a parse ends.

A parse and the pages that it found below the bar are committed together with the jobs they move on, under a lock on the content: a
person who decides on a page at that moment either sees those jobs, or is seen here and the content is parsed again.
"""

import stat
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from primer_assets.lost_parts import BODY_GONE, ask_again
from primer_assets.stage_run import StageRun, Tally
from primer_core.failures import DocumentFault
from primer_core.lanes import Lane
from primer_core.reviews import ReviewPage, output_version, pages_of
from primer_core.stages import PARSE
from primer_core.stored_states import pipeline_state
from primer_resources.catalog.jobs import Job
from primer_resources.catalog.reviews import SeenPage
from primer_resources.memory import give_back_memory
from primer_resources.parser.base import ParseOutcome, Parser, ParseRequest
from primer_resources.scratch import Scratch

PARSE_FIGURES = ("parsed", "already_parsed", "elements", "pages", "pages_below_bar", "flagged")


@dataclass(frozen=True, slots=True)
class LaneWork:
    """How a lane works: its parser, how many jobs a claim takes (the setting's when None), and after how long it claims no more."""

    lane: Lane
    parser: Parser
    claim: int | None = None
    time: timedelta | None = None


@dataclass(slots=True)
class _UnderWay:
    """A content that is being parsed: whose it is, the jobs that wait for it, and the label of the pages it is parsed with."""

    tenant_id: str
    content_hash: str
    jobs: list[Job]
    accepted_pages: str


def parse_waiting(run: StageRun, work: LaneWork) -> Tally:
    """Claim and parse what stands at the entry of the parse stage in a lane. Raises SystemFault where the surroundings fail."""
    parsing = _Parsing(run, work, Tally())
    with run.working(), Scratch() as folder:
        for outcome in work.parser.parse_many(parsing.requests(folder)):
            (folder / outcome.key).unlink(missing_ok=True)
            parsing.settle(outcome)
    return parsing.tally


@dataclass(slots=True)
class _Parsing:
    run: StageRun
    work: LaneWork
    tally: Tally
    under_way: dict[str, _UnderWay] = field(default_factory=dict)
    in_use: frozenset[str] = frozenset()

    @property
    def parser_version(self) -> str:
        return self.run.version.recipe.parser.version

    def requests(self, folder: Path) -> Iterator[ParseRequest]:
        """Private copies, claimed and made as the parser asks for them, so that no worker waits for the end of a batch."""
        self.in_use = frozenset(version.recipe.parser.version for version in self.run.catalog.deployments.open_versions())
        for batch in self.run.claims(PARSE, self.run.buckets, self.work.lane, self.work.claim):
            self.tally.documents += len(batch)
            wanted = [key for tenant_id, jobs in self.run.by_tenant(batch).items() for key in self._admit(tenant_id, jobs)]
            titles = self.run.catalog.parses.titles([self.under_way[key].jobs[0].doc_id for key in wanted])
            for key in wanted:
                target, entry = folder / key, self.under_way[key]
                try:
                    self.run.store.of(entry.tenant_id).fetch_content(entry.content_hash, target)
                except DocumentFault as fault:
                    self._fail(self.under_way.pop(key).jobs, fault)
                    continue
                except BODY_GONE as error:
                    lost = self.under_way.pop(key)
                    ask_again(self.run, lost.tenant_id, lost.content_hash, lost.jobs, error, self.tally)
                    continue
                target.chmod(stat.S_IRUSR)
                pages = None
                if self.work.lane is Lane.SLOW:
                    pages = self.run.catalog.contents.pages(entry.tenant_id, entry.content_hash)
                yield ParseRequest(key, target, titles[entry.jobs[0].doc_id], pages_of(entry.accepted_pages), pages)
            give_back_memory()
            if self.work.time is not None and time.monotonic() - self.tally.started > self.work.time.total_seconds():
                return

    def _admit(self, tenant_id: str, batch: Sequence[Job]) -> list[str]:
        """The keys of a tenant's contents, of claimed jobs, that are to be parsed. What is parsed already is passed on; jobs of one under
        way wait for it."""
        by_content: dict[str, list[Job]] = defaultdict(list)
        for job in batch:
            by_content[job.content_hash or ""].append(job)
        keys = {content: pipeline_state(tenant_id, content, self.parser_version).node_id for content in by_content}
        for content in [content for content, key in keys.items() if key in self.under_way]:
            self.under_way[keys.pop(content)].jobs.extend(by_content.pop(content))
        catalog, owner = self.run.catalog, self.run.owner
        with catalog.database.begin() as connection:
            accepted = catalog.reviews.accepted(connection, tenant_id, by_content)
            versions = {content: output_version(self.parser_version, label) for content, label in accepted.items()}
            for content in catalog.parses.known(connection, tenant_id, versions):
                ready = by_content.pop(content)
                catalog.jobs.complete_parse(connection, ready, owner, {}, accepted[content])
                self.tally.counts["already_parsed"] += len(ready)
        for content, jobs in by_content.items():
            self.under_way[keys[content]] = _UnderWay(tenant_id, content, jobs, accepted[content])
        return [keys[content] for content in by_content]

    def settle(self, outcome: ParseOutcome) -> None:
        """Commit what came of a content, and move its jobs on."""
        catalog, owner = self.run.catalog, self.run.owner
        entry = self.under_way.pop(outcome.key)
        tenant_id, content = entry.tenant_id, entry.content_hash
        self.tally.counts["parse_ms"] += round(outcome.seconds * 1000)
        if outcome.slow is not None:
            with catalog.database.begin() as connection:
                catalog.contents.leave_to_slow_lane(connection, tenant_id, content, outcome.slow)
                catalog.jobs.put_back(connection, PARSE, entry.jobs, owner, Lane.SLOW)
            self.tally.counts["left_to_slow_lane"] += len(entry.jobs)
            return
        version = output_version(self.parser_version, entry.accepted_pages)
        parsed, fault = outcome.parsed, outcome.fault
        if parsed is not None:
            self.run.store.of(tenant_id).put_parsed(content, version, parsed, owner, base=self.parser_version)
        seen = self._keep_pictures(entry, outcome)
        with catalog.database.begin() as connection:
            if catalog.reviews.accepted(connection, tenant_id, [content])[content] != entry.accepted_pages:
                catalog.jobs.put_back(connection, PARSE, entry.jobs, owner)
                self.tally.counts["decided_meanwhile"] += len(entry.jobs)
                return
            elements, pages = (None, None) if parsed is None else (len(parsed.elements), parsed.pages)
            reason = None if fault is None else fault.reason
            catalog.parses.record(connection, version, tenant_id, content, elements, pages, reason, outcome.kept)
            catalog.reviews.record(connection, tenant_id, content, self.parser_version, self.in_use, seen)
            if fault is None:
                counts = {entry.jobs[0].job_id: {"parsed": 1}}
                catalog.jobs.complete_parse(connection, entry.jobs, owner, counts, entry.accepted_pages)
        self.tally.counts["pages_below_bar"] += len({page.page for page in seen})
        if fault is not None:
            self._fail(entry.jobs, fault)
            return
        flagged = int(outcome.kept is not None and outcome.kept.is_flagged)
        self.tally.counts.update({"parsed": 1, "elements": elements or 0, "pages": pages or 0, "flagged": flagged})

    def _fail(self, jobs: Sequence[Job], fault: DocumentFault) -> None:
        """Documents of one content share its fault, and each is told under its own name: the parse knew that of the first."""
        titles = self.run.catalog.parses.titles([job.doc_id for job in jobs])
        parsed_as = titles[jobs[0].doc_id]
        for job in jobs:
            own = DocumentFault(fault.reason, fault.message.replace(parsed_as, titles[job.doc_id]))
            self.run.catalog.jobs.fail(PARSE, job, self.run.owner, own)
            self.tally.fail(own)

    def _keep_pictures(self, entry: _UnderWay, outcome: ParseOutcome) -> list[SeenPage]:
        """Put the pictures of the pages to review into the store, before any transaction is open."""
        store = self.run.store.of(entry.tenant_id)
        regions: dict[int, list[ReviewPage]] = defaultdict(list)
        for review in outcome.reviews:
            regions[review.page].append(review)
        return [
            SeenPage(
                page,
                region,
                review.confidence,
                review.text,
                store.put_picture(entry.content_hash, self.parser_version, page, region, review.image, self.run.owner),
            )
            for page, reviews in sorted(regions.items())
            for region, review in enumerate(reviews)
        ]
