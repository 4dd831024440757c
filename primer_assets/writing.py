"""What the three steps of a write share: lanes, the plan of each held document, and the rows of a plan.

The steps run one after the other in one run, under one owner: rows into the vector index, rows into the keyword index, flip. A sweep
makes each an asset of its own, the access lane all three in one.
Nothing is handed from step to step but what the catalog and the stores hold, so they may run in different processes.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import Event

from primer_assets.lost_parts import BODY_GONE, send_write_back
from primer_assets.stage_run import StageRun, Tally
from primer_core.failures import SystemFault
from primer_core.stages import WRITE, Operation
from primer_core.write_plan import PlannedChunk, WritePlan, plan_write
from primer_resources.catalog.generations import WriteState
from primer_resources.catalog.jobs import Job
from primer_resources.catalog.sources import Source
from primer_resources.embedder.base import Vector
from primer_resources.index_base import IndexRow

ROWS_A_COMMIT = 2_000
"""Rows gathered before the indexes are written: a commit costs about the same for 1 row and for 500, and memory stays flat."""

LANE_PATIENCE = timedelta(seconds=5)
"""How long a sweep waits for lanes that are taken. A lane is held for the seconds of a write, and what is left waits for a whole run."""
LANE_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One held document and what its write does."""

    job: Job
    source: Source
    acl_ids: tuple[str, ...]
    plan: WritePlan


def take_lanes(run: StageRun, buckets: Sequence[str]) -> dict[str, int]:
    """The lanes of these buckets, bucket → epoch; those that stay taken for LANE_PATIENCE are left out."""
    end = time.monotonic() + LANE_PATIENCE.total_seconds()
    while True:
        lanes = run.catalog.lanes.acquire(run.version.name, buckets, run.owner, run.settings.lease)
        if len(lanes) == len(buckets) or time.monotonic() >= end:
            return lanes
        pause(LANE_POLL_S)


def pause(seconds: float) -> None:
    """Until another process's work is looked at again."""
    Event().wait(seconds)


def plan_one(run: StageRun, job: Job, state: WriteState, tally: Tally) -> PlannedWrite | None:
    """The write of one job whose generation is open; None where its chunk set was lost, and the job is sent back.

    A permission change writes the passages that the rows hold; a delete writes none, nor
    does a copy, for which the rows of its canonical document stand."""
    if job.generation is None or job.acl_ids is None:
        raise SystemFault(f"job {job.job_id} of document {job.doc_id} has no open generation, so its rows would be wrong")
    source: WriteState | Job = state if job.operation is Operation.ACL else job
    gone = job.operation in (Operation.DELETE, Operation.COPY) or source.content_hash is None
    try:
        made = () if gone else run.chunks_of(job, source.content_hash or "", source.accepted_pages)
    except BODY_GONE as error:
        send_write_back(run, job, state, error, tally)
        return None
    if job.operation is Operation.ACL:
        made = tuple(chunk for chunk in made if chunk.id_in(job.doc_id) in state.manifest)
    rewrite = state.acl_ids is not None and state.acl_ids != job.acl_ids
    return PlannedWrite(
        job, run.source_of(job.source_id), job.acl_ids, plan_write(job.doc_id, made, state.manifest, job.generation, rewrite)
    )


def plans_in_hand(run: StageRun, buckets: Sequence[str], tally: Tally) -> Iterator[PlannedWrite]:
    """The plans of all documents that the run holds in the write stage, computed again from what is stored."""
    held = run.catalog.jobs.held(WRITE, run.version.name, buckets, run.owner)
    for start in range(0, len(held), run.settings.claim_batch):
        part = held[start : start + run.settings.claim_batch]
        states = run.catalog.generations.states(run.version.name, {job.doc_id for job in part})
        for job in part:
            if job.generation is not None and (write := plan_one(run, job, states[job.doc_id], tally)) is not None:
                yield write


def still_held(run: StageRun, writes: Sequence[PlannedWrite]) -> list[PlannedWrite]:
    """The writes whose documents the run still holds; the rows of the others are purged. Asked before rows are written and after,
    since a process may be suspended anywhere and go on when another has long done its work."""
    planned = [(write.job, write.plan.generation, [chunk.row_id for chunk in write.plan.added]) for write in writes]
    lost = run.catalog.generations.bury_lost(run.version.name, planned, run.owner)
    return [write for write in writes if write.job.job_id not in lost]


def rows_of(write: PlannedWrite, vectors: Mapping[str, Vector]) -> list[IndexRow]:
    """The rows that a write adds; `vectors` maps row_id → vector, shape (dims,), and may be empty for the keyword index."""
    return [_row(write, planned, vectors.get(planned.row_id)) for planned in write.plan.added]


def _row(write: PlannedWrite, planned: PlannedChunk, vector: Vector | None) -> IndexRow:
    chunk = planned.chunk
    return IndexRow(
        row_id=planned.row_id,
        chunk_id=planned.chunk_id,
        added_gen=write.plan.generation,
        tenant_id=write.source.tenant_id,
        library=write.source.library,
        doc_id=write.job.doc_id,
        acl_ids=write.acl_ids,
        heading_path=chunk.heading_path,
        page=chunk.pages[0] if chunk.pages else None,
        ordinal=chunk.ordinal,
        text=chunk.text,
        vector=vector,
    )
