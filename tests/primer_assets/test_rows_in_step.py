"""Both indexes hold the rows of the passages that stand, and no other: whatever is edited, shortened, deleted or forgotten."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sqlalchemy import select

from primer.workspace import Workspace
from primer_assets import indexed_documents
from primer_assets.stage_run import StageRun, Tally
from primer_core.chunks import Chunk
from primer_core.failures import SystemFault
from primer_core.ids import acl_id, embedding_key, row_id
from primer_resources.catalog.schema import purges_due
from primer_resources.index_base import Scope
from primer_resources.toolkit import Tools
from tests.copies_bench import BUCKETS, CopiesBench, MemoryIndex, Ones
from tests.deployment import Deployment, workspace

GRACE = "1ms"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One workspace whose dead rows are purged by the sync after the one that made them so."""
    with workspace(tmp_path_factory.mktemp("rows") / "home", buckets=2, purge_grace=GRACE) as made:
        yield made


@pytest.fixture
def place(shared: Workspace, tmp_path: Path) -> Deployment:
    return Deployment(shared, tmp_path / "docs", f"docs{len(shared.catalog.sources.all())}")


def section(number: int, heading: str = "Section") -> str:
    """A section of its own words, which is a passage."""
    return f"## {heading} {number}\n\n" + " ".join(f"Rule {number}.{n} of district {number * 7} stands as written." for n in range(6))


def page(*sections: str) -> str:
    return "# Rules\n\n" + "\n\n".join(sections)


def tools_of(place: Deployment) -> Tools:
    return place.workspace.toolkit.of(place.workspace.catalog.deployments.live())


def doc_id_of(place: Deployment, path: str) -> str:
    return place.workspace.catalog.lookup.find_document(f"{place.name}/{path}")[0]


def passages_of(place: Deployment, path: str) -> dict[str, Chunk]:
    """chunk id → passage, as the document's content is cut now."""
    doc_id, recipe = doc_id_of(place, path), place.workspace.catalog.deployments.live().recipe
    content = place.workspace.catalog.documents.by_id([doc_id])[doc_id].content_hash or ""
    made = place.workspace.store.of("default").get_chunks(content, recipe.parser.version, recipe.chunker.version)
    return {chunk.id_in(doc_id): chunk for chunk in made}


def rows_of(place: Deployment, path: str) -> set[str]:
    """Row ids of the document's manifest."""
    version = place.workspace.catalog.deployments.live().name
    doc_id = doc_id_of(place, path)
    manifest = place.workspace.catalog.generations.states(version, {doc_id})[doc_id].manifest
    return {row_id(chunk, generation) for chunk, generation in manifest.items()}


def held(place: Deployment, rows: set[str]) -> tuple[set[str], set[str]]:
    """Those of the rows that the vector index holds, and those that the keyword index does."""
    tools = tools_of(place)
    return rows & set(tools.vectors.row_ids()), rows & set(tools.keywords.row_ids())


def test_a_shorter_version_and_a_delete_that_nobody_told_of_leave_no_row_in_either_index(place: Deployment) -> None:
    place.write("rules.md", page(*(section(n) for n in range(12))))
    gone = place.write("gone.md", page(*(section(n) for n in range(20, 24))))
    place.sync()
    long, dead, tools = rows_of(place, "rules.md"), rows_of(place, "gone.md"), tools_of(place)
    assert len(long) >= 12
    tenant = place.workspace.settings.tenant
    scope = Scope(tenant, frozenset({acl_id(tenant, place.name, "")}))
    query = tools.embedder.embed_query("rule of district 147")

    def hits() -> set[str]:
        """Straight from the indexes, past the catalog's gate."""
        found = (*tools.vectors.search(query, scope, 100), *tools.keywords.search("rule district 147", scope, 100))
        return {hit.row_id for hit in found}

    assert dead | long == hits()
    place.write("rules.md", page(*(section(n) for n in range(3))))
    gone.unlink()
    counts = place.sync().counts
    short = rows_of(place, "rules.md")
    assert {chunk.partition(":")[0] for chunk in short} == set(passages_of(place, "rules.md"))
    assert (counts["deleted"], counts["chunks_gone"]) == (1, len(long - short))
    assert {hit.path for hit in place.search("rule of district 147", k=100)} == {"rules.md"}
    place.sync()
    assert hits() == short
    assert held(place, long | short | dead) == (short, short)
    assert place.reconcile().agrees


def test_every_passage_of_a_long_document_is_in_both_indexes_whatever_way_it_came(place: Deployment) -> None:
    text = [section(n, "Part") for n in range(40, 46)]
    place.write("a.md", page(*text))
    place.write("b.html", "<h1>Rules</h1>" + "".join(f"<h2>P{n}</h2><p>{each.partition(chr(10))[2]} b</p>" for n, each in enumerate(text)))
    place.write("c.txt", "\n\n".join(f"{each.partition(chr(10))[2]} c" for each in text))
    with ZipFile(place.folder / "d.zip", "w") as archive:
        archive.writestr("inner.md", page(*text) + "\n\nThe last word of d.")
    place.sync()
    for path in ("a.md", "b.html", "c.txt", "d.zip/inner.md"):
        passages, rows = passages_of(place, path), rows_of(place, path)
        assert len(passages) > 1, path
        assert {row.partition(":")[0] for row in rows} == set(passages), path
        assert held(place, rows) == (rows, rows), path


def test_a_vector_is_that_of_the_very_string_after_a_heading_or_a_neighbour_changed(place: Deployment) -> None:
    tools, tenant = tools_of(place), place.workspace.settings.tenant
    scope = Scope(tenant, frozenset({acl_id(tenant, place.name, "")}))
    heading, neighbour = [section(n) for n in range(60, 64)], [section(n) for n in range(70, 74)]
    place.write("heading.md", page(*heading))
    place.write("neighbour.md", page(*neighbour))
    place.sync()
    before = passages_of(place, "heading.md") | passages_of(place, "neighbour.md")
    heading[2] = heading[2].replace("Section 62", "Another heading")
    neighbour[1] = neighbour[1].replace("Rule 71.5 of", "Law 71.5 of")
    place.write("heading.md", page(*heading))
    place.write("neighbour.md", page(*neighbour))
    counts = place.sync().counts
    after = passages_of(place, "heading.md") | passages_of(place, "neighbour.md")
    new = {chunk.embed_text for chunk_id, chunk in after.items() if chunk_id not in before}
    assert 2 <= counts["embedded"] == len(new) <= 4
    for chunk_id, chunk in after.items():
        (vector,) = tools.embedder.embed([chunk.embed_text])
        best = tools.vectors.search(vector, scope, 1)[0]
        assert (best.chunk_id, round(best.score, 2)) == (chunk_id, 1.0)


@pytest.fixture
def bench(database_url: str, tmp_path: Path) -> CopiesBench:
    """A whole job whose model and indexes are in memory."""
    made = CopiesBench(database_url, tmp_path)
    made.make()
    return made


class Interrupted(Ones):
    """An embedder that lets something happen before it answers for the first time."""

    def __init__(self, act: object) -> None:
        super().__init__()
        self.act = act

    def embed(self, texts):  # type: ignore[no-untyped-def]
        act, self.act = self.act, None
        if callable(act):
            act()
        return super().embed(texts)


def test_a_version_that_comes_while_the_one_before_is_being_embedded_is_indexed_after_it(bench: CopiesBench) -> None:
    def edit() -> None:
        bench.put("north", "page.txt", "second|version")
        bench.sync("north")

    bench.put("north", "page.txt", "first|version")
    bench.sync("north")
    embedder = Interrupted(edit)
    bench.tools["v1"] = type(bench.tools["v1"])(
        **{name: getattr(bench.tools["v1"], name) for name in bench.tools["v1"].__slots__ if name != "embedder"}, embedder=embedder
    )
    bench.sweep()
    assert embedder.act is None
    assert bench.catalog.queue.unfinished() > 0, "the newer version waits, it is not merged into the one that was held"
    assert bench.texts("everyone") in ({"first", "version"}, set()), "old or nothing, never mixed"
    bench.drain()
    assert bench.texts("everyone") == {"second", "version"}
    status = bench.catalog.lookup.status(bench.row("north", "page.txt").doc_id, "v1")
    assert status.indexed_version == status.source_version


def test_one_vector_that_is_missing_is_the_only_one_that_is_embedded_again(bench: CopiesBench) -> None:
    text = "|".join(f"passage {number}" for number in range(20))
    bench.put("north", "rules.txt", text)
    bench.sync("north")
    bench.drain()
    assert bench.embedder.asked == 20
    cache: Any = bench.tools["v1"].cache
    del cache.vectors[embedding_key(bench.embedder.spec.version, "passage 7")]
    bench.put("north", "longer.txt", f"{text}|the end")
    bench.sync("north")
    bench.drain()
    assert bench.embedder.asked == 22
    assert bench.reconcile().agrees


def test_an_event_that_comes_again_makes_no_row_and_asks_for_no_vector(bench: CopiesBench) -> None:
    for number in range(4):
        bench.put("north", f"page-{number}.txt", f"one {number}|two {number}|three {number}")
    bench.sync("north")
    bench.drain()
    rows, asked = bench.row_sets(), bench.embedder.asked
    log = list(bench.sources["north"].log)
    bench.sources["north"].replay(*log, *reversed(log))
    bench.sync("north")
    bench.sync("north", full=True)
    bench.drain()
    assert (bench.row_sets(), bench.embedder.asked) == (rows, asked)
    assert bench.reconcile().agrees


class Deaf(MemoryIndex):
    """An index whose deletes do nothing and say nothing."""

    def delete(self, *bucket_and_ids: object) -> None:
        """Nothing."""


@pytest.mark.parametrize("which", ["vectors", "keywords"])
def test_a_purge_that_deletes_nothing_is_no_purge(bench: CopiesBench, which: str) -> None:
    tools = bench.tools["v1"]
    deaf = Deaf()
    used = {name: getattr(tools, name) for name in tools.__slots__} | {which: deaf}
    bench.tools["v1"] = type(tools)(**used)
    bench.put("north", "gone.txt", "one|two")
    bench.sync("north")
    bench.drain()
    bench.sources["north"].remove("gone.txt")
    bench.sync("north")
    bench.drain()
    settings = bench.settings
    bench.world.pass_time(settings.purge_grace * 2)
    version = bench.catalog.deployments.version("v1")
    run = StageRun(bench.catalog, bench.store, settings, version, bench.tools["v1"], BUCKETS, "run-purge")
    with pytest.raises(SystemFault, match="2 rows are still in an index after they were deleted"):
        indexed_documents._purge(run, BUCKETS, Tally(), lambda _: None)
    assert _done_marks(bench) == [None, None]
    bench.tools["v1"] = type(tools)(**(used | {which: MemoryIndex()}))
    run = StageRun(bench.catalog, bench.store, settings, version, bench.tools["v1"], BUCKETS, "run-purge")
    indexed_documents._purge(run, BUCKETS, Tally(), lambda _: None)
    assert None not in _done_marks(bench)


def _done_marks(bench: CopiesBench) -> list[object]:
    with bench.catalog.database.read() as connection:
        return list(connection.execute(select(purges_due.c.done_at)).scalars())
