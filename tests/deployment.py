"""A deployment of its own for a test: a home, a folder of documents, and the things that people do with them, in this process."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from primer.cli.main import app
from primer.materialise import Materialiser
from primer.syncing import Syncing, SyncResult
from primer.workspace import Workspace
from primer_resources.catalog.sources import Source
from primer_resources.reader import SearchResult
from primer_resources.reconciling import ReconcileReport, reconcile
from primer_resources.settings import load_settings


class Deployment:
    """A workspace and one source in it, over a folder that the test fills; the group that may read it has the source's name."""

    def __init__(self, workspace: Workspace, folder: Path, name: str) -> None:
        self.workspace = workspace
        self.folder = folder
        self.name = name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.add_source()

    def add_source(self) -> None:
        """Add the folder as a source."""
        name, settings = self.name, {"root": str(self.folder), "groups": [self.name]}
        source = Source(name, self.workspace.settings.tenant, "main", "drive", settings, "poll", 20)
        self.workspace.catalog.sources.add(source)
        self.workspace.add_partitions()

    def write(self, path: str, text: str) -> Path:
        """Write a document."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def sync(self, **overrides: Any) -> SyncResult:
        """Sync to the end, as `primer sync` does."""
        workspace = self.workspace
        resources = {
            "settings": workspace.settings,
            "catalog": workspace.catalog,
            "store": workspace.store,
            "toolkit": workspace.toolkit,
            **overrides,
        }
        materialiser = Materialiser(workspace.instance, resources)
        return Syncing(workspace.catalog, workspace.settings, materialiser, lambda *_: None).run([self.name])[0]

    def search(self, query: str, groups: tuple[str, ...] | None = None, k: int = 10) -> list[SearchResult]:
        """Search as a person of these groups, of the source's own when left out."""
        wanted = (self.name,) if groups is None else groups
        return self.workspace.reader.search(query, self.workspace.settings.tenant, wanted, k)

    def reconcile(self) -> ReconcileReport:
        """Compare the id sets."""
        version = self.workspace.catalog.deployments.live()
        return reconcile(self.workspace.catalog, version, self.workspace.toolkit.of(version))

    def dead(self) -> dict[str, str]:
        """path → reason of the source's dead letters."""
        return {letter.path: letter.reason for letter in self.workspace.catalog.lookup.dead_letters(source_id=self.name)}


@contextmanager
def workspace(home: Path, **settings: Any) -> Iterator[Workspace]:
    """A new workspace, closed at the end. One parse worker: a test's documents are few, and starting a worker costs 4 CPU seconds."""
    made = Workspace(load_settings(home=home, parse_workers=1, **settings))
    made.create()
    try:
        yield made
    finally:
        made.close()


def primer(*words: str) -> tuple[int, str]:
    """Run the command line in this process. Returns the exit code and what it printed; a PrimerError is raised."""
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    return result.exit_code, result.output


def primer_json(*words: str) -> Any:
    """Run a reading command with --json and read what it printed."""
    code, output = primer(*words, "--json")
    assert code == 0, output
    return json.loads(output)
