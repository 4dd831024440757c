"""Purges: what was deleted is gone from indexes, cache, catalog and drives, with a proof each, and nothing else goes."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import delete, insert, text, update
from sqlalchemy.exc import DBAPIError

from primer_assets import forgotten_vectors
from primer_assets.vectors import vector_key
from primer_core.chunks import Chunk, number_occurrences
from primer_core.failures import SystemFault
from primer_core.ids import content_hash
from primer_core.lanes import Lane
from primer_core.stored_states import DriveKind
from primer_resources.catalog.contents import HANDLING
from primer_resources.catalog.schema_bodies import contents, freed_objects, parsed, purge_proofs, purges, stored_states
from primer_resources.document_store import Arrived
from tests import copies_bench
from tests.copies_bench import CopiesBench, passages
from tests.primer_resources.catalog.world import TENANT

BODIES = (contents, parsed, stored_states, freed_objects, purges)
STEPS = ("released", "vectors gone", "bytes gone", "proved")


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def bench(database_url: str, tmp_path: Path) -> Iterator[CopiesBench]:
    made = CopiesBench(database_url, tmp_path / "home")
    made.make()
    made.share("north", "n", "everyone")
    made.share("south", "s", "everyone")
    yield made
    made.catalog.close()


def settle(bench: CopiesBench) -> None:
    for name in bench.names:
        bench.sync(name)
    bench.drain()


def left(bench: CopiesBench) -> dict[str, int]:
    """How many rows each table of bodies has."""
    return {table.name: len(bench.world.rows(table)) for table in BODIES}


def proved(bench: CopiesBench) -> list[str]:
    return [row.doc_id for row in bench.world.rows(purge_proofs)]


NOTHING = dict.fromkeys((table.name for table in BODIES), 0)


def test_of_a_deleted_document_nothing_is_left_but_its_proof(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha|beta")
    settle(bench)
    doc_id = bench.row("north", "n/a.md").doc_id
    assert bench.objects()
    assert bench.texts("everyone") == {"alpha", "beta"}
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    assert bench.purge()["proofs"] == 1
    assert (left(bench), bench.objects(), bench.tools["v1"].cache.vectors) == (NOTHING, set(), {})
    (proof,) = bench.catalog.purges.proofs(doc_id)
    assert proof.contents[0]["content_hash"] == content_hash(b"alpha|beta")
    assert (proof.contents[0]["size"], proof.contents[0]["bytes"]) == (10, "gone")
    assert {part["part"] for part in proof.contents[0]["parts"]} == {"blobs", "chunks"}
    figures = {"vector_rows": 2, "keyword_rows": 2, "objects": 2, "elements": 0, "cached_vectors": 2, "unread_chunk_sets": 0}
    assert proof.looked_at == figures
    assert proof.deleted_at < proof.purged_at
    assert bench.purge()["proofs"] == 0, "a purge is proved once"


def test_the_vector_of_words_that_a_living_document_has_stays(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha|beta")
    bench.put("south", "s/b.md", "beta|gamma")
    settle(bench)
    assert len(bench.tools["v1"].cache.vectors) == 3
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    assert bench.purge()["vectors"] == 1
    assert len(bench.tools["v1"].cache.vectors) == 2
    (proof,) = bench.world.rows(purge_proofs)
    assert proof.looked_at["cached_vectors"] == 1


def test_a_proof_can_be_neither_changed_nor_deleted(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    bench.purge()
    (proof,) = bench.world.rows(purge_proofs)
    another = insert(purge_proofs).prefix_with("OR REPLACE").values(**{**proof._mapping, "uri": "elsewhere"})
    in_one_stroke = another if bench.catalog.database.is_sqlite else text("TRUNCATE purge_proofs")
    for statement in (update(purge_proofs).values(uri="elsewhere"), delete(purge_proofs), in_one_stroke):
        with pytest.raises(DBAPIError, match="append-only"), bench.catalog.database.begin() as connection:
            connection.execute(statement)
    assert bench.world.rows(purge_proofs) == [proof]


def test_bytes_that_three_libraries_share_go_with_the_last_of_them(database_url: str, tmp_path: Path) -> None:
    bench = CopiesBench(database_url, tmp_path / "home", names=("north", "south", "west"))
    bench.make()
    for name in bench.names:
        with bench.catalog.database.begin() as connection:
            connection.execute(text("UPDATE sources SET library = :library WHERE source_id = :name"), {"library": name, "name": name})
        bench.share(name, "d", "everyone")
        bench.put(name, "d/same.md", "alpha|beta")
    settle(bench)
    whole = bench.objects()
    for number, name in enumerate(bench.names, start=1):
        bench.sources[name].remove("d/same.md")
        settle(bench)
        assert bench.purge()["proofs"] == 1
        assert bench.objects() == (whole if number < 3 else set())
    shared = [row.contents[0]["bytes"] for row in bench.world.rows(purge_proofs)]
    assert shared == ["kept for other documents", "kept for other documents", "gone"]
    assert left(bench) == NOTHING
    bench.catalog.close()


def test_an_edit_frees_what_no_index_serves_any_more(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha|beta")
    settle(bench)
    before = bench.objects()
    bench.put("north", "n/a.md", "alpha|gamma")
    bench.sync("north")
    bench.purge()
    assert before <= bench.objects(), "the index still serves the version before"
    bench.drain()
    bench.purge()
    bench.world.pass_time(timedelta(minutes=11))
    assert bench.purge()["objects"] == len(before)
    assert not before & bench.objects()
    assert bench.texts("everyone") == {"alpha", "gamma"}
    assert proved(bench) == [], "nothing was deleted"


def test_the_earlier_versions_of_a_deleted_document_are_in_its_proof(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    bench.put("north", "n/a.md", "beta")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    bench.purge()
    (proof,) = bench.world.rows(purge_proofs)
    assert {each["content_hash"] for each in proof.contents} == {content_hash(b"alpha"), content_hash(b"beta")}
    assert (bench.objects(), left(bench)) == (set(), NOTHING)


def test_documents_that_come_back_before_their_purge_lose_no_byte(bench: CopiesBench) -> None:
    paths = [f"n/{number}.md" for number in range(60)]
    for path in paths:
        bench.put("north", path, f"words of {path}")
    settle(bench)
    whole = bench.objects()
    for path in paths:
        bench.sources["north"].remove(path)
    settle(bench)
    assert {row.state for row in bench.world.rows(stored_states) if row.node == "intake"} == {"pending_purge"}
    for path in paths:
        bench.put("north", path, f"words of {path}")
    bench.sync("north")
    bench.purge()
    bench.drain()
    bench.purge()
    assert (bench.objects(), proved(bench)) == (whole, [])
    assert bench.texts("everyone") == {f"words of {path}" for path in paths}
    assert bench.reconcile().agrees


def test_a_document_that_comes_back_after_its_bytes_were_let_go_is_stored_anew(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    settle(bench)

    def kill(step: str) -> None:
        if step == "released":
            raise Killed

    with pytest.raises(Killed):
        bench.purge(kill)
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    assert bench.purge()["proofs"] == 1
    assert bench.texts("everyone") == {"alpha"}
    store = bench.store.of(TENANT)
    store.fetch_content(content_hash(b"alpha"), bench.home / "again")
    assert (bench.home / "again").read_bytes() == b"alpha"


@pytest.mark.parametrize("step", STEPS)
def test_a_purge_that_is_killed_at_any_step_is_ended_by_the_next_run(bench: CopiesBench, step: str) -> None:
    for number in range(5):
        bench.put("north", f"n/{number}.md", f"words of {number}")
    bench.put("south", "s/same.md", "words of 0")
    settle(bench)
    for number in range(5):
        bench.sources["north"].remove(f"n/{number}.md")
    settle(bench)

    def kill(at: str) -> None:
        if at == step:
            raise Killed

    with pytest.raises(Killed):
        bench.purge(kill)
    assert len(proved(bench)) == (5 if step == "proved" else 0), "no proof before everything was looked for"
    bench.purge()
    assert len(proved(bench)) == len(set(proved(bench))) == 5
    assert {row.doc_id for row in bench.world.rows(stored_states) if row.node == "intake"} == {bench.row("south", "s/same.md").doc_id}
    assert bench.texts("everyone") == {"words of 0"}
    assert len(bench.objects()) == 2


def test_what_is_still_there_after_it_was_deleted_is_no_proof(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    settle(bench)

    def put_back(step: str) -> None:
        if step == "bytes gone":
            (key,) = [row.object_key for row in bench.world.rows(freed_objects, kind=DriveKind.INTAKE)]
            bench.store.of(TENANT).intake.create(key, b"alpha")

    with pytest.raises(SystemFault, match=r"is still on drive .* after it was deleted"):
        bench.purge(put_back)
    assert proved(bench) == []
    assert bench.purge()["proofs"] == 1
    assert bench.objects() == set()


def cached(bench: CopiesBench) -> set[str]:
    """The passages whose vectors the embedding cache has, of all that were ever embedded here."""
    texts = {chunk.embed_text for content in bench.contents.values() for chunk in passages(content)}
    return {each for each in texts if vector_key(bench.tools["v1"], each) in bench.tools["v1"].cache.vectors}


def test_an_edit_that_moves_only_a_links_target_keeps_the_vector(bench: CopiesBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def linked(content: bytes) -> tuple[Chunk, ...]:
        words, _, _ = content.decode().partition("#")
        return number_occurrences([Chunk(0, (), "", content.decode(), words, (), 1)])

    monkeypatch.setattr(copies_bench, "passages", linked)
    for target in ("here", "there", "elsewhere"):
        bench.put("north", "n/a.md", f"alpha#{target}")
        settle(bench)
        bench.purge()
        assert bench.embedder.asked == 1
    assert len(bench.tools["v1"].cache.vectors) == 1
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    assert bench.purge()["vectors"] == 1


def test_the_vectors_of_a_text_that_was_edited_away_go_with_its_chunk_set(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha|beta")
    settle(bench)
    bench.put("north", "n/a.md", "beta|gamma")
    settle(bench)
    assert cached(bench) == {"alpha", "beta", "gamma"}
    assert bench.purge()["vectors"] == 1
    assert cached(bench) == {"beta", "gamma"}
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    bench.purge()
    assert cached(bench) == set()
    (proof,) = bench.world.rows(purge_proofs)
    assert (proof.looked_at["cached_vectors"], proof.looked_at["unread_chunk_sets"]) == (2, 0)


def test_a_vector_that_two_versions_of_a_document_had_is_counted_once(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha|beta")
    settle(bench)
    bench.put("north", "n/a.md", "beta|gamma")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    assert bench.purge()["vectors"] == 3
    (proof,) = bench.world.rows(purge_proofs)
    assert proof.looked_at["cached_vectors"] == 3


def test_a_chunk_set_that_was_lost_before_its_purge_is_not_claimed_as_looked_for(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha")
    bench.put("south", "s/b.md", "beta")
    settle(bench)
    drive = bench.store.of(TENANT).pipeline.drive
    (mine,) = bench.catalog.states.of_content(TENANT, content_hash(b"alpha"))
    drive.delete([entry.object_key for entry in mine.manifest.present() if entry.object_key])
    for name, path in (("north", "n/a.md"), ("south", "s/b.md")):
        bench.sources[name].remove(path)
    settle(bench)
    assert bench.purge()["proofs"] == 2
    looked = {row.uri: row.looked_at for row in bench.world.rows(purge_proofs)}
    figures = {uri[-4:]: (each["cached_vectors"], each["unread_chunk_sets"]) for uri, each in looked.items()}
    assert figures == {"a.md": (0, 1), "b.md": (1, 0)}
    assert cached(bench) == {"alpha"}


def test_a_chunk_set_that_is_damaged_holds_up_no_purge(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    (mine,) = bench.catalog.states.of_content(TENANT, content_hash(b"alpha"))
    (entry,) = mine.manifest.present()
    assert entry.object_key is not None
    bench.store.of(TENANT).pipeline.drive.replace(entry.object_key, b"no Parquet")
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    assert bench.purge()["proofs"] == 1
    assert bench.world.rows(purge_proofs)[0].looked_at["unread_chunk_sets"] == 1
    assert bench.objects() == set()


@pytest.mark.parametrize("step", ["vectors gone", "bytes gone"])
def test_the_figures_of_a_proof_are_right_after_a_kill(bench: CopiesBench, step: str) -> None:
    bench.put("north", "n/a.md", "alpha|beta")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    settle(bench)

    def kill(at: str) -> None:
        if at == step:
            raise Killed

    with pytest.raises(Killed):
        bench.purge(kill)
    bench.purge()
    (proof,) = bench.world.rows(purge_proofs)
    assert (proof.looked_at["cached_vectors"], proof.looked_at["unread_chunk_sets"]) == (2, 0)


def test_passages_of_many_purges_are_forgotten_in_batches(bench: CopiesBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgotten_vectors, "PASSAGES_A_BATCH", 3)
    for number in range(4):
        bench.put("north", f"n/{number}.md", f"a{number}|b{number}")
    settle(bench)
    for number in range(4):
        bench.sources["north"].remove(f"n/{number}.md")
    settle(bench)
    assert bench.purge()["vectors"] == 8
    assert cached(bench) == set()
    assert [row.looked_at["cached_vectors"] for row in bench.world.rows(purge_proofs)] == [2, 2, 2, 2]


def test_a_content_that_was_stored_and_given_to_nobody_goes_after_an_hour(bench: CopiesBench, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"alpha")
    bench.store.of(TENANT).keep(Arrived(tmp_path / "file", content_hash(b"alpha"), 5, "text/plain", Lane.FAST))
    bench.purge()
    assert len(bench.objects()) == 1, "a sync may be about to commit the document that has it"
    bench.world.pass_time(HANDLING)
    bench.purge()
    assert (bench.objects(), left(bench)) == (set(), NOTHING)


def test_a_document_that_was_read_again_unchanged_is_purged_whole_when_it_goes(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    bench.purge()
    (proof,) = bench.world.rows(purge_proofs)
    assert [each["bytes"] for each in proof.contents] == ["gone"]
    assert bench.objects() == set()


def test_a_document_waits_for_its_purge_while_a_sync_has_its_content_in_hand(bench: CopiesBench, tmp_path: Path) -> None:
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    settle(bench)
    (tmp_path / "file").write_bytes(b"alpha")
    bench.store.of(TENANT).keep(Arrived(tmp_path / "file", content_hash(b"alpha"), 5, "text/plain", Lane.FAST))
    assert bench.purge()["proofs"] == 0
    bench.world.pass_time(HANDLING)
    assert bench.purge()["proofs"] == 1
    assert bench.objects() == set()


def test_a_document_is_not_let_go_of_while_an_index_has_its_rows(bench: CopiesBench) -> None:
    bench.put("north", "n/a.md", "alpha")
    settle(bench)
    bench.sources["north"].remove("n/a.md")
    bench.sync("north")
    assert bench.purge()["released"] == 0
    bench.drain()
    bench.world.pass_time(timedelta(minutes=11))
    assert bench.purge()["proofs"] == 1


def test_documents_come_and_go_in_any_order_and_the_drives_hold_what_the_catalog_owns(bench: CopiesBench) -> None:
    random = Random(3)
    for _ in range(12):
        for _ in range(4):
            name = random.choice(bench.names)
            path = f"{name[0]}/{random.randrange(4)}.md"
            if random.random() < 0.4:
                bench.sources[name].remove(path) if path in bench.sources[name].items else None
            else:
                bench.put(name, path, f"words of {random.randrange(3)}")
        for name in bench.names:
            bench.sync(name)
        if random.random() < 0.7:
            bench.drain()
        if random.random() < 0.7:
            bench.purge()
    bench.drain()
    for _ in range(2):
        bench.world.pass_time(timedelta(minutes=11))
        bench.purge()
    kept = {row.object for row in bench.world.rows(contents)}
    for row in bench.world.rows(stored_states):
        kept |= {entry["object_key"] for entry in row.manifest if entry["object_key"]}
    assert bench.objects() == kept
    assert {row.content_hash for row in bench.world.rows(contents)} == {row.content_hash for row in bench.living()}
    assert bench.texts("everyone") == {bench.contents[row.content_hash or ""].decode() for row in bench.living()}
