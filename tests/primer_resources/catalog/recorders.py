"""What one of several recording processes does. Started by spawn, so this file is imported in the child."""

from collections.abc import Sequence
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from random import Random

from primer_core.outcomes import Outcome, Receipt
from primer_core.ulids import next_ulid
from primer_resources.catalog.catalog import Catalog
from primer_resources.clock import SystemClock
from tests.primer_resources.catalog.world import SOURCE, START, VERSION

PROCESSES = 2
RECEIPTS = 40
PATIENCE_S = 60.0


def record_all(url: str, number: int, doc_ids: Sequence[str], together: Barrier) -> list[Receipt]:
    """Record receipts of all documents, each transaction several, beside others who do the same. Their times go up and down. Returns
    them."""
    catalog, random = Catalog(url, SystemClock(), Random(number)), Random(number)
    told: list[Receipt] = []
    try:
        catalog.now()
        together.wait(PATIENCE_S)
        for _ in range(RECEIPTS):
            batch = []
            for doc_id in random.sample(list(doc_ids), 3):
                at = START + timedelta(seconds=random.randrange(10_000))
                mark, outcome = next_ulid(at, random), random.choice([Outcome.INDEXED, Outcome.DEAD])
                batch.append(Receipt(doc_id, VERSION, SOURCE, mark, outcome, mark, None, random.randrange(99), None, None, 1, at))
            with catalog.database.begin() as connection:
                catalog.ledger.record(connection, batch)
            told += batch
    finally:
        catalog.close()
    return told
