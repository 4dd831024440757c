"""How soon a permission that is taken away counts: over a deployment with its web server, daemon and sensors running.

usage: removal.py [--removals 100] [--every 1.0] [--home FOLDER]
Makes a folder of documents that everybody may read, indexes it, starts `make ui`'s processes, and takes documents away one after the
other: by turns, a rule in the access file is changed, and a document is moved to a folder of another rule. A search of everybody runs all
the time. Printed in seconds, p50 and p95: from the edit, and from the commit of the event, until such a search has ended without the
document; and for moved ones until the rows of both indexes say so (a changed rule rewrites no row). A search takes what `search` says, and
one that began before the commit may still return the document.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import select

from primer.materialise import Materialiser
from primer.syncing import Syncing
from primer.workspace import Workspace
from primer_core.freshness import Spread
from primer_core.stages import Operation, State
from primer_resources.catalog.schema import acls, documents, jobs
from primer_resources.catalog.sources import Source
from primer_resources.settings import load_settings

PROJECT = Path(__file__).resolve().parents[1]
SOURCE, EVERYBODY, FEW, CLOSED = "docs", "everybody", "few", "closed"
PATIENCE_S = 600.0


@dataclass(slots=True)
class Removal:
    """A document that was taken away: when it was edited, and when a search ended that no longer returned it."""

    number: int
    edited: datetime
    unseen: datetime | None = None
    committed: datetime | None = None
    followed: datetime | None = None

    @property
    def by_rule(self) -> bool:
        """By a rule of the access file, not by a move."""
        return self.number % 2 == 0

    @property
    def folder(self) -> str:
        """Where the document stood."""
        return f"open-{self.number:03}"


@dataclass(slots=True)
class Bench:
    """The deployment and the folder."""

    workspace: Workspace
    folder: Path
    removals: list[Removal] = field(default_factory=list)
    searches: list[float] = field(default_factory=list)

    def write_rules(self) -> None:
        """The access file, replaced in one step: a rule a folder, everybody's but where it was changed."""
        changed = {removal.folder for removal in self.removals if removal.by_rule}
        rules = [f"  {place.name}: [{FEW if place.name in changed | {CLOSED} else EVERYBODY}]" for place in sorted(self.folder.iterdir())]
        text = "\n".join([f"groups: [{EVERYBODY}]", "folders:", *rules]) + "\n"
        partial = self.folder.with_suffix(".access.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(self.folder.with_name(f"{self.folder.name}.access.yaml"))

    def make(self, count: int) -> None:
        """The documents, indexed."""
        for number in range(count):
            place = self.folder / f"open-{number:03}"
            place.mkdir(parents=True)
            text = f"# Berth {number}\n\nBerth {number} of the harbour is let to the ferry line for {number * 7 + 3} crowns a week."
            (place / f"berth-{number:03}.md").write_text(text, encoding="utf-8")
        (self.folder / CLOSED).mkdir()
        self.write_rules()
        made = self.workspace
        made.catalog.sources.add(Source(SOURCE, made.settings.tenant, "main", "drive", {"root": str(self.folder)}, "poll", 20))
        made.add_partitions()
        resources = {"settings": made.settings, "catalog": made.catalog, "store": made.store, "toolkit": made.toolkit}
        Syncing(made.catalog, made.settings, Materialiser(made.instance, resources), lambda *_: None).run([SOURCE])
        made.toolkit.kill_workers()

    def remove_next(self) -> None:
        """Take the next document away."""
        removal = Removal(len(self.removals), self.workspace.catalog.now())
        self.removals.append(removal)
        if removal.by_rule:
            self.write_rules()
        else:
            name = f"berth-{removal.number:03}.md"
            (self.folder / removal.folder / name).rename(self.folder / CLOSED / name)

    def look(self) -> set[int]:
        """One search of everybody; notes the removals that it did not return. Returns what it found."""
        began = time.monotonic()
        hits = self.workspace.reader.search("berth of the harbour", self.workspace.settings.tenant, [EVERYBODY], 1000)
        self.searches.append(time.monotonic() - began)
        found = {int(Path(hit.path).stem.split("-")[1]) for hit in hits}
        for removal in self.removals:
            if removal.unseen is None and removal.number not in found:
                removal.unseen = self.workspace.catalog.now()
        return found

    def settle(self) -> bool:
        """Read what the catalog knows of each removal. Returns whether all is done."""
        with self.workspace.catalog.database.read() as connection:
            ruled = {row.scope: row.updated_at for row in connection.execute(select(acls.c.scope, acls.c.updated_at))}
            statement = (
                select(documents.c.path, jobs.c.created_at, jobs.c.finished_at, jobs.c.state)
                .join(documents, documents.c.doc_id == jobs.c.doc_id)
                .where(jobs.c.operation == Operation.ACL, jobs.c.source_id == SOURCE)
            )
            moved = {int(Path(row.path).stem.split("-")[1]): row for row in connection.execute(statement)}
        for removal in self.removals:
            row = moved.get(removal.number)
            if row is not None:
                removal.committed = row.created_at
                removal.followed = row.finished_at if row.state == State.INDEXED else None
            elif removal.by_rule:
                removal.committed = ruled.get(removal.folder, removal.committed)
        return all(r.unseen is not None and (r.by_rule or r.followed is not None) for r in self.removals)


@contextmanager
def live(home: Path) -> Iterator[None]:
    """The processes of `make ui`, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "VENV": sys.prefix, "PORT": str(port), "PYTHONPATH": paths}
    with (home / "ui.log").open("wb") as log:
        ui = subprocess.Popen(
            [PROJECT / "deploy/setup/ui.sh"], env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield
        finally:
            ui.send_signal(signal.SIGTERM)
            ui.wait(timeout=90)


def say(words: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def tell(name: str, seconds: list[float]) -> None:
    """One line of figures."""
    spread = Spread.of(seconds)
    say(
        f"{name:52}"
        + ("nothing" if spread is None else f"p50 {spread.p50:6.2f}  p95 {spread.p95:6.2f}  most {spread.longest:6.2f}  ({spread.changes})")
    )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--removals", type=int, default=100)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two")
    parser.add_argument("--home", type=Path, help="a folder to work in that does not exist yet; a temporary one otherwise")
    arguments = parser.parse_args()
    place = arguments.home or Path(tempfile.mkdtemp(prefix="removal-"))
    os.environ |= {"PRIMER_HOME": str(place / "home"), "PRIMER_PARSE_WORKERS": "1"}
    workspace = Workspace(load_settings())
    workspace.create()
    bench = Bench(workspace, place / "docs")
    bench.make(arguments.removals)
    assert len(bench.look()) == arguments.removals, "everything is found before anything is taken away"
    with live(place / "home"):
        _wait_for_sensors(workspace)
        due = time.monotonic()
        end = due + arguments.removals * arguments.every + PATIENCE_S
        while time.monotonic() < end:
            if len(bench.removals) < arguments.removals and time.monotonic() >= due:
                bench.remove_next()
                due += arguments.every
            bench.look()
            if bench.settle() and len(bench.removals) == arguments.removals:
                break
    bench.settle()
    _report(bench)
    workspace.close()


def _wait_for_sensors(workspace: Workspace) -> None:
    """Until a sync that the sensors launched has ended."""
    before = workspace.catalog.sources.get(SOURCE).last_synced_at
    end = time.monotonic() + PATIENCE_S
    while workspace.catalog.sources.get(SOURCE).last_synced_at == before:
        if time.monotonic() > end:
            raise SystemExit("the sensors do not run; see ui.log in the home")
        time.sleep(0.5)


def _report(bench: Bench) -> None:
    done = [removal for removal in bench.removals if removal.unseen is not None and removal.committed is not None]
    say(f"{len(bench.removals)} removals, {len(bench.removals) - len(done)} not seen to the end, {len(bench.searches)} searches")
    tell("search", bench.searches[1:])
    for name, some in (
        ("all", done),
        ("a changed rule", [r for r in done if r.by_rule]),
        ("a moved document", [r for r in done if not r.by_rule]),
    ):
        tell(
            f"{name}: from the commit to unseen",
            [max(0.0, (r.unseen - r.committed).total_seconds()) for r in some if r.unseen and r.committed],
        )
        tell(f"{name}: from the edit to unseen", [(r.unseen - r.edited).total_seconds() for r in some if r.unseen])
        tell(f"{name}: from the edit to the commit", [(r.committed - r.edited).total_seconds() for r in some if r.committed])
    moved = [r for r in done if r.followed is not None]
    tell("from the commit until the rows follow", [(r.followed - r.committed).total_seconds() for r in moved if r.followed and r.committed])
    tell("from the edit until the rows follow", [(r.followed - r.edited).total_seconds() for r in moved if r.followed])


if __name__ == "__main__":
    main()
