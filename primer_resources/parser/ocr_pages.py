"""How many pages of a file need OCR, asked before anything is parsed: for an estimate of what a sync will cost.

The look is the triage's, into every page; like it, it runs in a worker, whose limits bound it.
"""

from pathlib import Path
from typing import Any, cast

from primer_resources.worker_faults import fault_of
from primer_resources.workers import Call, WorkerPool


def count_ocr_pages(pool: WorkerPool[Any], path: Path, name: str) -> int | None:
    """Pages of a PDF file that need OCR; None where nobody can tell before the parse."""
    call = Call(name, count_in_worker, (path.absolute(),), path.stat().st_size)
    counts = [None if fault_of(each, name, pool.limits) is not None else cast(int | None, each.value) for each in pool.run([call])]
    return counts[0]


def count_in_worker(directory: Path, path: Path) -> int | None:
    """The task. The import is here so that the parent, which sends this function by name, opens no PDF."""
    from primer_resources.parser.triage import ocr_pages

    return ocr_pages(path)
