"""What one of several claiming processes does. Started by spawn, so this file is imported in the child."""

import time
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from random import Random

from primer_core.failures import DocumentFault, Reason
from primer_core.stages import WRITE
from primer_resources.catalog.catalog import Catalog
from primer_resources.clock import SystemClock
from tests.primer_resources.catalog.world import BUCKETS, LEASE, VERSION

BATCH = 3
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Held:
    """One job in one process's hands, from after its claim to before its end; nanoseconds of the machine's monotonic clock."""

    job_id: int
    doc_id: str
    owner: str
    epoch: int
    claimed_ns: int
    ended_ns: int


def claim_all(url: str, owner: str, together: Barrier) -> list[Held]:
    """Claim and end jobs in the write stage, beside others who do the same, until none is left."""
    catalog = Catalog(url, SystemClock(), Random(owner))
    held: list[Held] = []
    deadline = time.monotonic() + PATIENCE_S
    try:
        catalog.now()
        together.wait(PATIENCE_S)
        while catalog.queue.unfinished() and time.monotonic() < deadline:
            for job in catalog.jobs.claim(WRITE, VERSION, BUCKETS, owner, LEASE, BATCH):
                claimed = time.monotonic_ns()
                held.append(Held(job.job_id, job.doc_id, owner, job.lease_epoch, claimed, time.monotonic_ns()))
                catalog.jobs.fail(WRITE, job, owner, DocumentFault(Reason.EMPTY, "done with"))
    finally:
        catalog.close()
    return held
