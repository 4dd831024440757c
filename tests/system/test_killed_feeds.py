"""A wiki's feed killed with SIGKILL in the middle of a piece: no page is lost, none is indexed twice, and the feed goes on where it was."""

from pathlib import Path

import pytest
from sqlalchemy import func, select

from primer.workspace import FIRST_VERSION
from primer_core.ids import content_hash, doc_id
from primer_core.stages import Operation, State
from primer_resources.catalog.schema import documents, jobs
from primer_resources.catalog.sources import Source
from tests.git_history import HistoryRepo
from tests.system.crash_deployment import Deployment, deployed
from tests.system.crash_documents import DOCUMENTS, VERSIONS, text_of
from tests.system.crash_reader import GROUPS
from tests.system.crash_worker import FEED, FETCH, Order, Stop

WIKI = "pages"

pytestmark = [pytest.mark.system, pytest.mark.timeout(0)]  # every wait has a deadline of its own


class Wiki:
    """A wiki whose pages are the documents of the crash tests, as a source of a deployment."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self._deployment = deployment
        self.repo = HistoryRepo(folder)
        self._versions = list(range(DOCUMENTS))
        self._indexed: dict[str, int] = {}
        self._write()
        settings = deployment.workspace.settings
        configured = {"url": str(folder), "groups": list(GROUPS)}
        deployment.workspace.catalog.sources.add(Source(WIKI, settings.tenant, settings.library, "wiki", configured, "poll", 30))
        deployment.workspace.add_partitions()

    def edit(self) -> None:
        """Every page steps to its next version, each in a commit of its own."""
        self._versions = [(version + 1) % len(VERSIONS) for version in self._versions]
        self._write()

    def _write(self) -> None:
        for number, version in enumerate(self._versions):
            path, sections = f"survey-{number}.md", VERSIONS[version]
            if sections is not None:
                self.repo.put(path, text_of(number, sections).encode())
                self._indexed[path] = self._indexed.get(path, 0) + 1
            elif path in self.repo.contents():
                self.repo.remove(path)
            self.repo.commit()

    def problems(self) -> list[str]:
        """What is wrong once all is indexed: pages that are missing or stand twice, passages that differ, versions indexed twice."""
        workspace, found = self._deployment.workspace, []
        recipe = workspace.catalog.deployments.live().recipe
        for path, data in self.repo.contents().items():
            identity = doc_id(WIKI, path)
            chunks = workspace.store.of("default").get_chunks(content_hash(data), recipe.parser.version, recipe.chunker.version)
            if set(workspace.catalog.lookup.chunk_ids(identity, FIRST_VERSION)) != {chunk.id_in(identity) for chunk in chunks}:
                found.append(f"{path} is not indexed as it stands")
        living = select(documents.c.path).where(documents.c.source_id == WIKI, documents.c.deleted_at.is_(None))
        upserts = (
            select(documents.c.path, func.count())
            .join(jobs, jobs.c.doc_id == documents.c.doc_id)
            .where(documents.c.source_id == WIKI, jobs.c.operation == Operation.UPSERT, jobs.c.state == State.INDEXED)
            .group_by(documents.c.path)
        )
        with workspace.catalog.database.read() as connection:
            paths = sorted(connection.execute(living).scalars())
            counts = {row.path: row[1] for row in connection.execute(upserts)}
        if paths != sorted(self.repo.contents()):
            found.append(f"pages that live: {paths}")
        return found + ([] if counts == self._indexed else [f"versions indexed: {counts}, not {self._indexed}"])


@pytest.mark.parametrize("boundary", [FEED, FETCH])
def test_a_feed_killed_in_the_middle_of_a_piece_loses_and_doubles_nothing(crash_template: Path, tmp_path: Path, boundary: str) -> None:
    with deployed(crash_template, tmp_path) as deployment:
        wiki = Wiki(deployment, tmp_path / "wiki.git")
        worker = deployment.start_worker()
        deployment.recover(worker)
        for hit in (1,) if boundary == FEED else (1, 3):
            wiki.edit()
            worker.start(Order(stop=Stop(boundary, hit)))
            worker.wait_for_kill()
            worker = deployment.start_worker()
            deployment.recover(worker)
            assert wiki.problems() == []
        assert deployment.remains(worker) == []
