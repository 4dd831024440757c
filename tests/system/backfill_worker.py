"""A process that a test kills: it takes up pages of a backfill until all is taken, or promotes and rolls back without end.

python -m tests.system.backfill_worker URL feed|swap
"""

import sys
from datetime import timedelta
from random import SystemRandom

from primer_resources.catalog.backfills import UNREAD
from primer_resources.catalog.catalog import Catalog
from primer_resources.clock import SystemClock
from tests.primer_resources.catalog.world import BUCKETS

DAY = timedelta(days=1)
DONE_EXIT = 3


def feed(catalog: Catalog) -> None:
    """Take up what is left, a few documents a page."""
    (backfill,) = catalog.backfills.running()
    for bucket in (UNREAD, *BUCKETS):
        while not catalog.backfills.take_page(backfill.backfill_id, bucket, 5).is_last:
            print("page", flush=True)  # noqa: T201 # the parent waits for it


def swap(catalog: Catalog) -> None:
    """Forth and back."""
    while True:
        if catalog.deployments.live().name == "v1":
            catalog.promotions.promote("v2", DAY, DAY)
        else:
            catalog.promotions.rollback()
        print("swapped", flush=True)  # noqa: T201


if __name__ == "__main__":
    opened = Catalog(sys.argv[1], SystemClock(), SystemRandom())
    {"feed": feed, "swap": swap}[sys.argv[2]](opened)
    sys.exit(DONE_EXIT)
