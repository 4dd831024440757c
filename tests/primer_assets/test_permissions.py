"""Permissions as syncs keep them: cheap to change, and never open because they could not be read."""

from pathlib import Path

import pytest

from primer_core import ids
from primer_core.stages import WRITE
from primer_resources.connectors.base import Access
from tests.primer_resources.catalog.world import SOURCE, TENANT, VERSION, World
from tests.scripted_source import ScriptedSource
from tests.source_bench import Bench

FOLDER = 1_000


@pytest.fixture
def bench(world: World, tmp_path: Path) -> Bench:
    return Bench(world, tmp_path)


def hidden(world: World, doc_id: str, *groups: str) -> bool:
    """Whether the reader's gate hides a document from these groups."""
    return world.catalog.gate.look(VERSION, [doc_id], [], groups, world.catalog.now()).owners[doc_id].view.hidden


@pytest.mark.parametrize("world_url", ["sqlite"], indirect=True)
def test_a_folder_of_a_thousand_documents_shared_anew_is_one_row_and_counts_at_once(bench: Bench) -> None:
    world, source = bench.world, ScriptedSource(page_size=FOLDER)
    for number in range(FOLDER):
        source.put(f"f/{number}.txt", b"%d" % number)
    bench.sync(source)
    world.bring_to_write()
    flips = [world.flip_of(job, [f"c{number}"]) for number, job in enumerate(world.claim(WRITE, limit=3))]
    for flip in flips:
        assert world.flip(flip)
    indexed = flips[0].job.doc_id
    assert not hidden(world, indexed, "everyone")
    before = world.snapshot()
    source.share("f", "board")
    bench.sync(source)
    after = world.snapshot()
    assert (source.fetched.count("f/0.txt"), bench.sync_report.acl_only) == (1, FOLDER)
    assert {name for name in before if before[name] != after[name]} == {"acls", "acl_groups", "sources"}
    assert sum(row not in before["acls"] for row in after["acls"]) == 1
    assert hidden(world, indexed, "everyone")
    assert not hidden(world, indexed, "board")


def test_a_list_that_timed_out_and_an_empty_list_are_two_things(bench: Bench) -> None:
    source = ScriptedSource()
    for path in ("nobody/a.txt", "slow/b.txt", "open/c.txt"):
        source.put(path, path.encode())
    bench.sync(source)
    source.access["nobody"] = Access("nobody", ())
    source.access["slow"] = Access("slow", (), readable=False, error="the permission service timed out")
    bench.world.catalog.sources.list_next([SOURCE])
    bench.sync(source)
    rows = {path: bench.row(path) for path in source.items}
    assert {path: row.acl_error for path, row in rows.items()} == {
        "nobody/a.txt": None,
        "slow/b.txt": "the permission service timed out",
        "open/c.txt": None,
    }
    assert (bench.groups()["nobody"], bench.groups()["slow"]) == ((), ("everyone",))
    open_now = bench.world.catalog.acls.open_to(TENANT, ["everyone"])
    assert ids.acl_id(TENANT, SOURCE, "nobody") not in open_now
    shown = bench.world.catalog.access.of_document(rows["slow/b.txt"].doc_id)
    assert (shown.readable, shown.error) == (False, "the permission service timed out")
    del source.access["slow"]
    bench.world.catalog.sources.list_next([SOURCE])
    bench.sync(source)
    assert bench.row("slow/b.txt").acl_error is None
