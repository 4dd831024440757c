"""A sync by a change feed: cheap where little happened, right in any order, and a full listing wherever the feed cannot tell."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from primer_core import ids
from primer_core.failures import LeaseLost
from primer_core.ids import content_hash
from primer_resources.connectors.base import Access
from tests.primer_resources.catalog.world import SOURCE, TENANT, World
from tests.scripted_source import ScriptedSource
from tests.source_bench import Bench


@pytest.fixture
def bench(sqlite_template: Path, tmp_path: Path) -> Bench:
    (tmp_path / "catalog.sqlite").write_bytes(sqlite_template.read_bytes())
    return Bench(World(f"sqlite:///{tmp_path / 'catalog.sqlite'}"), tmp_path)


@pytest.fixture
def source(bench: Bench) -> ScriptedSource:
    """A source of four documents that was listed once; its documents settled long ago."""
    made = ScriptedSource()
    for path in ("a.txt", "b.txt", "f/c.txt", "f/d.txt"):
        made.put(path, f"Text of {path}.".encode())
    assert bench.sync(made).why_listed == "it has no cursor of a change feed"
    made.fetched.clear()
    return made


def contents(source: ScriptedSource) -> dict[str, str | None]:
    return {path: content_hash(data) for path, data in source.items.items()}


def test_a_second_sync_follows_the_feed_and_reads_only_what_changed(bench: Bench, source: ScriptedSource) -> None:
    source.put("b.txt", b"Another text.")
    source.put("new.txt", b"New.")
    source.remove("a.txt")
    turn = bench.sync(source)
    assert (turn.why_listed, source.listings) == (None, 1)
    assert sorted(source.fetched) == ["b.txt", "new.txt"]
    assert bench.living() == contents(source)
    report = bench.sync_report
    assert (report.scanned, report.new, report.changed, report.deleted) == (2, 1, 1, 1)
    bench.sync(source)
    assert len(source.fetched) == 2


def test_cursor_and_documents_are_saved_together_page_by_page(bench: Bench, source: ScriptedSource) -> None:
    for number in range(5):
        source.put(f"n{number}.txt", f"Number {number}.".encode())
    whole = source.changes

    def broken(cursor: object) -> object:
        page = whole(cursor)  # type: ignore[arg-type]
        if page is not None and not page.more:
            raise LeaseLost("another run took over")
        return page

    source.changes = broken  # type: ignore[method-assign, assignment]
    with pytest.raises(LeaseLost):
        bench.sync(source)
    assert bench.world.catalog.sources.get(SOURCE).cursor == {"at": 8}
    assert {"n0.txt", "n3.txt"} <= set(bench.living())
    assert "n4.txt" not in bench.living()
    source.changes = whole  # type: ignore[method-assign]
    source.fetched.clear()
    bench.sync(source)
    assert source.fetched == ["n4.txt"]
    assert bench.living() == contents(source)


def test_an_expired_cursor_is_a_full_listing_and_its_deletes_go_through_the_guard(bench: Bench, source: ScriptedSource) -> None:
    source.expired_before = 99
    source.remove("a.txt")
    turn = bench.sync(source)
    assert "410 Gone" in (turn.why_listed or "")
    assert turn.decision is not None
    assert bench.living() == contents(source)
    assert bench.world.catalog.sources.get(SOURCE).cursor == {"at": 5}


def test_a_listing_that_breaks_off_saves_no_cursor_and_deletes_nothing(bench: Bench, source: ScriptedSource) -> None:
    source.expired_before, source.breaks_after = 5, 1
    source.remove("f/d.txt")
    before = bench.living()
    bench.sync(source)
    found = bench.world.catalog.sources.get(SOURCE)
    assert (found.cursor, found.last_error, bench.living()) == ({"at": 4}, "page 3 answered 503", before)
    source.breaks_after = None
    assert "410" in (bench.sync(source).why_listed or "")
    assert bench.living() == contents(source)
    assert bench.world.catalog.sources.get(SOURCE).cursor == {"at": 5}


def test_a_feed_that_comes_back_to_a_cursor_ends_in_a_listing_and_not_in_a_loop(bench: Bench, source: ScriptedSource) -> None:
    for number in range(6):
        source.put(f"n{number}.txt", b"%d" % number)
    source.next_cursor = lambda place: 4 if place == 8 else place
    turn = bench.sync(source)
    assert "came back to a cursor" in (turn.why_listed or "")
    assert bench.living() == contents(source)


def test_a_feed_that_stays_at_one_cursor_ends_in_a_listing_too(bench: Bench, source: ScriptedSource) -> None:
    for number in range(6):
        source.put(f"n{number}.txt", b"%d" % number)
    source.next_cursor = lambda _place: 4
    assert "came back to a cursor" in (bench.sync(source).why_listed or "")
    assert bench.living() == contents(source)


def test_a_feed_without_an_end_is_left_after_so_many_pieces_and_gone_on_with_later(
    bench: Bench, source: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("primer_assets.source_feed.MOST_PAGES", 2)
    for number in range(9):
        source.put(f"n{number}.txt", b"%d" % number)
    for at in (8, 12, 13):
        assert bench.sync(source).why_listed is None
        assert bench.world.catalog.sources.get(SOURCE).cursor == {"at": at}
    assert bench.living() == contents(source)


def test_a_source_with_a_feed_is_listed_in_full_once_the_interval_has_passed(bench: Bench, source: ScriptedSource) -> None:
    del source.items["a.txt"]  # no event
    bench.sync(source)
    assert "a.txt" in bench.living()
    bench.world.pass_time(timedelta(days=1))
    assert "the last one began" in (bench.sync(source).why_listed or "")
    assert "a.txt" not in bench.living()


def test_an_older_version_that_comes_late_changes_nothing(bench: Bench, source: ScriptedSource) -> None:
    sixth = source.put("a.txt", b"six")
    seventh = source.put("a.txt", b"seven")
    bench.sync(source)
    version = bench.row("a.txt").source_version
    source.fetched.clear()
    source.replay(seventh, sixth, seventh)
    bench.sync(source)
    assert (bench.row("a.txt").source_version, source.fetched) == (version, [])


def test_a_late_upsert_cannot_revive_what_was_deleted_after_it_and_a_later_one_can(bench: Bench, source: ScriptedSource) -> None:
    doc_id = bench.row("a.txt").doc_id
    seventh = source.put("a.txt", b"seven")
    source.remove("a.txt")
    bench.sync(source)
    source.replay(seventh)
    bench.sync(source)
    assert "a.txt" not in bench.living()
    source.put("a.txt", b"nine")
    bench.sync(source)
    assert bench.row("a.txt").doc_id == doc_id
    assert bench.living() == contents(source)


def test_deleted_and_made_again_between_two_syncs_is_the_same_document(bench: Bench, source: ScriptedSource) -> None:
    doc_id = bench.row("a.txt").doc_id
    source.page_size = 10
    source.remove("a.txt")
    source.put("a.txt", b"again")
    bench.sync(source)
    assert (bench.row("a.txt").doc_id, bench.sync_report.deleted) == (doc_id, 0)


def test_a_rename_keeps_the_document_and_reads_nothing(bench: Bench, source: ScriptedSource) -> None:
    doc_id = bench.row("f/c.txt").doc_id
    source.rename("f/c.txt", "g/moved.txt")
    bench.sync(source)
    assert (bench.row("g/moved.txt").doc_id, source.fetched, bench.sync_report.renamed) == (doc_id, [], 1)
    source.put("f/c.txt", b"A new page under the old name.")
    bench.sync(source)
    assert bench.row("f/c.txt").doc_id not in (doc_id, bench.row("a.txt").doc_id)
    assert bench.living() == contents(source)


@pytest.mark.parametrize("page_size", [1, 10])
def test_a_rename_onto_a_living_document_replaces_it(bench: Bench, source: ScriptedSource, page_size: int) -> None:
    doc_id, source.page_size = bench.row("a.txt").doc_id, page_size
    source.rename("a.txt", "b.txt")
    bench.sync(source)
    assert bench.row("b.txt").doc_id == doc_id
    assert bench.living() == contents(source)


def test_a_document_that_a_rename_replaced_is_gone_though_the_renamed_one_is_deleted_in_the_same_piece(
    bench: Bench, source: ScriptedSource
) -> None:
    source.put("a.txt", b"one")
    source.put("b.txt", b"two")
    bench.sync(source)
    source.rename("a.txt", "b.txt")
    source.remove("b.txt")
    bench.sync(source)
    assert set(bench.living()) == set(source.items)


@pytest.mark.parametrize("page_size", [1, 2, 10])
def test_two_documents_that_swap_their_names_end_where_they_are(bench: Bench, source: ScriptedSource, page_size: int) -> None:
    one, two, source.page_size = bench.row("a.txt").doc_id, bench.row("b.txt").doc_id, page_size
    source.rename("a.txt", "t.txt")
    source.rename("b.txt", "a.txt")
    source.rename("t.txt", "b.txt")
    bench.sync(source)
    assert (bench.row("b.txt").doc_id, bench.row("a.txt").doc_id) == (one, two)
    assert bench.living() == contents(source)


def test_a_move_told_as_delete_and_create_in_one_page_keeps_the_document(bench: Bench, source: ScriptedSource) -> None:
    doc_id, data = bench.row("a.txt").doc_id, source.items["a.txt"]
    source.remove("a.txt")
    source.put("z.txt", data)
    bench.sync(source)
    assert bench.row("z.txt").doc_id == doc_id


def test_a_folder_that_is_shared_anew_rewrites_no_row_and_reads_nothing(bench: Bench, source: ScriptedSource) -> None:
    source.share("f", "board")
    bench.sync(source)
    assert bench.groups()["f"] == ("board",)
    assert (source.fetched, bench.job_count("acl"), bench.sync_report.acl_only) == ([], 0, 2)


def test_permissions_that_cannot_be_read_hide_that_document_and_no_other(bench: Bench, source: ScriptedSource) -> None:
    source.access["f"] = Access("f", (), readable=False, error="the permission service timed out")
    source.put("f/c.txt", b"Changed while its permissions could not be read.")
    source.put("a.txt", b"Changed.")
    bench.sync(source)
    assert bench.row("f/c.txt").acl_error == "the permission service timed out"
    assert (bench.row("a.txt").acl_error, bench.row("f/d.txt").acl_error) == (None, None)
    assert bench.groups()["f"] == ("everyone",)
    assert "timed out" in (bench.world.catalog.sources.get(SOURCE).last_error or "")


def test_one_document_that_may_not_be_fetched_stops_no_other(bench: Bench, source: ScriptedSource) -> None:
    source.unreadable = {"secret.txt"}
    for name in ("x.txt", "secret.txt", "y.txt"):
        source.put(name, name.encode())
    bench.sync(source)
    assert bench.row("secret.txt").reason == "unreadable"
    assert bench.living() == {**contents(source), "secret.txt": None}


def test_a_document_that_vanished_before_it_was_read_makes_the_next_sync_a_listing(bench: Bench, source: ScriptedSource) -> None:
    source.put("brief.txt", b"Soon gone.")
    del source.items["brief.txt"]
    bench.sync(source)
    assert bench.row("brief.txt").reason == "changing"
    assert bench.sync(source).why_listed == "documents changed while they were read"
    assert bench.living() == contents(source)


def test_a_document_that_could_not_be_read_is_tried_again_by_a_listing_when_a_person_asks(bench: Bench, source: ScriptedSource) -> None:
    source.unreadable = {"a.txt"}
    source.put("a.txt", b"Forbidden for now.")
    bench.sync(source)
    source.unreadable = set()
    assert bench.sync(source).why_listed is None
    assert bench.row("a.txt").reason == "unreadable"
    bench.world.catalog.sources.list_next([SOURCE])
    assert bench.sync(source).why_listed is not None
    assert bench.living() == contents(source)


def test_members_follow_their_container_through_edit_rename_and_delete(bench: Bench, source: ScriptedSource) -> None:
    bench.mime = "text/plain"
    source.put("box.txt", b"member-one.txt:first\nmember-two.txt:second\n")
    bench.sync(source)
    assert {"box.txt/member-one.txt", "box.txt/member-two.txt"} <= set(bench.living())
    one = bench.row("box.txt/member-one.txt").doc_id
    source.put("box.txt", b"member-one.txt:first\nmember-three.txt:third\n")
    bench.sync(source)
    assert {path for path in bench.living() if path.startswith("box")} == {
        "box.txt", "box.txt/member-one.txt", "box.txt/member-three.txt",
    }  # fmt: skip
    source.fetched.clear()
    source.rename("box.txt", "chest.txt")
    bench.sync(source)
    assert source.fetched == []
    assert {path for path in bench.living() if "member" in path} == {"chest.txt/member-one.txt", "chest.txt/member-three.txt"}
    assert bench.row("chest.txt/member-one.txt").doc_id == one
    source.remove("chest.txt")
    bench.sync(source)
    assert not [path for path in bench.living() if "member" in path]


def test_members_that_a_listing_finds_in_a_changed_document_stay(bench: Bench, source: ScriptedSource) -> None:
    bench.mime = "text/plain"
    source.put("mail.txt", b"one")
    bench.sync(source)
    bench.world.catalog.sources.list_next([SOURCE])
    source.put("mail.txt", b"member-x.txt:1\nmember-y.txt:2\n")
    bench.sync(source)
    assert {"mail.txt/member-x.txt", "mail.txt/member-y.txt"} <= set(bench.living())
    assert bench.sync_report.deleted == 0


def test_a_delete_on_the_feed_needs_no_second_opinion(bench: Bench, source: ScriptedSource) -> None:
    for path in list(source.items):
        source.remove(path)
    bench.sync(source)
    assert (bench.living(), bench.sync_report.deleted, bench.sync_report.held) == ({}, 4, 0)


@pytest.mark.parametrize("shown", [(), ("a.txt",)])
def test_a_listing_that_shows_nothing_or_little_is_held_until_a_second_agrees(
    bench: Bench, source: ScriptedSource, shown: tuple[str, ...]
) -> None:
    for number in range(60):
        source.put(f"many/{number}.txt", b"%d" % number)
    bench.sync(source)
    before = bench.living()
    source.shows, bench.confirms_held = shown, False
    bench.world.pass_time(timedelta(days=1))
    bench.sync(source)
    assert bench.living() == before
    assert bench.world.catalog.sources.get(SOURCE).held_count == len(before) - len(shown)
    source.shows = None
    bench.confirms_held = True
    bench.sync(source)
    assert (bench.living(), bench.world.catalog.sources.get(SOURCE).held_count) == (before, 0)


def test_a_document_that_moves_on_faster_than_it_is_read_leaves_nothing_behind(bench: Bench, source: ScriptedSource) -> None:
    source.page_size = 1
    source.put("n.txt", b"Never read.")
    source.rename("n.txt", "m.txt")
    source.remove("m.txt")
    bench.sync(source)
    assert bench.living() == contents(source)


PATHS = st.sampled_from(["a.txt", "b.txt", "f/c.txt", "f/d.txt"])
ACTS = st.one_of(
    st.tuples(st.just("put"), PATHS, st.sampled_from([b"one", b"two", b"member-x.txt:1\nmember-y.txt:2\n", b"member-y.txt:2\n"])),
    st.tuples(st.just("remove"), PATHS, st.none()),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("share"), st.just("f"), st.sampled_from(["staff", "board"])),
    st.tuples(st.just("sync"), st.none(), st.none()),
)


def act(source: ScriptedSource, kind: str, path: Any, value: Any) -> None:
    """Do what is possible; what is not changes nothing."""
    if kind == "put":
        source.put(path, value)
    elif kind == "share":
        source.share(path, value)
    elif path in source.items and kind == "remove":
        source.remove(path)
    elif path in source.items and kind == "rename" and value != path:
        source.rename(path, value)


def whole(source: ScriptedSource) -> set[str]:
    """The paths of the documents and their members."""
    members = {
        f"{path}/{line.partition(':')[0]}"
        for path, data in source.items.items()
        for line in data.decode().splitlines()
        if line.startswith("member")
    }
    return {*source.items, *members}


@given(st.lists(ACTS, max_size=14), st.integers(1, 5))
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_the_documents_are_those_of_the_source(
    sqlite_template: Path, tmp_path: Path, acts: list[Any], page_size: int
) -> None:
    database = tmp_path / "catalog.sqlite"
    for file in tmp_path.glob("catalog.sqlite*"):
        file.unlink()
    database.write_bytes(sqlite_template.read_bytes())
    bench = Bench(World(f"sqlite:///{database}"), tmp_path, mime="text/plain")
    source = ScriptedSource(page_size=page_size)
    bench.sync(source)
    for kind, path, value in acts:
        if kind == "sync":
            bench.sync(source)
        else:
            act(source, kind, path, value)
    bench.sync(source)
    living = bench.living()
    assert set(living) == whole(source)
    assert {path: living[path] for path in source.items} == contents(source)
    for path in living:
        row = bench.row(path)
        top = row.container or path
        assert row.acl_id == ids.acl_id(TENANT, SOURCE, source.item(top).access.scope), path
    if any(path.startswith("f/") for path in source.items):
        assert bench.groups()["f"] == source.access.get("f", Access("f", ("everyone",))).groups
    bench.world.catalog.close()
