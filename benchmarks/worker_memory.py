"""Whether a parse worker's memory stays flat: documents of every format through one worker, its resident memory after each.

usage: worker_memory.py [--documents 500] [--folder FOLDER] [--largest BYTES] [--growth-mb 1024]
FOLDER defaults to the evaluation corpus beside the project; its files are taken in turns by format, again from the start when they run
out. Prints resident memory at every twentieth of the way, the slope of a line through the second half, and how many workers there were:
with the default limits the slope is flat or the worker was replaced.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, cycle, islice
from pathlib import Path
from statistics import linear_regression

import psutil

from primer_core.routing import PARSED
from primer_resources.parser.base import ParseRequest
from primer_resources.parser.docling_parser import PREPARE, DoclingParser, open_worker_pool
from primer_resources.settings import Settings
from primer_resources.workers import WorkerPool

PROJECT = Path(__file__).resolve().parents[1]
CORPUS = Path(os.environ.get("PRIMER_CORPUS") or PROJECT.parent / "shared" / "corpus") / "files"
REPORTS = 20


def requests(folder: Path, largest: int, documents: int) -> Iterator[ParseRequest]:
    """Requests for `documents` files of mixed formats."""
    by_format = {
        suffix: [path for path in sorted(folder.rglob(f"*.{suffix}")) if path.is_file() and 0 < path.stat().st_size <= largest]
        for suffix in sorted(format_.value for format_ in PARSED)
    }
    turns = [cycle(paths) for paths in by_format.values() if paths]
    mixed = (next(turn) for turn in cycle(turns))
    for number, path in zip(count(), islice(mixed, documents), strict=False):
        yield ParseRequest(str(number), path, path.name)


def main() -> None:
    """Parse and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--folder", type=Path, default=CORPUS)
    parser.add_argument("--largest", type=int, default=300_000)
    parser.add_argument("--growth-mb", type=int, default=1024)
    options = parser.parse_args()
    limits = open_worker_pool(Settings(parse_workers=1, parse_worker_growth_mb=options.growth_mb)).limits
    pool: WorkerPool[ParseRequest] = WorkerPool(replace(limits, tasks=options.documents + 1), PREPARE)
    sizes: list[float] = []
    workers: list[int] = []
    failed = 0
    for outcome in DoclingParser(pool, 200).parse_many(requests(options.folder, options.largest, options.documents)):
        failed += outcome.fault is not None
        for pid in pool.pids:
            if pid not in workers:
                workers.append(pid)
            sizes.append(psutil.Process(pid).memory_info().rss / 2**20)
        if len(sizes) % max(1, options.documents // REPORTS) == 0:
            sys.stdout.write(f"{len(sizes):5} documents {sizes[-1]:7.0f} MB\n")
            sys.stdout.flush()
    pool.close()
    half = sizes[len(sizes) // 2 :]
    slope = linear_regression(range(len(half)), half).slope
    sys.stdout.write(
        f"{len(workers)} workers, {failed} faults, most {max(sizes):.0f} MB, slope of the second half {slope:+.3f} MB a document\n"
    )


if __name__ == "__main__":
    main()
