"""Freshness under a steady flow of real edits: the corpus's edit histories committed to a git wiki at a steady rate, with the web server,
daemon and sensors of `make ui` at work on it. Run from the project's folder.

usage: python -m benchmarks.sustained_edits [--rate 4.6] [--minutes 10] [--buckets 8] [--home FOLDER [--prepare]]

With --prepare the pages as they were before the first edit are indexed in the folder, and nothing else; a copy of it is a start for runs.

Every event of a history is one commit. When the three histories are at their end they begin anew on a second copy of their pages, whose
words differ a little, so that no passage of it has been embedded before. Prints the times from commit to indexed (p50, p95, most), the
jobs that waited every 30 seconds, and the CPU seconds of all processes.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import select

from primer.materialise import Materialiser
from primer.syncing import Syncing
from primer.workspace import Workspace
from primer_core.stages import State
from primer_resources.catalog.schema import documents, jobs
from primer_resources.catalog.sources import Source
from primer_resources.settings import load_settings
from tests.git_history import EditHistory, HistoryRepo

PROJECT = Path(__file__).resolve().parents[1]
CORPUS = Path(os.environ.get("PRIMER_CORPUS") or PROJECT.parent / "shared" / "corpus")
HISTORIES = ("handbook", "k8s", "httpd")
SAMPLE_S = 30
DRAIN_S = 1800
"""How long the rest of the queue may take after the last edit."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit to commit. `data` is None for a delete."""

    path: str
    old_path: str | None
    data: bytes | None


def _text(data: bytes, copy: int) -> bytes:
    """The page of a copy: in a further one every passage differs by a few small words."""
    return data if copy == 0 else data.replace(b" the ", b" that ").replace(b" to ", b" unto ")


def _edits(histories: Sequence[EditHistory]) -> Iterator[Edit]:
    """The events of the histories, in turns, first on one copy of the pages and then on the other."""
    for copy in (0, 1):
        for row in zip_longest(*([(each, event) for event in _rows(each.folder / "events.jsonl")] for each in histories)):
            for history, event in (pair for pair in row if pair is not None):
                old = event.get("old_path")
                data = None if event["op"] == "delete" else _text(history.data(event["after"]), copy)
                yield Edit(_place(history, event["path"], copy), _place(history, old, copy) if old else None, data)


def _base(histories: Sequence[EditHistory], edits: Sequence[Edit]) -> Iterator[tuple[str, bytes]]:
    """path → page before the first edit, of the pages that any of the edits touches."""
    touched = {path for edit in edits for path in (edit.path, edit.old_path)}
    for copy in (0, 1):
        for history in histories:
            for row in _rows(history.folder / "base.jsonl"):
                path = _place(history, row["path"], copy)
                if path in touched:
                    yield path, _text(history.data(row["blob"]), copy)


def _place(history: EditHistory, path: str, copy: int) -> str:
    return f"{history.folder.name}{copy or ''}/{path}"


def _commit(repo: HistoryRepo, edit: Edit) -> None:
    """Make one edit now."""
    if edit.old_path is not None:
        repo.remove(edit.old_path)
    if edit.data is None:
        repo.remove(edit.path)
    else:
        repo.put(edit.path, edit.data)
    repo.commit(at=int(time.time()))


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _prepare(workspace: Workspace, repo: HistoryRepo) -> None:
    """Index the pages as they are before the first edit."""
    repo.commit(at=int(time.time()))
    workspace.create()
    settings = {"url": str(repo.folder), "groups": ["all"], "suffixes": ["*"]}
    workspace.catalog.sources.add(Source("wiki", workspace.settings.tenant, "main", "wiki", settings, "poll", 10))
    workspace.add_partitions()
    catalog, settled = workspace.catalog, workspace.settings
    resources = {"settings": settled, "catalog": catalog, "store": workspace.store, "toolkit": workspace.toolkit}
    Syncing(catalog, settled, Materialiser(workspace.instance, resources), lambda *_: None).run(["wiki"])


def _start(workspace: Workspace, log: Path) -> subprocess.Popen[bytes]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "VENV": sys.prefix, "PORT": str(port), "PRIMER_HOME": str(workspace.settings.home)}
    with log.open("wb") as file:
        return subprocess.Popen(
            [PROJECT / "deploy/setup/ui.sh"], env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )


def _waiting(workspace: Workspace) -> int:
    return sum(workspace.catalog.queue.standing(["wiki"]).values())


def _drain(workspace: Workspace, head: Any) -> None:
    """Wait until the feed has reached the last commit and nothing stands in the queue."""
    end = time.monotonic() + DRAIN_S
    while time.monotonic() < end:
        cursor = workspace.catalog.sources.get("wiki").cursor
        if cursor is not None and cursor["commit"] == head.decode() and not _waiting(workspace):
            return
        time.sleep(1)
    raise SystemExit(f"{_waiting(workspace)} jobs still wait {DRAIN_S} s after the last edit")


def _indexed(workspace: Workspace) -> dict[str, list[tuple[datetime, datetime]]]:
    """path → (event time, indexed at) of every job that was finished, oldest event first."""
    statement = (
        select(documents.c.path, jobs.c.event_time, jobs.c.finished_at)
        .join(documents, documents.c.doc_id == jobs.c.doc_id)
        .where(jobs.c.source_id == "wiki", jobs.c.state == State.INDEXED)
        .order_by(jobs.c.event_time)
    )
    found: dict[str, list[tuple[datetime, datetime]]] = {}
    with workspace.catalog.database.read() as connection:
        for path, event_time, finished_at in connection.execute(statement):
            found.setdefault(path, []).append((event_time, finished_at))
    return found


def _freshness(made: list[tuple[str, datetime]], indexed: dict[str, list[tuple[datetime, datetime]]]) -> tuple[list[float], int]:
    """Seconds from each edit to the index that shows it (or a later one of its page), and how many edits left nothing to index."""
    seconds: list[float] = []
    none = 0
    for path, at in made:
        shown = [finished for event, finished in indexed.get(path, ()) if event >= at.replace(microsecond=0)]
        if shown:
            seconds.append((min(shown) - at).total_seconds())
        else:
            none += 1
    return sorted(seconds), none


def main() -> None:
    """Run the load and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=4.6, help="edits a second")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--prepare", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers end with it
    work = options.home or Path(tempfile.mkdtemp(prefix="primer-edits-"))
    os.environ["PRIMER_HOME"] = str(work / "home")
    os.environ["PRIMER_BUCKETS"] = str(options.buckets)
    wanted = round(options.rate * options.minutes * 60)
    histories = [EditHistory(CORPUS / "edits" / name) for name in HISTORIES]
    edits = list(islice(_edits(histories), wanted))
    is_prepared = (work / "wiki.git").is_dir()
    repo = HistoryRepo(work / "wiki.git")
    for path, page in _base(histories, edits):
        repo.put(path, page)
    workspace = Workspace(load_settings())
    if not is_prepared:
        _prepare(workspace, repo)
    if options.prepare:
        workspace.close()
        return
    ui = _start(workspace, work / "ui.log")
    family = psutil.Process(ui.pid)
    try:
        _drain(workspace, repo.head)
        print(f"{len(repo.files)} pages stand indexed; {len(edits)} edits follow", flush=True)  # noqa: T201
        before, began = _cpu(family), time.monotonic()
        made: list[tuple[str, datetime]] = []
        samples: list[int] = []
        for number, edit in enumerate(edits):
            time.sleep(max(0.0, began + number / options.rate - time.monotonic()))
            made.append((edit.path, datetime.now(UTC)))
            _commit(repo, edit)
            if time.monotonic() - began >= SAMPLE_S * (len(samples) + 1):
                samples.append(_waiting(workspace))
        took = time.monotonic() - began
        at_end = _waiting(workspace)
        waits = f"waiting every {SAMPLE_S} s: {samples}, at the end {at_end}"
        print(f"{len(made)} edits in {took:.0f} s ({len(made) / took:.2f} a second); {waits}", flush=True)  # noqa: T201
        _drain(workspace, repo.head)
        drained = time.monotonic() - began - took
        seconds, none = _freshness(made, _indexed(workspace))
        p50, p95 = seconds[len(seconds) // 2], seconds[int(len(seconds) * 0.95)]
        figures = workspace.catalog.lookup.figures("wiki", made[0][1])
        print(f"commit to indexed: p50 {p50:.1f} s, p95 {p95:.1f} s, most {seconds[-1]:.1f} s; {none} edits left nothing to index")  # noqa: T201
        print(f"drained {drained:.0f} s after the last edit; {_cpu(family) - before:.0f} CPU s in all; {figures}")  # noqa: T201
    finally:
        ui.send_signal(signal.SIGTERM)
        ui.wait(timeout=60)
        workspace.close()


def _cpu(family: psutil.Process) -> float:
    """CPU seconds of the processes that run, and of their children that have ended."""
    total = 0.0
    for process in (family, *family.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


if __name__ == "__main__":
    main()
