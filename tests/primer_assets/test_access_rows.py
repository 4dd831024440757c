"""The access lane: the catalog decides at once, the rows follow, and nothing that takes long holds them up."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

import lancedb
import numpy as np
import pytest

from primer.materialise import Materialiser
from primer.workspace import Workspace
from primer_core.ids import acl_id
from primer_core.stages import Operation
from primer_resources.catalog.acls import AclRow
from primer_resources.catalog.jobs import NewJob
from primer_resources.index_base import Scope
from primer_resources.toolkit import Tools
from primer_sensors.sweeps import Sweep
from tests.deployment import Deployment, workspace

ALL = Sweep("v1", "00", "01")
QUERY = "ferry of the harbour"
PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One workspace for all of these tests; each has a source and groups of its own."""
    with workspace(tmp_path_factory.mktemp("access") / "home", buckets=2, purge_grace="1ms") as made:
        yield made


@pytest.fixture
def place(shared: Workspace, tmp_path: Path) -> Deployment:
    """An empty folder as a source."""
    return Deployment(shared, tmp_path / "docs", f"docs{len(shared.catalog.sources.all())}")


def materialiser(place: Deployment, **overrides: Any) -> Materialiser:
    """Runs on the deployment, with the workspace's own resources unless replaced."""
    made = place.workspace
    resources = {"settings": made.settings, "catalog": made.catalog, "store": made.store, "toolkit": made.toolkit}
    return Materialiser(made.instance, {**resources, **overrides})


def move_to(place: Deployment, path: str, group: str) -> None:
    """The event of a re-share, as its transaction commits it: the document stands under another ACL, and a job will tell the rows."""
    catalog, source = place.workspace.catalog, place.workspace.catalog.sources.get(place.name)
    wanted = acl_id(source.tenant_id, source.source_id, group)
    document = catalog.documents.by_path(source.source_id, [path])[path]
    now = catalog.now()
    with catalog.database.begin() as connection:
        catalog.acls.put(connection, source, AclRow(wanted, group, (group,), readable=True, error=""), now)
        catalog.documents.grant(connection, document.doc_id, wanted, None)
        job = NewJob(
            *(document.doc_id, source.source_id, document.source_version, document.content_hash, document.bucket or ""),
            *("fast", Operation.ACL, now),
        )
        catalog.jobs.add(connection, [job], ["v1"])


def found(place: Deployment, groups: Collection[str]) -> set[str]:
    """What a person of these groups finds."""
    return {hit.path for hit in place.search(QUERY, tuple(groups), k=50)}


def in_rows(place: Deployment, groups: Collection[str]) -> dict[str, set[str]]:
    """What the rows alone would let these groups see, by mode: doc_ids."""
    made = place.workspace
    tools = made.toolkit.of(made.catalog.deployments.live())
    scope = Scope(made.settings.tenant, made.catalog.acls.open_to(made.settings.tenant, groups))
    vector = tools.embedder.embed_query(QUERY)
    return {
        "vector": {hit.doc_id for hit in tools.vectors.search(vector, scope, 100)},
        "keyword": {hit.doc_id for hit in tools.keywords.search(QUERY, scope, 100)},
    }


def doc_id(place: Deployment, path: str) -> str:
    """The id of a document."""
    return place.workspace.catalog.lookup.find_document(f"{place.name}/{path}")[0]


def test_a_removal_counts_before_the_rows_know_of_it_and_then_the_rows_follow(place: Deployment) -> None:
    place.write("memo.md", f"# Memo\n\nThe ferry of the harbour is sold by {place.name}.")
    place.sync()
    memo, insiders = doc_id(place, "memo.md"), f"{place.name}-insiders"
    move_to(place, "memo.md", insiders)
    assert in_rows(place, [place.name]) == {"vector": {memo}, "keyword": {memo}}, "the rows still carry the old ACL"
    assert found(place, [place.name]) == set(), "the catalog decides"
    materialiser(place).access(ALL)
    assert found(place, [insiders]) == {"memo.md"}
    assert in_rows(place, [insiders]) == {"vector": {memo}, "keyword": {memo}}
    materialiser(place).sweep(ALL)  # purges the rows of the old generation
    assert in_rows(place, [place.name]) == {"vector": set(), "keyword": set()}
    assert place.reconcile().agrees
    assert place.workspace.catalog.queue.waiting_access() == []


def test_all_modes_allow_the_same_before_and_after_the_rows_follow_and_are_compacted(place: Deployment) -> None:
    for n in range(6):
        place.write(f"page-{n}.md", f"# Page {n}\n\nThe ferry of the harbour, part {n}.")
    place.sync()
    crew = f"{place.name}-crew"
    outside, inside = {"page-0.md", "page-2.md", "page-3.md"}, {"page-1.md", "page-4.md"}
    (place.folder / "page-5.md").unlink()
    materialiser(place).source(place.name)
    for path in inside:
        move_to(place, path, crew)
    assert found(place, [place.name]) == outside
    materialiser(place).access(ALL)
    assert (found(place, [place.name]), found(place, [crew])) == (outside, inside)
    materialiser(place).sweep(ALL)
    lancedb.connect(place.workspace.settings.home / "vectors").open_table("v1").optimize()
    for groups, allowed in (([place.name], outside), ([crew], inside), ([place.name, crew], outside | inside), (["nobody"], set())):
        wanted = {doc_id(place, path) for path in allowed}
        assert in_rows(place, groups) == {"vector": wanted, "keyword": wanted}
        assert found(place, groups) == allowed
    assert place.reconcile().agrees


@dataclass(slots=True)
class BusyEmbedder:
    """An embedder that takes its time: `meanwhile` is done, in a process's other thread, before it gives its first vectors."""

    tools: Tools
    meanwhile: Any
    seen: list[str]

    @property
    def spec(self) -> Any:
        """The real one's."""
        return self.tools.embedder.spec

    def embed(self, texts: Sequence[str]) -> Any:
        """Vectors, once the other work is done."""
        if not self.seen:
            self.seen.append("embedding")
            other = Thread(target=self.meanwhile)
            other.start()
            other.join(PATIENCE_S)
            assert not other.is_alive(), "the access lane waits for the embedding"
        return np.asarray(self.tools.embedder.embed(texts))


def test_a_big_document_being_embedded_delays_no_removal_of_its_own_rows_or_of_others(place: Deployment) -> None:
    place.write("memo.md", f"# Memo\n\nThe ferry of the harbour is sold by {place.name}.")
    place.write("big.md", "# Big\n\nThe ferry of the harbour, in all detail.")
    place.sync()
    crew = f"{place.name}-crew"
    place.write("big.md", "# Big\n\nThe ferry of the harbour, in all detail, and how it is steered through the fog of the sound.")
    made = place.workspace
    tools = made.toolkit.of(made.catalog.deployments.live())
    both = {doc_id(place, "memo.md"), doc_id(place, "big.md")}
    rows: list[dict[str, set[str]]] = []

    def remove() -> None:
        for path in ("memo.md", "big.md"):
            move_to(place, path, crew)
        materialiser(place).access(ALL)
        rows.append(in_rows(place, [crew]))

    embedder = BusyEmbedder(tools, remove, [])

    class Busy:
        expander = made.toolkit.expander

        def of(self, _version: Any) -> Tools:
            return replace(tools, embedder=embedder)

    runs = materialiser(place, toolkit=Busy())
    runs.source(place.name)
    runs.sweep(ALL)
    assert embedder.seen == ["embedding"]
    assert rows == [{"vector": both, "keyword": both}], "the rows followed while the other document was still being embedded"
    assert found(place, [place.name]) == set()
    assert {hit.text for hit in place.search("steered through the fog", (crew,)) if hit.path == "big.md"} != set(), "the edit went on"
    materialiser(place).sweep(ALL)
    assert in_rows(place, [place.name]) == {"vector": set(), "keyword": set()}
    assert place.reconcile().agrees


def test_lanes_that_a_sweep_holds_are_waited_for(place: Deployment) -> None:
    place.write("memo.md", f"# Memo\n\nThe ferry of the harbour is sold by {place.name}.")
    place.sync()
    move_to(place, "memo.md", f"{place.name}-crew")
    catalog, lease = place.workspace.catalog, place.workspace.settings.lease
    catalog.lanes.acquire("v1", ["00", "01"], "a sweep", lease)
    run = Thread(target=materialiser(place).access, args=(ALL,))
    run.start()
    run.join(1.5)
    assert run.is_alive()
    catalog.lanes.release("a sweep")
    run.join(PATIENCE_S)
    assert catalog.queue.waiting_access() == []
    assert found(place, [f"{place.name}-crew"]) == {"memo.md"}
