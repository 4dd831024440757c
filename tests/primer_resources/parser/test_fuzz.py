"""Damaged files of every format: never a crash or hang of the parent, never a success without words, nothing left behind.

The suite parses a few dozen. A full run, with its figures by format and end, is one command (six minutes for 2,000):

    python -m pytest tests/primer_resources/parser/test_fuzz.py --fuzz-inputs 2000 --timeout 7200 -s

The seed is fixed (`--fuzz-seed`), so a run can be repeated; a failing input is written to the folder that the message names.
"""

import io
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
from PIL import Image, ImageDraw

from primer_core.failures import Reason
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.parser.docling_parser import PREPARE, PROGRAMS, DoclingParser
from primer_resources.workers import WorkerLimits, WorkerPool
from tests.conftest import CORPUS
from tests.primer_resources.parser.mutations import PLAIN, ZIPPED

FORMATS = ("docx", "pptx", "xlsx", "pdf", "html", "md", "eml", "csv", "txt", "png")
LARGEST = 60_000
"""Bytes of an original: damage is damage, and small files are read quickly."""

TIMEOUT = timedelta(seconds=60)
CPU_TIME = timedelta(seconds=20)
SLACK = 20.0
"""Seconds beyond the limit in which a kill must be over, on a busy machine."""

EXPECTED = {
    *(Reason.CORRUPT, Reason.TRUNCATED, Reason.EMPTY, Reason.ENCRYPTED, Reason.UNSUPPORTED_FORMAT, Reason.TOO_LARGE),
    *(Reason.INCOMPLETE, Reason.OCR_BELOW_BAR, Reason.PARSE_TIMEOUT, Reason.PARSE_MEMORY, Reason.PARSE_CRASH, Reason.OCR_UNAVAILABLE),
}


def originals(make: Any) -> dict[str, list[bytes]]:
    """Sound files by format: some of our own making, and the corpus's small ones where it is there."""
    page = b"<h1>Leave</h1><p>Ask <b>early</b>, please.</p><ul><li>one<li>two</ul><pre>x</pre><table><tr><th>a<td>b</table>"
    text = b"---\ntitle: Leave\n---\n# Leave\n\nAsk *early*, [please](x).\n\n- one\n\n```\nx\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    found = {
        "docx": [make.docx(), make.docx(("One", "Two"), header="Top")],
        "pptx": [make.pptx("Plans", "Costs", notes="Say this")],
        "xlsx": [make.xlsx(Stock=[["part", "qty"], ["bolt", 37]], Other=[["alone"]])],
        "pdf": [make.pdf("Page one words", "", "Page three words")],
        "html": [page],
        "md": [text],
        "eml": [make.eml("Lunch", "At noon.\n\nBring bread.", html="<p>At noon.</p>", attachment="menu.bin")],
        "csv": [b"part;qty\nbolt;0037\n" * 10],
        "png": [picture()],
        "txt": [b"First line\nsecond line\n\nNext paragraph\fNew page"],
    }
    for path in sorted((CORPUS / "files").rglob("*")):
        suffix = path.suffix.removeprefix(".")
        if suffix in found and path.is_file() and 0 < path.stat().st_size <= LARGEST:
            found[suffix].append(path.read_bytes())
    return found


def picture() -> bytes:
    """A small scan of two lines."""
    out = io.BytesIO()
    with Image.new("L", (600, 200), "white") as scan:
        ImageDraw.Draw(scan).text((20, 40), "Page one of the lease\nwords and more words", fill="black", font_size=32)
        scan.save(out, "PNG")
    return out.getvalue()


def damaged(make: Any, folder: Path, count: int, seed: int) -> Iterator[ParseRequest]:
    """Requests for damaged files, each written as it is asked for."""
    sound = originals(make)
    for number in range(count):
        random = Random(f"{seed}-{number}")
        format_ = FORMATS[number % len(FORMATS)]
        mutate = random.choice(ZIPPED if format_ in ("docx", "pptx", "xlsx") else PLAIN)
        data = mutate(random, random.choice(sound[format_]), sound[format_])
        path = folder / f"{number}.{format_}"
        path.write_bytes(data)
        yield ParseRequest(path.name, path, path.name)


def complaint(outcome: ParseOutcome) -> str:
    """What is wrong with an outcome, "" for nothing."""
    if outcome.seconds > TIMEOUT.total_seconds() + SLACK:
        return f"took {outcome.seconds:.0f} s"
    if outcome.fault is None:
        assert outcome.parsed is not None
        has_words = any(element.text.strip() for element in outcome.parsed.elements)
        return "" if has_words else "is a success without words"
    if outcome.fault.reason not in EXPECTED:
        return f"has the reason {outcome.fault.reason}"
    if outcome.key not in outcome.fault.message or "\n" in outcome.fault.message:
        return f"has the message {outcome.fault.message!r}"
    return ""


def test_damaged_files_end_well(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    root, inputs = tmp_path / "tmp", tmp_path / "inputs"
    root.mkdir()
    inputs.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    count, seed = request.config.getoption("--fuzz-inputs"), request.config.getoption("--fuzz-seed")
    pool: WorkerPool[Any] = WorkerPool(WorkerLimits(1, 4 * 2**30, 100, TIMEOUT, cpu_time=CPU_TIME), PREPARE, PROGRAMS)
    ends: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    workers: set[int] = set()
    for outcome in DoclingParser(pool, max_file_mb=10).parse_many(damaged(make, inputs, count, seed)):
        name = outcome.key
        seen[name] += 1
        workers.update(pool.pids)
        end = "parsed" if outcome.fault is None else outcome.fault.reason.value
        ends[Path(name).suffix, end] += 1
        if end.startswith("parse_"):
            print(f"{name}: {outcome.fault}")  # noqa: T201 - what a person asked for with -s
        if said := complaint(outcome):
            wrong.append(f"{inputs / name} {said}")
        else:
            (inputs / name).unlink()
    pool.close()

    for (suffix, end), number in sorted(ends.items()):
        print(f"{suffix:6} {end:20} {number}")  # noqa: T201
    assert not wrong, "\n".join(wrong)
    assert len(seen) == seen.total() == count
    assert not [pid for pid in workers if psutil.pid_exists(pid) and psutil.Process(pid).ppid() == psutil.Process().pid]
    assert not list(root.iterdir())
