"""A deployment in small whose bodies are real: parses read source bytes from the store, and chunk sets are made of stored documents."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from primer.replaying import Replaying
from primer_assets import embeddings
from primer_assets.stage_run import StageRun, Tally
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.failures import DocumentFault, Reason
from primer_core.replay import Selectors
from primer_core.stages import CHUNK, EMBED, PARSE
from primer_core.stored_states import Manifest
from primer_resources.catalog.jobs import Job
from primer_resources.catalog.replays import Candidate
from primer_resources.catalog.schema import chunks, jobs
from primer_resources.catalog.schema_bodies import contents, freed_objects, stored_states
from primer_resources.document_store import TenantStore
from tests.copies_bench import SPOILT, CopiesBench, passages
from tests.primer_resources.catalog.world import BUCKETS, TENANT

DAY = timedelta(days=1)


@dataclass
class ReplayBench(CopiesBench):
    """Several sources, and what stands of each stage in the store."""

    chunked: int = 0

    @property
    def tenant(self) -> TenantStore:
        """The tenant's store."""
        return self.store.of(TENANT)

    def index(self, *names: str) -> None:
        """Sync the sources and take what came of it to the end."""
        for name in names or self.names:
            self.sync(name)
        self.drain()

    def _prepare(self, run: StageRun) -> None:
        parser, chunker = run.version.recipe.parser.version, run.version.recipe.chunker.version
        for batch in run.claims(PARSE, BUCKETS):
            for job in batch:
                self._parse(run, job, parser)
        for batch in run.claims(CHUNK, BUCKETS):
            for job in batch:
                if not self.tenant.has_chunks(job.content_hash or "", parser, chunker):
                    self.chunked += 1
                    made = passages(self.tenant.get_document(job.content_hash or "", parser))
                    self.tenant.put_chunks(job.content_hash or "", parser, chunker, made, run.owner)
            self.catalog.jobs.complete(CHUNK, batch, run.owner, {})
        for batch in run.claims(EMBED, BUCKETS):
            embeddings._embed(run, batch, Tally())

    def _parse(self, run: StageRun, job: Job, parser: str) -> None:
        content = job.content_hash or ""
        with self.catalog.database.begin() as connection:
            label = self.catalog.reviews.accepted(connection, TENANT, [content])[content]
            known = self.catalog.parses.known(connection, TENANT, {content: parser})
        if not known:
            target = self.home / "fetched"
            try:
                self.tenant.fetch_content(content, target)
                if SPOILT in target.read_text() and not self.is_mended:
                    raise DocumentFault(Reason.CORRUPT, f"{SPOILT} bytes")
            except DocumentFault as fault:
                self.catalog.jobs.fail(PARSE, job, run.owner, fault)
                return
            self.parses += 1
            element = Element(0, ElementKind.PARAGRAPH, target.read_text(), None, None)
            self.tenant.put_parsed(content, parser, ParsedDocument((element,), None, target.read_bytes(), {}), run.owner)
        with self.catalog.database.begin() as connection:
            self.catalog.parses.record(connection, parser, TENANT, content, 1, None, None)
            self.catalog.jobs.complete_parse(connection, [job], run.owner, {}, label)

    def replay(self, to_stage: str, apply: bool = False, **selectors: Any) -> tuple[list[Candidate], Replaying]:
        """Run a replay. Returns its candidates and their figures."""
        replaying = Replaying.of(self.catalog, TENANT, Selectors(**selectors), to_stage, apply)
        return list(replaying.run()), replaying

    def verdicts(self, to_stage: str, **selectors: Any) -> dict[str, str]:
        """SOURCE/path → verdict, of a dry run."""
        found, _ = self.replay(to_stage, **selectors)
        return {f"{each.source_id}/{each.path}": each.judgement.verdict.value for each in found}

    def settle(self) -> int:
        """Let source bytes go as the policy says. Returns how many contents lost theirs."""
        gone, after = 0, ("", "")
        while after is not None:
            page = self.catalog.body_policies.settle(after)
            gone, after = gone + page.objects, page.after
        return gone

    def retain(self, retention: timedelta = DAY) -> int:
        """Let outputs go that nothing uses. Returns how many objects."""
        gone, after = 0, ""
        while after is not None:
            page = self.catalog.body_policies.retain(retention, after)
            gone, after = gone + page.objects, page.after
        return gone

    def remove_freed(self) -> int:
        """Remove the bytes of what is freed, as the purge does. Returns how many objects."""
        rows = self.all(freed_objects)
        for row in rows:
            drive = self.tenant.intake if row.kind == "intake" else self.tenant.pipeline.drive
            with suppress(FileNotFoundError):
                drive.delete([row.object_key])
        return len(rows)

    def all(self, table: Any, **where: Any) -> Sequence[Any]:
        """The rows of a table with these values."""
        return self.world.rows(table, **where)

    def content_of(self, name: str, path: str) -> Any:
        """The row of a living document's content."""
        (found,) = self.all(contents, content_hash=self.row(name, path).content_hash)
        return found

    def manifest_of(self, name: str, path: str) -> Manifest:
        """The manifest of a living document's intake state."""
        (found,) = self.all(stored_states, doc_id=self.row(name, path).doc_id, node="intake")
        return Manifest.from_json(found.manifest)

    def chunk_rows(self) -> set[tuple[str, str, int]]:
        """(index version, chunk id, generation that added it) of all passages that count."""
        return {(row.index_version, row.chunk_id, row.added_gen) for row in self.all(chunks)}

    def job_count(self) -> int:
        """How many jobs were ever made."""
        with self.catalog.database.read() as connection:
            return len(connection.execute(select(jobs.c.job_id)).all())
