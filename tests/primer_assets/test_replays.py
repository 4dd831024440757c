"""Replays: judged without reading a byte, taken up by jobs that change nothing where nothing has changed, never in a sync's way."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from primer_core.failures import PrimerError
from primer_core.lanes import Lane
from primer_core.outcomes import Outcome
from primer_core.part_keys import DOCUMENT, chunk_set
from primer_core.replay import ReplayAction, Selectors
from primer_core.stages import CHUNK, STAGES, Operation
from primer_core.stored_states import DeletedReason, Part, pipeline_state
from primer_resources.catalog import replays
from primer_resources.catalog.documents import VersionFacts
from primer_resources.catalog.jobs import NewJob
from primer_resources.catalog.schema import documents, jobs
from primer_resources.catalog.schema_bodies import parsed
from tests.copies_bench import SPOILT
from tests.primer_resources.catalog.world import RECIPE, TENANT, place, waits_for_a_lock
from tests.replay_bench import ReplayBench

PARSER, CHUNKER = RECIPE.parser.version, RECIPE.chunker.version


@pytest.fixture
def bench(database_url: str, tmp_path: Path) -> Iterator[ReplayBench]:
    made = ReplayBench(database_url, tmp_path / "home")
    made.make()
    yield made
    made.catalog.close()


def lose(bench: ReplayBench, name: str, path: str, *parts: Part) -> None:
    """Parts of what was made of a document are deleted by policy."""
    identity = pipeline_state(TENANT, bench.row(name, path).content_hash, PARSER)
    (state,) = bench.catalog.states.find([identity.node_id]).values()
    without = state.manifest.without_bodies(parts, DeletedReason.POST_PARSE_POLICY, bench.catalog.now())
    with bench.catalog.database.begin() as connection:
        assert bench.catalog.states.change(connection, state, without)


def fill(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha|beta")
    bench.put("north", "b.md", "gamma")
    bench.put("south", "c.md", "alpha|beta")
    bench.index()


def test_a_dry_run_says_what_could_be_done_and_does_nothing(bench: ReplayBench) -> None:
    fill(bench)
    before = bench.job_count()
    for stage in STAGES:
        found, replaying = bench.replay(stage.name, index_version="v1")
        assert {each.judgement.verdict.value for each in found} == {"replayable"}
        assert replaying.totals()["candidates"] == len(found) == 3
        assert replaying.totals()["actions"] == {"job": 3, "fetch": 0, "under_way": 0}
    assert bench.job_count() == before


def test_a_replay_makes_no_new_passage_and_embeds_nothing(bench: ReplayBench) -> None:
    fill(bench)
    rows, asked = bench.chunk_rows(), bench.embedder.asked
    for stage in STAGES:
        jobs_before = bench.job_count()
        _, replaying = bench.replay(stage.name, apply=True, index_version="v1")
        assert replaying.actions[ReplayAction.JOB] == 3
        bench.drain()
        assert (bench.chunk_rows(), bench.embedder.asked) == (rows, asked)
        assert bench.job_count() == jobs_before + 3
    assert {row.status for row in bench.living()} == {"indexed"}
    assert bench.found("everyone") == {("north/a.md", "alpha"), ("north/a.md", "beta"), ("north/b.md", "gamma")}
    assert bench.broken_links() == []
    assert bench.reconcile().agrees


def test_chunk_sets_that_are_gone_are_made_again_with_the_ids_that_they_had(bench: ReplayBench) -> None:
    fill(bench)
    for path in ("a.md", "b.md"):
        lose(bench, "north", path, Part.CHUNKS)
    assert set(bench.verdicts("embed", source_id="north").values()) == {"source_receipt"}
    found, _ = bench.replay("embed", source_id="north")
    assert {each.judgement.instead for each in found} == {CHUNK.name}
    assert {each.judgement.missing for each in found} == {(f"chunks/{chunk_set(CHUNKER)[1]}",)}
    rows, asked, chunked, parses = bench.chunk_rows(), bench.embedder.asked, bench.chunked, bench.parses
    bench.replay("chunk", apply=True, source_id="north")
    bench.drain()
    assert (bench.chunk_rows(), bench.embedder.asked, bench.parses) == (rows, asked, parses)
    assert bench.chunked == chunked + 2, "the chunker did cut them again"
    assert set(bench.verdicts("embed", source_id="north").values()) == {"replayable"}


def test_a_replay_to_the_parse_parses_what_is_not_kept_of_it(bench: ReplayBench) -> None:
    fill(bench)
    lose(bench, "north", "a.md", Part.PARSED, Part.CHUNKS)
    assert bench.verdicts("chunk", doc_ids=(bench.row("north", "a.md").doc_id,)) == {"north/a.md": "source_receipt"}
    rows, parses = bench.chunk_rows(), bench.parses
    bench.replay("parse", apply=True, source_id="north")
    assert len(bench.all(parsed)) == 1, "the other content is parsed and passes"
    bench.drain()
    assert (bench.chunk_rows(), bench.parses) == (rows, parses + 1)
    assert bench.tenant.pipeline.manifest(pipeline_state(TENANT, bench.row("north", "a.md").content_hash, PARSER)).has(*DOCUMENT)


def test_a_copy_is_only_written_again(bench: ReplayBench) -> None:
    bench.put("north", "a.md", "alpha")
    bench.index("north")
    bench.put("south", "c.md", "alpha")
    bench.index("south")
    copy = next(row for row in bench.living() if row.doc_id != row.canonical_doc_id)
    bench.replay("parse", apply=True, doc_ids=(copy.doc_id,))
    (job,) = [row for row in bench.all(jobs, doc_id=copy.doc_id) if row.state.startswith("pending")]
    assert (job.operation, job.state) == ("copy", "pending_write")
    bench.drain()
    assert bench.broken_links() == []
    assert len(bench.row_sets()) == 1


def test_selectors_narrow_each_other(bench: ReplayBench) -> None:
    fill(bench)
    bench.put("north", "d.md", f"{SPOILT} delta")
    bench.index("north")
    spoilt = bench.row("north", "d.md").doc_id
    assert set(bench.verdicts("parse", outcome=Outcome.DEAD)) == {"north/d.md"}
    assert set(bench.verdicts("parse", source_id="south")) == {"south/c.md"}
    assert bench.verdicts("parse", source_id="south", outcome=Outcome.DEAD) == {}
    assert bench.verdicts("parse", source_id="south", doc_ids=(spoilt,)) == {}
    assert set(bench.verdicts("parse", outcome=Outcome.DEAD, doc_ids=(spoilt, spoilt))) == {"north/d.md"}
    ended = bench.catalog.ledger.of([spoilt], "v1")[spoilt].ended_at
    assert set(bench.verdicts("parse", since=ended)) == {"north/d.md"}
    assert set(bench.verdicts("parse", until=ended)) == {"north/a.md", "north/b.md", "south/c.md"}
    with pytest.raises(PrimerError, match="refused; say which documents"):
        bench.replay("parse")
    with pytest.raises(PrimerError, match="no source 'east'"):
        bench.replay("parse", source_id="east")
    with pytest.raises(PrimerError, match="no stage 'flip'"):
        bench.replay("flip", source_id="north")


def test_all_pages_together_name_every_document_once(bench: ReplayBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "PAGE", 2)
    for number in range(5):
        bench.put("north", f"{number}.md", f"passage {number}")
    bench.index("north")
    for selectors in ({"source_id": "north"}, {"doc_ids": tuple(row.doc_id for row in bench.living())}):
        found, replaying = bench.replay("write", apply=True, **selectors)  # type: ignore[arg-type]
        assert sorted(each.path for each in found) == [f"{number}.md" for number in range(5)]
        assert replaying.actions[ReplayAction.JOB] == 5
        bench.drain()


def test_a_dead_letter_is_taken_up_again_and_leaves_the_list(bench: ReplayBench) -> None:
    bench.put("north", "d.md", f"{SPOILT} delta")
    bench.put("south", "e.md", f"{SPOILT} delta")
    bench.index()
    bench.is_mended = True
    bench.replay("parse", apply=True, outcome=Outcome.DEAD)
    bench.drain()
    assert bench.catalog.lookup.dead_letters() == []
    assert bench.texts("everyone") == {f"{SPOILT} delta"}
    assert bench.broken_links() == []


def test_what_is_under_way_is_left_alone_and_a_newer_version_wins(bench: ReplayBench) -> None:
    fill(bench)
    bench.put("north", "b.md", "newer")
    bench.sync("north")
    before = bench.job_count()
    found, replaying = bench.replay("write", apply=True, doc_ids=(bench.row("north", "b.md").doc_id,))
    assert [each.action for each in found] == [ReplayAction.UNDER_WAY]
    assert (bench.job_count(), replaying.actions[ReplayAction.JOB]) == (before, 0)
    bench.drain()
    bench.replay("chunk", apply=True, doc_ids=(bench.row("north", "b.md").doc_id,))
    bench.put("north", "b.md", "newest")
    bench.index("north")
    assert bench.texts("everyone") == {"alpha", "beta", "newest"}
    assert bench.reconcile().agrees


def test_a_version_that_a_sync_is_just_committing_is_seen_by_a_replay(postgres_url: str, tmp_path: Path) -> None:
    bench = ReplayBench(postgres_url, tmp_path / "home")
    bench.make()
    fill(bench)
    row = bench.row("north", "b.md")
    new = NewJob(row.doc_id, "north", "v2", row.content_hash, row.bucket, Lane.FAST, Operation.UPSERT, bench.catalog.now())
    version = VersionFacts("v2", row.version_order + 1, row.content_hash, row.mime, row.bucket, "pending", None)
    thread = Thread(target=lambda: bench.replay("chunk", apply=True, source_id="north"))
    with bench.catalog.database.begin() as connection:
        bench.catalog.copies.lock(connection, (TENANT, "main"), [row.doc_id], [row.doc_id], [row.content_hash])
        thread.start()
        with waits_for_a_lock(bench.world):
            assert bench.catalog.documents.advance(connection, row.doc_id, place("b.md"), version)
            bench.catalog.jobs.add(connection, [new], ["v1"])
    thread.join()
    waiting = [job for job in bench.all(jobs, doc_id=row.doc_id) if job.state not in ("indexed", "superseded")]
    assert [(job.source_version, job.state) for job in waiting] == [("v2", "pending_parse")]
    assert [job.state for job in bench.all(jobs, doc_id=bench.row("north", "a.md").doc_id)][-1] == "pending_chunk", "the other one is"
    bench.catalog.close()


def test_a_deleted_document_is_not_replayed(bench: ReplayBench) -> None:
    fill(bench)
    doc_id = bench.row("north", "b.md").doc_id
    bench.sources["north"].remove("b.md")
    bench.index("north")
    found, _ = bench.replay("write", apply=True, doc_ids=(doc_id,))
    assert [(each.judgement.verdict.value, each.action) for each in found] == [("body_missing", None)]
    bench.drain()
    assert bench.texts("everyone") == {"alpha", "beta"}


def test_another_tenants_documents_are_no_candidates(bench: ReplayBench) -> None:
    fill(bench)
    ids = tuple(row.doc_id for row in bench.living())
    sources = bench.catalog.sources.of_tenant("rival")
    version = bench.catalog.deployments.live()
    for selectors in (Selectors(doc_ids=ids), Selectors(index_version="v1")):
        assert [each for page in bench.catalog.replays.pages(selectors, version, sources) for each in page] == []


def test_a_source_is_asked_for_just_the_documents_whose_bytes_are_not_kept(bench: ReplayBench) -> None:
    fill(bench)
    assert bench.settle() == 2
    bench.remove_freed()
    doc_id = bench.row("north", "b.md").doc_id
    assert bench.verdicts("parse", doc_ids=(doc_id,)) == {"north/b.md": "source_receipt"}
    assert bench.verdicts("chunk", doc_ids=(doc_id,)) == {"north/b.md": "replayable"}
    rows, asked, parses = bench.chunk_rows(), bench.embedder.asked, bench.parses
    _, replaying = bench.replay("parse", apply=True, doc_ids=(doc_id,))
    assert replaying.actions[ReplayAction.FETCH] == 1
    assert bench.catalog.sources.get("north").last_reconciled_at is None, "the feed would not tell of it"
    bench.sources["north"].fetched.clear()
    bench.index("north")
    assert bench.sources["north"].fetched == ["b.md"]
    assert not bench.row("north", "b.md").fetch_again
    assert bench.verdicts("parse", doc_ids=(doc_id,)) == {"north/b.md": "replayable"}
    assert (bench.chunk_rows(), bench.embedder.asked, bench.parses) == (rows, asked, parses)
    bench.tenant.fetch_content(bench.row("north", "b.md").content_hash, bench.home / "fetched")
    bench.sources["north"].fetched.clear()
    bench.index("north")
    assert bench.sources["north"].fetched == []


def test_a_member_comes_back_out_of_what_holds_it(bench: ReplayBench) -> None:
    bench.mime = "text/plain"
    bench.put("north", "all.txt", "member1:inner one\nmember2:inner two")
    bench.index("north")
    bench.settle()
    bench.remove_freed()
    member = bench.row("north", "all.txt/member1")
    bench.replay("parse", apply=True, doc_ids=(member.doc_id,))
    assert {row.path for row in bench.all(documents, fetch_again=True)} == {"all.txt", "all.txt/member1"}
    bench.index("north")
    assert bench.all(documents, fetch_again=True) == []
    bench.tenant.fetch_content(member.content_hash, bench.home / "fetched")
    assert (bench.home / "fetched").read_text() == "inner one"
    assert {row.status for row in bench.living()} == {"indexed"}


def test_a_document_that_changed_before_it_was_fetched_again_is_indexed_as_it_is_now(bench: ReplayBench) -> None:
    fill(bench)
    bench.settle()
    bench.remove_freed()
    bench.replay("parse", apply=True, doc_ids=(bench.row("north", "b.md").doc_id,))
    bench.put("north", "b.md", "other words")
    bench.index("north")
    assert bench.texts("everyone") == {"alpha", "beta", "other words"}
    assert not bench.row("north", "b.md").fetch_again
