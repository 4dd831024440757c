"""Bodies that a deployment chose not to keep: they go when nobody can need them, and never before."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import update

from primer_assets.body_policies import body_policies
from primer_core.body_policies import KeepSources
from primer_core.failures import DocumentFault, Reason
from primer_core.index_versions import VersionState
from primer_core.lanes import Lane
from primer_core.part_keys import DOCUMENT, chunk_set, picture
from primer_core.reviews import ReviewState, output_version
from primer_core.stages import PARSE
from primer_core.stored_states import DeletedReason, Part, PartState, pipeline_state
from primer_resources.catalog.body_policies import BodyPolicies
from primer_resources.catalog.contents import HANDLING, lock_contents
from primer_resources.catalog.reviews import SeenPage
from primer_resources.catalog.schema import index_state, index_versions
from primer_resources.catalog.schema_bodies import contents, freed_objects, parsed
from primer_resources.document_store import Arrived
from primer_resources.settings import load_settings
from tests.copies_bench import SPOILT, passages
from tests.primer_resources.catalog.world import BUCKETS, LEASE, RECIPE, TENANT, waits_for_a_lock
from tests.replay_bench import DAY, ReplayBench

PARSER, CHUNKER = RECIPE.parser.version, RECIPE.chunker.version
OLDER = "docling;0"
"""A parser that no index version uses."""


@pytest.fixture
def bench(database_url: str, tmp_path: Path) -> Iterator[ReplayBench]:
    made = ReplayBench(database_url, tmp_path / "home")
    made.make()
    yield made
    made.catalog.close()


def test_source_bytes_go_once_they_are_indexed_and_their_hash_and_size_stay(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha|beta")
    bench.put("south", "c.md", "alpha|beta")
    bench.index()
    before = bench.content_of("north", "a.md")
    assert bench.settle() == 1
    assert bench.settle() == 0
    assert bench.content_of("north", "a.md").object is None
    (freed,) = bench.all(freed_objects)
    assert (freed.kind, freed.object_key) == ("intake", before.object)
    for place in (("north", "a.md"), ("south", "c.md")):
        entry = bench.manifest_of(*place).find(Part.BLOBS)
        assert entry is not None
        assert (entry.state, entry.deleted_reason) == (PartState.DELETED, DeletedReason.POST_PARSE_POLICY)
        assert (entry.sha256, entry.size, entry.object_key) == (before.content_hash, 10, None)
    bench.remove_freed()
    assert bench.texts("everyone") == {"alpha", "beta"}


def test_bytes_that_a_parse_wants_back_are_a_dead_letter_that_says_what_to_do(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    bench.settle()
    with pytest.raises(DocumentFault, match="deleted after they were indexed") as caught:
        bench.tenant.fetch_content(bench.row("north", "a.md").content_hash, bench.home / "fetched")
    assert caught.value.reason is Reason.BYTES_DELETED


def test_the_same_bytes_that_come_again_are_stored_anew_and_belong_to_all_who_have_them(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    old = bench.content_of("north", "a.md").object
    bench.settle()
    bench.put("south", "c.md", "alpha")
    bench.sync("south")
    content = bench.content_of("north", "a.md")
    assert content.object not in (None, old)
    for place in (("north", "a.md"), ("south", "c.md")):
        entry = bench.manifest_of(*place).find(Part.BLOBS)
        assert entry is not None
        assert (entry.state, entry.object_key, entry.deleted_reason) == (PartState.PRESENT, content.object, None)
    bench.remove_freed()
    assert bench.tenant.intake.get(content.object) == b"alpha"
    assert bench.settle() == 0, "the copy is not indexed yet"
    bench.drain()
    assert bench.settle() == 1


def test_two_that_bring_the_bytes_back_at_once_leave_one_object(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    bench.settle()
    bench.remove_freed()
    file = bench.home / "again"
    file.write_bytes(b"alpha")
    content_hash = bench.row("north", "a.md").content_hash
    threads = [Thread(target=bench.tenant.keep, args=(Arrived(file, content_hash, 5, "text/plain", Lane.FAST),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [stored.key for stored in bench.tenant.intake.list()] == [bench.content_of("north", "a.md").object]


def test_bytes_stay_after_a_failure(bench: ReplayBench) -> None:
    bench.put("north", "d.md", f"{SPOILT} delta")
    bench.index("north")
    assert bench.settle() == 0
    bench.is_mended = True
    bench.replay("parse", apply=True, source_id="north")
    assert bench.settle() == 0, "its job is under way"
    bench.drain()
    assert bench.settle() == 1


def test_bytes_stay_while_an_indexed_document_is_made_again_and_where_that_fails(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    bench.replay("parse", apply=True, source_id="north")
    assert bench.settle() == 0, "its job may read them"
    (job,) = bench.catalog.jobs.claim(PARSE, "v1", BUCKETS, "run", LEASE, 10)
    bench.catalog.jobs.fail(PARSE, job, "run", DocumentFault(Reason.CORRUPT, "it is broken"))
    assert bench.settle() == 0, "what stands in the indexes is older than the failure"


def test_bytes_stay_while_another_document_with_them_is_not_indexed(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    bench.put("south", "c.md", "alpha")
    bench.sync("south")
    assert bench.settle() == 0
    bench.drain()
    assert bench.settle() == 1


def test_bytes_of_an_earlier_version_stay_while_the_newer_one_is_on_its_way_or_dead(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    bench.put("north", "a.md", f"{SPOILT} omega")
    bench.sync("north")
    assert bench.settle() == 0
    bench.drain()
    assert bench.settle() == 0


def test_bytes_stay_until_every_open_index_version_has_them(database_url: str, tmp_path: Path) -> None:
    bench = ReplayBench(database_url, tmp_path / "home", versions=("v1", "v2"))
    bench.make()
    bench.put("north", "a.md", "alpha")
    bench.sync("north")
    for _ in range(3):
        bench.sweep("v1")
    assert bench.settle() == 0
    bench.drain()
    assert bench.settle() == 1
    bench.catalog.close()


def test_bytes_stay_while_a_page_waits_for_a_person(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    content_hash = bench.row("north", "a.md").content_hash
    see(bench, content_hash, SeenPage(3, 0, 0.4, "?", "picture"))
    assert bench.settle() == 0
    bench.catalog.reviews.decide(TENANT, content_hash, [3], ReviewState.REJECTED, "ana")
    assert bench.settle() == 1


def test_bytes_that_a_sync_has_just_stored_stay_for_the_hour_in_which_they_are_given_away(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    content = bench.content_of("north", "a.md")
    assert bench.catalog.contents.touch(TENANT, content.content_hash, content.object)
    assert bench.settle() == 0
    bench.world.pass_time(HANDLING + DAY)
    assert bench.settle() == 1


def test_what_too_many_documents_have_is_kept(bench: ReplayBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("primer_resources.catalog.body_policies.MOST_CLAIMS", 1)
    for path, text in (("a.md", "alpha"), ("b.md", "alpha"), ("c.md", "gamma")):
        bench.put("north", path, text)
    bench.index("north")
    bench.settle()
    assert bench.content_of("north", "a.md").object is not None
    assert bench.content_of("north", "c.md").object is None


def test_all_pages_are_gone_through(bench: ReplayBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOKED_AT", "CHANGED_AT_ONCE"):
        monkeypatch.setattr(f"primer_resources.catalog.body_policies.{name}", 2)
    for number in range(5):
        bench.put("north", f"{number}.md", f"passage {number}")
    bench.index("north")
    made_by(bench, OLDER, *(f"{number}.md" for number in range(5)))
    bench.world.pass_time(DAY)
    assert bench.settle() == 5
    assert bench.retain() == 10


def test_a_settlement_decides_on_what_holds_once_it_has_the_content(postgres_url: str, tmp_path: Path) -> None:
    bench = ReplayBench(postgres_url, tmp_path / "home")
    bench.make()
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    content_hash = bench.row("north", "a.md").content_hash
    thread = Thread(target=bench.settle)
    with bench.catalog.database.begin() as connection:
        lock_contents(connection, [(TENANT, content_hash)])
        thread.start()
        with waits_for_a_lock(bench.world):
            touched = update(contents).where(contents.c.content_hash == content_hash)
            connection.execute(touched.values(unowned_at=bench.catalog.now()))
    thread.join()
    assert bench.content_of("north", "a.md").object is not None
    bench.catalog.close()


def made_by(bench: ReplayBench, output: str, *paths: str) -> None:
    """What another parser, or the pages that were let through, made of documents: parsed, and cut."""
    for path in paths:
        row = bench.row("north", path)
        parsed_document = bench.tenant.get_parsed(row.content_hash, PARSER)
        bench.tenant.put_parsed(row.content_hash, output, parsed_document, "run")
        with bench.catalog.database.begin() as connection:
            bench.catalog.parses.record(connection, output, TENANT, row.content_hash, 1, None, None)
        if output != OLDER:
            bench.tenant.put_chunks(row.content_hash, output, CHUNKER, passages(b"alpha|beta"), "run")


def see(bench: ReplayBench, content_hash: str, *pages: SeenPage) -> None:
    with bench.catalog.database.begin() as connection:
        bench.catalog.reviews.record(connection, TENANT, content_hash, PARSER, [PARSER], pages)


def is_kept(bench: ReplayBench, path: str, output: str) -> bool:
    content_hash = bench.row("north", path).content_hash
    return bench.tenant.pipeline.manifest(pipeline_state(TENANT, content_hash, output)).has(*DOCUMENT)


def test_outputs_that_no_open_version_uses_go_when_they_are_old_enough(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha|beta")
    bench.index("north")
    made_by(bench, OLDER, "a.md")
    assert bench.retain() == 0, "it is not old enough"
    bench.world.pass_time(DAY)
    assert bench.retain() == 2
    assert bench.retain() == 0
    assert (is_kept(bench, "a.md", OLDER), is_kept(bench, "a.md", PARSER)) == (False, True)
    manifest = bench.tenant.pipeline.manifest(pipeline_state(TENANT, bench.row("north", "a.md").content_hash, OLDER))
    gone = manifest.find(*DOCUMENT)
    assert gone is not None
    assert (gone.state, gone.deleted_reason, gone.size > 0, gone.sha256 is None) == ("deleted", "post_parse_policy", True, False)
    assert {row.parser_version for row in bench.all(parsed)} == {PARSER}, "what is not kept does not count as parsed"
    assert bench.remove_freed() == 2
    assert bench.texts("everyone") == {"alpha", "beta"}
    assert bench.content_of("north", "a.md").object is not None, "source bytes never go by age"
    made_by(bench, OLDER, "a.md")
    assert is_kept(bench, "a.md", OLDER)


def test_outputs_of_a_version_that_is_retired_go(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    bench.world.pass_time(DAY)
    assert bench.retain() == 0
    with bench.catalog.database.begin() as connection:
        connection.execute(update(index_versions).values(state=VersionState.RETIRED))
    assert bench.retain() == 0, "without any open version nothing is known to be of no use"


@pytest.mark.parametrize("place", ["index", "before", "decided"])
def test_what_a_search_may_quote_from_stays(bench: ReplayBench, place: str) -> None:
    """The output with the pages that a person let through: as the indexes hold it, as they held it before, or as it is to be."""
    bench.put("north", "a.md", "alpha|beta")
    bench.index("north")
    row = bench.row("north", "a.md")
    accepted, unused = output_version(PARSER, "3"), output_version(PARSER, "4")
    made_by(bench, accepted, "a.md")
    made_by(bench, unused, "a.md")
    if place == "decided":
        see(bench, row.content_hash, SeenPage(3, 0, 0.4, "?", "picture"))
        bench.catalog.reviews.decide(TENANT, row.content_hash, [3], ReviewState.ACCEPTED, "ana")
    else:
        previous = "previous_" if place == "before" else ""
        values: dict[str, Any] = {f"{previous}content_hash": row.content_hash, f"{previous}accepted_pages": "3"}
        with bench.catalog.database.begin() as connection:
            connection.execute(update(index_state).where(index_state.c.doc_id == row.doc_id).values(**values))
    bench.world.pass_time(DAY)
    assert bench.retain() == 3
    assert (is_kept(bench, "a.md", accepted), is_kept(bench, "a.md", unused), is_kept(bench, "a.md", PARSER)) == (True, False, True)
    assert bench.tenant.has_chunks(row.content_hash, accepted, CHUNKER)
    assert bench.texts("everyone") == {"alpha", "beta"}


def test_pictures_that_people_are_shown_stay(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    made_by(bench, OLDER, "a.md")
    content_hash = bench.row("north", "a.md").content_hash
    keys = [bench.tenant.put_picture(content_hash, OLDER, page, 0, b"png", "run") for page in (1, 2)]
    see(bench, content_hash, SeenPage(1, 0, 0.4, "?", keys[0]))
    bench.world.pass_time(DAY)
    assert bench.retain() == 3
    bench.remove_freed()
    assert bench.tenant.get_picture(keys[0]) == b"png"
    manifest = bench.tenant.pipeline.manifest(pipeline_state(TENANT, content_hash, OLDER))
    assert (manifest.has(*picture(1, 0)), manifest.has(*picture(2, 0)), manifest.has(*chunk_set(CHUNKER))) == (True, False, False)


@pytest.mark.parametrize(
    ("settings", "figures"),
    [
        ({}, {}),
        ({"keep_sources": KeepSources.UNTIL_INDEXED}, {"sources_deleted": 1, "sources_bytes": 5}),
        ({"retention": "30d"}, {"outputs_deleted": 2}),
    ],
)
def test_the_asset_does_what_the_settings_say(sqlite_url: str, tmp_path: Path, settings: dict[str, Any], figures: dict[str, int]) -> None:
    bench = ReplayBench(sqlite_url, tmp_path / "home")
    bench.make()
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    made_by(bench, OLDER, "a.md")
    bench.world.pass_time(30 * DAY)
    resources = {"catalog": bench.catalog, "settings": load_settings(home=bench.home, **settings)}
    result = dg.materialize([body_policies], resources=resources)
    found = result.asset_materializations_for_node("body_policies")[0].metadata
    assert {name: found[name].value for name in figures} == figures
    assert {name for name in found if name.endswith("_deleted")} == {name for name in figures if name.endswith("_deleted")}
    bench.catalog.close()


def test_a_policy_that_is_not_set_touches_nothing(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("this policy is not set")

    monkeypatch.setattr(BodyPolicies, "settle", refuse)
    monkeypatch.setattr(BodyPolicies, "retain", refuse)
    bench = ReplayBench(sqlite_url, tmp_path / "home")
    bench.make()
    dg.materialize([body_policies], resources={"catalog": bench.catalog, "settings": load_settings(home=bench.home)})
    assert bench.all(contents) == []
    bench.catalog.close()
