"""Copies: equal contents are indexed once, found by whoever may see any of the documents that have them, and named as one of those."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from threading import Barrier, Event
from time import monotonic

import pytest
from sqlalchemy import text

from primer_assets.source_deletes import delete_documents
from primer_core.ids import content_hash
from tests.copies_bench import CopiesBench


@pytest.fixture
def bench(database_url: str, tmp_path: Path) -> Iterator[CopiesBench]:
    made = CopiesBench(database_url, tmp_path / "home")
    made.make()
    made.share("north", "hr", "hr")
    made.share("south", "all", "everyone")
    yield made
    made.catalog.close()


def settle(bench: CopiesBench, *names: str) -> None:
    """Sync the sources and index what came of it."""
    for name in names or bench.names:
        bench.sync(name)
        assert bench.broken_links() == []
    bench.drain()
    assert bench.broken_links() == []
    if not bench.catalog.lookup.dead_letters():
        assert bench.row_sets() == bench.fresh_row_sets()
    assert bench.reconcile().agrees


def test_equal_contents_have_one_set_of_rows_that_carries_every_copys_acl(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha|beta")
    bench.put("south", "all/b.md", "alpha|beta")
    settle(bench)
    assert (bench.parses, bench.embedder.asked) == (1, 2)
    assert len(bench.row_sets()) == 2
    assert {len(acl_ids) for _, acl_ids in bench.row_sets()} == {2}
    assert {row.status for row in bench.living()} == {"indexed"}


def test_a_person_is_told_of_the_copy_that_he_may_see_and_of_no_other(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha|beta")
    bench.put("south", "all/b.md", "alpha|beta")
    settle(bench)
    assert bench.found("everyone") == {("south/all/b.md", "alpha"), ("south/all/b.md", "beta")}
    assert bench.found("hr") == {("north/hr/a.md", "alpha"), ("north/hr/a.md", "beta")}
    canonical = bench.row("north", "hr/a.md")
    assert canonical.doc_id == canonical.canonical_doc_id
    assert {path for path, _ in bench.found("hr", "everyone")} == {"north/hr/a.md"}, "the canonical one is preferred"
    assert bench.found("outsider") == set()
    hidden = {canonical.doc_id, canonical.path, canonical.uri, canonical.title}
    for result in bench.search("everyone"):
        assert hidden.isdisjoint({result.doc_id, result.path, result.uri, result.source})


def test_a_copy_is_found_only_once_the_rows_carry_its_acl_and_counts_as_indexed_from_then_on(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    settle(bench)
    bench.put("south", "all/b.md", "alpha")
    bench.sync("south")
    assert bench.row("south", "all/b.md").status == "pending"
    assert bench.texts("everyone") == set()
    bench.sweep()
    assert bench.row("south", "all/b.md").status == "pending"
    bench.sweep()
    assert bench.row("south", "all/b.md").status == "indexed"
    assert bench.texts("everyone") == bench.texts("hr") == {"alpha"}


def test_removing_a_copy_takes_effect_at_once_and_takes_only_its_acl_from_the_rows(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    bench.put("south", "all/b.md", "alpha")
    settle(bench)
    bench.sources["south"].remove("all/b.md")
    bench.sync("south")
    assert bench.texts("everyone") == set()
    assert bench.texts("hr") == {"alpha"}
    settle(bench)
    assert {len(acl_ids) for _, acl_ids in bench.row_sets()} == {1}


@pytest.mark.parametrize("way", ["removed", "changed"])
def test_a_copy_takes_over_when_the_canonical_document_leaves_and_nothing_is_parsed_or_embedded_again(bench: CopiesBench, way: str) -> None:
    bench.put("north", "hr/a.md", "alpha|beta")
    bench.put("south", "all/b.md", "alpha|beta")
    bench.put("south", "all/c.md", "alpha|beta")
    settle(bench)
    before = (bench.parses, bench.embedder.asked)
    if way == "removed":
        bench.sources["north"].remove("hr/a.md")
    else:
        bench.put("north", "hr/a.md", "alpha")
    bench.sync("north")
    assert bench.texts("everyone") == {"alpha", "beta"}, "the rows stand for the copies until the new ones do"
    assert {path.partition("/")[0] for path, _ in bench.found("everyone")} == {"south"}
    settle(bench)
    leading = {bench.row("south", f"all/{name}.md").canonical_doc_id for name in "bc"}
    assert leading < {bench.row("south", f"all/{name}.md").doc_id for name in "bc"}
    assert bench.texts("everyone") == {"alpha", "beta"}
    assert bench.texts("hr") == (set() if way == "removed" else {"alpha"})
    assert (bench.parses, bench.embedder.asked) == (before[0] + (way == "changed"), before[1])


def test_when_the_last_document_of_a_content_goes_its_rows_go(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    bench.put("south", "all/b.md", "alpha")
    settle(bench)
    bench.sources["north"].remove("hr/a.md")
    bench.sources["south"].remove("all/b.md")
    settle(bench)
    assert bench.row_sets() == []
    assert bench.texts("hr", "everyone") == set()


def test_a_copy_whose_permissions_are_unreadable_opens_nothing_and_hides_no_other(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    bench.put("south", "all/b.md", "alpha")
    settle(bench)
    bench.share("south", "all", error="403")
    bench.sync("south")
    assert bench.texts("everyone") == set()
    assert bench.texts("hr") == {"alpha"}
    bench.share("south", "all", "everyone")
    bench.share("north", "hr", error="403")
    for name in bench.names:
        bench.sync(name)
    assert bench.found("everyone", "hr") == {("south/all/b.md", "alpha")}, "the canonical one opens nothing either"


def test_a_copy_that_is_shared_anew_is_decided_at_once(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    bench.put("south", "all/b.md", "alpha")
    settle(bench)
    bench.share("south", "all", "board")
    bench.sync("south")
    assert bench.texts("everyone") == set()
    assert bench.found("board") == {("south/all/b.md", "alpha")}, "the folder's ACL row changed, and no index row"
    assert not bench.catalog.queue.unfinished()


def test_a_copy_that_moves_to_another_acl_has_the_canonical_rows_rewritten(bench: CopiesBench) -> None:
    bench.share("south", "board", "board")
    bench.put("north", "hr/a.md", "alpha")
    bench.put("south", "all/b.md", "alpha")
    settle(bench)
    bench.sources["south"].rename("all/b.md", "board/b.md")
    bench.sync("south")
    assert bench.texts("everyone") == set()
    settle(bench)
    assert bench.found("board") == {("south/board/b.md", "alpha")}


def test_a_copy_that_changes_keeps_showing_its_old_content_until_the_new_one_is_whole(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    bench.put("south", "all/b.md", "alpha")
    settle(bench)
    bench.put("south", "all/b.md", "gamma|delta")
    bench.sync("south")
    assert bench.texts("everyone") == {"alpha"}
    settle(bench)
    assert bench.texts("everyone") == {"gamma", "delta"}
    assert bench.texts("hr") == {"alpha"}


def test_a_document_with_rows_of_its_own_becomes_a_copy_in_one_step(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha|beta")
    bench.put("south", "all/b.md", "alpha|gamma")
    settle(bench)
    bench.put("south", "all/b.md", "alpha|beta")
    seen = []
    bench.sync("south")
    for _ in range(2):
        bench.sweep(checkpoint=lambda _name: seen.append(frozenset(bench.found("everyone"))))
    assert len(set(seen)) == 2
    assert {passage for _, passage in seen[0]} == {"alpha", "gamma"}
    assert {passage for _, passage in seen[-1]} == {"alpha", "beta"}
    settle(bench)


def test_a_content_is_found_once_while_a_document_that_left_it_still_has_its_rows(bench: CopiesBench) -> None:
    bench.share("south", "board", "board")
    bench.put("north", "hr/a.md", "alpha")
    settle(bench, "north")
    for path in ("all/b.md", "board/c.md"):
        bench.put("south", path, "alpha")
    settle(bench)
    bench.put("north", "hr/a.md", "spoilt")
    settle(bench)
    assert bench.row("north", "hr/a.md").status == "dead_letter"
    assert bench.found("hr") == {("north/hr/a.md", "alpha")}, "what could not be parsed leaves what was there before"
    assert bench.found("everyone") == {("south/all/b.md", "alpha")}
    assert bench.found("board") == {("south/board/c.md", "alpha")}
    bench.put("north", "hr/a.md", "alpha")
    bench.sync("north")
    bench.sweep()
    search = bench.begin("hr")
    bench.drain()
    assert search() == [(bench.row("north", "hr/a.md").doc_id, "alpha")], "its own rows, and not yet those that stand for it now"
    assert bench.found("hr") == {("north/hr/a.md", "alpha")}


def test_a_search_sees_a_copy_as_it_was_when_the_search_began(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    bench.put("south", "all/b.md", "alpha")
    settle(bench)
    copy = bench.row("south", "all/b.md").doc_id
    bench.put("south", "all/b.md", "gamma")
    bench.sync("south")
    search = bench.begin("everyone")
    bench.drain()
    assert search() == [(copy, "alpha")], "it left meanwhile"
    bench.put("south", "all/b.md", "alpha")
    bench.sync("south")
    bench.sweep()
    search = bench.begin("everyone")
    bench.drain()
    assert search() == [(copy, "gamma")], "it came meanwhile: the rows of its new content are not mixed in"
    bench.put("north", "hr/a.md", "delta")
    bench.sync("north")
    search = bench.begin("everyone")
    bench.drain()
    assert search() == [(copy, "alpha")], "it took over meanwhile"


def test_a_copy_that_goes_from_one_content_to_another_is_never_shown_with_both(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    bench.put("north", "hr/b.md", "beta")
    bench.put("south", "all/c.md", "alpha")
    settle(bench)
    copy = bench.row("south", "all/c.md").doc_id
    searches: list[Callable[[], list[tuple[str, str]]]] = []
    bench.put("south", "all/c.md", "beta")
    bench.sync("south")
    for _ in range(3):
        searches.append(bench.begin("everyone"))
        bench.sweep(checkpoint=lambda _name: searches.append(bench.begin("everyone")))
        for search in searches:
            assert search() in ([(copy, "alpha")], [(copy, "beta")], []), "only the rows of one content are its rows at one time"
    assert searches[0]() == [(copy, "alpha")]
    assert bench.begin("everyone")() == [(copy, "beta")]


def test_a_canonical_document_that_changes_shows_nobody_its_new_content_through_a_copy(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha")
    bench.put("south", "all/b.md", "alpha")
    settle(bench)
    bench.put("north", "hr/a.md", "salaries")
    bench.sync("north")
    seen: list[set[str]] = []
    for _ in range(3):
        bench.sweep(checkpoint=lambda _name: seen.append(bench.texts("everyone")))
    assert {"alpha"} in seen
    assert all(texts <= {"alpha"} for texts in seen)


def test_a_copy_of_what_cannot_be_parsed_shares_its_reason_and_its_retry(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "spoilt")
    bench.put("south", "all/b.md", "spoilt")
    settle(bench)
    letters = bench.catalog.lookup.dead_letters()
    assert {(letter.path, letter.reason) for letter in letters} == {("hr/a.md", "corrupt"), ("all/b.md", "corrupt")}
    assert {(row.status, row.reason) for row in bench.living()} == {("dead_letter", "corrupt")}
    bench.is_mended = True
    (own,) = (letter for letter in letters if letter.path == "all/b.md")
    assert bench.catalog.dead_letters.retry([own.job_id]) == 1
    settle(bench)
    assert bench.catalog.lookup.dead_letters() == []
    assert {row.status for row in bench.living()} == {"indexed"}
    assert bench.texts("everyone") == bench.texts("hr") == {"spoilt"}


def test_a_retry_of_the_canonical_document_brings_its_dead_copies_back(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "spoilt")
    bench.put("south", "all/b.md", "spoilt")
    settle(bench)
    bench.is_mended = True
    bench.catalog.dead_letters.retry([each.job_id for each in bench.catalog.lookup.dead_letters() if each.path == "hr/a.md"])
    settle(bench)
    assert {row.status for row in bench.living()} == {"indexed"}


def test_a_content_that_goes_and_comes_in_one_piece_of_a_feed_is_led_by_who_has_it_now(bench: CopiesBench) -> None:
    bench.put("south", "all/a.md", "alpha")
    bench.put("south", "all/b.md", "beta")
    settle(bench)
    bench.sources["south"].remove("all/a.md")
    bench.put("south", "all/b.md", "alpha")
    settle(bench, "south")
    assert bench.found("everyone") == {("south/all/b.md", "alpha")}


def test_a_rename_of_a_copy_or_of_the_canonical_document_moves_only_its_name(bench: CopiesBench) -> None:
    for name in ("a", "b"):
        bench.put("south", f"all/{name}.md", "alpha")
    settle(bench)
    for name in ("a", "b"):
        bench.sources["south"].rename(f"all/{name}.md", f"all/{name}2.md")
    before = {row.doc_id for row in bench.living()}
    settle(bench)
    assert {row.path for row in bench.living()} == {"all/a2.md", "all/b2.md"}
    assert {row.doc_id for row in bench.living()} == before
    assert bench.texts("everyone") == {"alpha"}


def test_a_member_of_a_container_is_a_copy_like_any_other(bench: CopiesBench) -> None:
    bench.mime = "message/rfc822"
    bench.put("north", "hr/mail.eml", "Subject: x\nFrom: a@b.example\nmember1.txt:alpha|beta\n")
    bench.put("south", "all/b.txt", "alpha|beta")
    bench.contents[content_hash(b"alpha|beta")] = b"alpha|beta"
    settle(bench)
    assert bench.row("north", "hr/mail.eml/member1.txt").content_hash == bench.row("south", "all/b.txt").content_hash
    assert bench.parses == 2
    assert bench.found("everyone") == {("south/all/b.txt", "alpha"), ("south/all/b.txt", "beta")}
    bench.sources["north"].remove("hr/mail.eml")
    settle(bench)
    assert bench.found("hr", "everyone") == {("south/all/b.txt", "alpha"), ("south/all/b.txt", "beta")}


def test_a_status_says_of_what_a_document_is_a_copy_and_counts_the_passages_that_stand_for_it(bench: CopiesBench) -> None:
    bench.put("north", "hr/a.md", "alpha|beta")
    bench.put("south", "all/b.md", "alpha|beta")
    settle(bench)
    lookup = bench.catalog.lookup
    copy = lookup.status(bench.row("south", "all/b.md").doc_id, "v1")
    assert (copy.stage, copy.copy_of, copy.chunks, copy.indexed_version) == ("indexed", "north/hr/a.md", 2, copy.source_version)
    assert lookup.status(bench.row("north", "hr/a.md").doc_id, "v1").copy_of is None


def test_every_index_version_has_its_copies(database_url: str, tmp_path: Path) -> None:
    bench = CopiesBench(database_url, tmp_path / "home", versions=("v1", "v2"))
    bench.make()
    bench.put("north", "a.md", "alpha")
    bench.put("south", "b.md", "alpha")
    bench.share("south", "", "south")
    for name in bench.names:
        bench.sync(name)
    bench.drain()
    for version in bench.versions:
        assert bench.row_sets(version) == bench.fresh_row_sets()
        assert bench.found("south", version=version) == {("south/b.md", "alpha")}
    bench.sources["north"].remove("a.md")
    bench.sync("north")
    bench.drain()
    for version in bench.versions:
        assert bench.row_sets(version) == bench.fresh_row_sets()
        assert bench.found("south", version=version) == {("south/b.md", "alpha")}
    bench.catalog.close()


def test_two_sources_and_a_sweep_at_once_never_link_a_copy_to_what_is_gone_or_changed(bench: CopiesBench) -> None:
    random = Random(7)
    texts, paths = ("alpha|beta", "alpha|gamma", "delta"), tuple(f"all/{n}.md" for n in range(4))
    for _ in range(12):
        for name in bench.names:
            for path in random.sample(paths, 2):
                if path in bench.sources[name].items and random.random() < 0.4:
                    bench.sources[name].remove(path)
                else:
                    bench.put(name, path, random.choice(texts))
        together = Barrier(len(bench.names) + 1)

        def at_once(work: Callable[[], None], together: Barrier = together) -> None:
            together.wait(20)
            work()

        works: list[Callable[[], None]] = [partial(bench.sync, name, full=random.random() < 0.3) for name in bench.names]
        with ThreadPoolExecutor(len(works) + 1) as pool:
            for future in [pool.submit(at_once, work) for work in (*works, bench.sweep)]:
                future.result()
        assert bench.broken_links() == []
    settle(bench)
    assert bench.texts("everyone") == {passage for passage, _ in bench.fresh_row_sets()}


def test_a_copy_that_comes_while_its_canonical_document_is_deleted_is_linked_to_neither_of_both(postgres_url: str, tmp_path: Path) -> None:
    bench = CopiesBench(postgres_url, tmp_path / "home")
    bench.make()
    bench.put("north", "a.md", "alpha")
    settle(bench)
    bench.put("south", "b.md", "alpha")
    gone = bench.row("north", "a.md")
    catalog = bench.catalog
    known = catalog.documents.by_id([gone.doc_id])[gone.doc_id]
    with ThreadPoolExecutor(1) as pool:
        with catalog.database.begin() as connection:
            delete_documents(catalog, connection, catalog.sources.get("north"), [known])
            linking = pool.submit(bench.sync, "south")
            wait_for_a_lock(bench)
        linking.result(20)
    bench.drain()
    assert bench.broken_links() == []
    row = bench.row("south", "b.md")
    assert (row.canonical_doc_id, row.status) == (row.doc_id, "indexed")
    assert bench.found("everyone") == {("south/b.md", "alpha")}
    catalog.close()


def wait_for_a_lock(bench: CopiesBench) -> None:
    """Until some other transaction waits for a row."""
    deadline, pause = monotonic() + 20, Event()
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    while monotonic() < deadline:
        with bench.catalog.database.read() as connection:
            if connection.execute(waiting).scalar_one():
                return
        pause.wait(0.02)
    raise AssertionError("nobody came to the content that is locked")
