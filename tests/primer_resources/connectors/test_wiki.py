"""The wiki connector: a git repository's tree as the listing, its main line as the feed, whatever the dates say."""

import json
from pathlib import Path
from typing import Any

import pytest
from dulwich.object_store import DiskObjectStore
from dulwich.objects import ObjectID
from dulwich.refs import Ref

from primer_core.failures import PrimerError, SystemFault, Transient
from primer_core.ids import content_hash
from primer_core.stages import Operation
from primer_resources.connectors.base import ChangePage, Cursor, CursorExpired
from primer_resources.connectors.wiki import PAGE_CHANGES, WikiConnector, WikiSettings
from tests.git_history import HistoryRepo
from tests.git_server import git_server
from tests.source_bench import Bench

AT = 1_700_000_000


@pytest.fixture
def repo(tmp_path: Path) -> HistoryRepo:
    made = HistoryRepo(tmp_path / "wiki.git")
    for name in ("a.md", "b.md", "f/c.md", "f/logo.png"):
        made.put(name, f"# {name}\n\nText of the page {name}, long enough to be told from others.\n".encode())
    made.commit(AT)
    return made


@pytest.fixture
def wiki(repo: HistoryRepo, tmp_path: Path) -> WikiConnector:
    return connector(repo, tmp_path)


def connector(repo: HistoryRepo, tmp_path: Path, **settings: object) -> WikiConnector:
    values = {"url": str(repo.folder), "groups": ["everyone"], **settings}
    return WikiConnector(WikiSettings.model_validate(values), None, tmp_path / "work")


def cursor_of(wiki: WikiConnector) -> dict[str, object]:
    listing = wiki.list()
    list(listing)
    assert listing.cursor is not None
    return dict(listing.cursor)


class BreaksAfterOnePiece(WikiConnector):
    """Tells one piece of the feed, and then the network is gone."""

    told = False

    def changes(self, cursor: Cursor) -> ChangePage | None:
        if self.told:
            raise Transient("no network")
        self.told = True
        return super().changes(cursor)


def hashes(repo: HistoryRepo) -> dict[str, str]:
    return {path: content_hash(data) for path, data in repo.contents().items() if path.endswith(".md")}


def test_only_pages_are_listed_each_with_the_commit_that_wrote_it(repo: HistoryRepo, wiki: WikiConnector) -> None:
    first = repo.head
    repo.put("b.md", b"# B\n\nWritten again.\n")
    second = repo.commit(AT + 5)
    listing = wiki.list()
    items = {item.path: item for item in listing}
    assert set(items) == {"a.md", "b.md", "f/c.md"}
    assert listing.skipped == {"not a page": 1}
    assert first is not None
    assert (items["a.md"].version, items["b.md"].version) == (first.decode()[:12], second.decode()[:12])
    assert items["b.md"].modified_ns == (AT + 5) * 10**9
    assert items["a.md"].order < items["b.md"].order


def test_the_feed_tells_edits_renames_adds_and_deletes_in_order(repo: HistoryRepo, wiki: WikiConnector) -> None:
    cursor = cursor_of(wiki)
    repo.put("new.md", b"# New\n\nA page that is new.\n")
    repo.rename("f/c.md", "g/c.md")
    repo.commit(AT)
    repo.remove("a.md")
    repo.put("b.md", b"# B\n\nWritten again.\n")
    repo.put("f/logo.png", b"another picture")
    repo.commit(AT - 100)  # the clock went back
    page = wiki.changes(cursor)
    assert page is not None
    told = [(change.operation, change.path, change.old_path) for change in page.changes]
    assert set(told[:2]) == {(Operation.UPSERT, "new.md", None), (Operation.UPSERT, "g/c.md", "f/c.md")}
    assert set(told[2:]) == {(Operation.DELETE, "a.md", None), (Operation.UPSERT, "b.md", None)}
    orders = [change.order for change in page.changes]
    assert orders[0] == orders[1] < orders[2] == orders[3]
    assert not page.more
    again = wiki.changes(page.cursor)
    assert again is not None
    assert (again.changes, again.cursor) == ((), page.cursor)


def test_a_page_renamed_to_what_is_no_page_is_gone_and_back_it_is_new(repo: HistoryRepo, wiki: WikiConnector) -> None:
    cursor = cursor_of(wiki)
    repo.rename("a.md", "a.orig")
    repo.commit()
    page = wiki.changes(cursor)
    assert page is not None
    assert [(change.operation, change.path) for change in page.changes] == [(Operation.DELETE, "a.md")]
    repo.rename("a.orig", "a.md")
    repo.commit()
    page = wiki.changes(page.cursor)
    assert page is not None
    assert [(change.operation, change.path, change.old_path) for change in page.changes] == [(Operation.UPSERT, "a.md", None)]


def test_a_commit_of_more_pages_than_a_piece_goes_on_in_the_next(repo: HistoryRepo, wiki: WikiConnector) -> None:
    cursor = cursor_of(wiki)
    for number in range(PAGE_CHANGES + 20):
        repo.put(f"many/{number}.md", b"# Page %d\n" % number)
    repo.commit()
    first = wiki.changes(cursor)
    assert first is not None
    assert (len(first.changes), first.more) == (PAGE_CHANGES, True)
    second = wiki.changes(first.cursor)
    assert second is not None
    assert (len(second.changes), second.more) == (20, False)
    paths = {change.path for change in (*first.changes, *second.changes)}
    assert len(paths) == PAGE_CHANGES + 20


def test_a_commit_that_comes_while_the_mirror_is_brought_up_to_date_is_read_by_the_next_turn(
    repo: HistoryRepo, wiki: WikiConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor: Cursor = cursor_of(wiki)
    repo.put("a.md", b"first")
    repo.commit()
    add_pack_data = DiskObjectStore.add_pack_data

    def overtaken(store: DiskObjectStore, *args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        repo.put("b.md", b"second")
        repo.commit()
        return add_pack_data(store, *args, **options)

    monkeypatch.setattr(DiskObjectStore, "add_pack_data", overtaken)
    told = []
    for _ in range(3):
        page = wiki.changes(cursor)
        assert page is not None
        told += [change.path for change in page.changes]
        cursor = page.cursor
    assert told == ["a.md", "b.md"]


def test_a_large_commit_that_is_rewritten_while_it_is_read_loses_no_page(repo: HistoryRepo, tmp_path: Path, bench: Bench) -> None:
    bench.sync(connector(repo, tmp_path))
    before, kept = repo.head, dict(repo.files)
    assert before is not None
    for number in range(PAGE_CHANGES + 20):
        repo.put(f"many/{number}.md", b"# Page %d\n" % number)
    repo.commit()
    with pytest.raises(Transient):
        bench.sync(BreaksAfterOnePiece(WikiSettings(url=str(repo.folder), groups=("everyone",)), None, tmp_path / "work"))
    assert len(bench.living()) == 3 + PAGE_CHANGES
    repo.files = kept
    repo.put("a-new.md", b"# A new page\n\nBefore all others by name.\n")
    repo.reset(before)
    repo.commit()
    assert "was rewritten" in (bench.sync(connector(repo, tmp_path)).why_listed or "")
    assert "a-new.md" in bench.living()
    bench.sync(connector(repo, tmp_path))  # so many deletes wait for a second listing that agrees
    assert bench.living() == hashes(repo)
    repo.put("many/0.md", b"# Page 0\n\nIt came back.\n")
    repo.commit()
    assert bench.sync(connector(repo, tmp_path)).why_listed is None
    assert bench.living() == hashes(repo)


def test_a_look_has_the_order_that_the_feed_will_tell(repo: HistoryRepo, tmp_path: Path, wiki: WikiConnector) -> None:
    first = repo.head
    assert first is not None
    old = cursor_of(wiki)
    for number in range(4):
        repo.put("a.md", b"# A\n\nVersion %d of the page.\n" % number)
        repo.commit()
    repo.put("b.md", b"# B\n\nEdited.\n")
    repo.commit()
    page = wiki.changes(old)
    assert page is not None
    last = {change.path: change.item for change in page.changes}
    assert {path: wiki.look(path, old) for path in last} == last
    assert {path: wiki.look(path, page.cursor) for path in last} == last
    repo.reset(first)
    repo.put("a.md", b"# A\n\nThe history that counts now.\n")
    repo.commit()
    rewritten = wiki.look("a.md", page.cursor)
    assert rewritten is not None
    assert rewritten == {item.path: item for item in wiki.list(page.cursor)}["a.md"]
    assert last["a.md"] is not None
    assert rewritten.order > last["a.md"].order


def test_a_look_at_what_is_no_page_finds_nothing(repo: HistoryRepo, wiki: WikiConnector) -> None:
    repo.put(b"caf\xe9.md", b"# Caf\xc3\xa9\n")
    repo.commit()
    items = {item.path: item for item in wiki.list()}
    assert wiki.look("caf\\xe9.md") == items["caf\\xe9.md"]
    for path in ("f/logo.png", "f", "f/c.md/x.md", "f//c.md", "/a.md", "a.md/"):
        assert wiki.look(path) is None, path


def test_a_mirror_that_lost_a_part_is_no_absence(repo: HistoryRepo, wiki: WikiConnector) -> None:
    wiki.list()
    objects = wiki._mirror.repo.object_store
    head = repo.head
    assert head is not None
    tree = wiki._mirror.commit(head).tree
    real = type(objects).__getitem__

    class Lossy(type(objects)):  # type: ignore[misc]
        def __getitem__(self, name: ObjectID) -> object:
            if name == tree:
                raise KeyError(name)
            return real(self, name)

    objects.__class__ = Lossy
    with pytest.raises(SystemFault, match="lost object"):
        wiki.look("a.md")


def test_a_side_branch_that_is_merged_is_told_as_one_step(repo: HistoryRepo, wiki: WikiConnector) -> None:
    cursor, base = cursor_of(wiki), repo.head
    assert base is not None
    repo.put("a.md", b"# A\n\nOn the side.\n")
    side = repo.commit(parents=[base], move=False)
    repo.put("b.md", b"# B\n\nOn the main line.\n")
    merge = repo.commit(parents=[base, side])
    page = wiki.changes(cursor)
    assert page is not None
    assert {change.path for change in page.changes} == {"a.md", "b.md"}
    assert {change.source_version for change in page.changes} == {merge.decode()[:12]}
    # The other way round: what was the head came in from the side.
    repo.put("c.md", b"# C\n\nAnother line.\n")
    other = repo.commit(parents=[base], move=False)
    repo.commit(parents=[other, merge])
    page = wiki.changes(page.cursor)
    assert page is not None
    assert [change.path for change in page.changes] == ["c.md"]


def test_a_rewritten_history_expires_the_cursor_and_later_versions_still_win(repo: HistoryRepo, tmp_path: Path, bench: Bench) -> None:
    first = repo.head
    assert first is not None
    for number in range(5):
        repo.put("a.md", b"# A\n\nVersion %d of the page.\n" % number)
        repo.commit()
    bench.sync(connector(repo, tmp_path))
    repo.files.pop(b"a.md")
    repo.put("a.md", b"# A\n\nThe history that counts now.\n")
    repo.reset(first)
    repo.commit()
    turn = bench.sync(connector(repo, tmp_path))
    assert "was rewritten" in (turn.why_listed or "")
    assert bench.living() == hashes(repo)
    repo.put("a.md", b"# A\n\nAnd an edit after it.\n")
    repo.commit()
    assert bench.sync(connector(repo, tmp_path)).why_listed is None
    assert bench.living() == hashes(repo)


def test_a_lost_mirror_is_made_again_and_the_feed_goes_on(repo: HistoryRepo, tmp_path: Path) -> None:
    cursor = cursor_of(connector(repo, tmp_path))
    repo.put("a.md", b"# A\n\nEdited.\n")
    repo.commit()
    page = connector(repo, tmp_path / "elsewhere").changes(cursor)
    assert page is not None
    assert [change.path for change in page.changes] == ["a.md"]


def test_new_access_rules_are_a_listing_that_reads_no_page_again(repo: HistoryRepo, tmp_path: Path, bench: Bench) -> None:
    rules = tmp_path / "wiki.access.yaml"
    rules.write_text("groups: [everyone]\nfolders: {f: [staff]}\n")
    bench.sync(connector(repo, tmp_path, access_file=rules))
    assert bench.groups() == {"": ("everyone",), "f": ("staff",)}
    rules.write_text("groups: [everyone]\nfolders: {f: [board]}\n")
    turn = bench.sync(connector(repo, tmp_path, access_file=rules))
    assert "was changed" in (turn.why_listed or "")
    assert bench.groups()["f"] == ("board",)
    assert (bench.sync_report.acl_only, bench.sync_report.bytes_read, bench.job_count("acl")) == (1, 0, 0)
    rules.write_text("groups: [")
    bench.sync(connector(repo, tmp_path, access_file=rules))
    assert all("access file" in bench.row(path).acl_error for path in ("a.md", "f/c.md"))
    assert bench.groups()["f"] == ("board",)


def test_a_folder_and_an_address_of_ones_own(repo: HistoryRepo, tmp_path: Path) -> None:
    wiki = connector(repo, tmp_path, folder="/f/", uri="https://wiki.example/{branch}/{path}", branch="main")
    assert [(item.path, item.uri) for item in wiki.list()] == [("f/c.md", "https://wiki.example/main/f/c.md")]
    with pytest.raises(ValueError, match=r"has no .path"):
        WikiSettings(url="x", uri="https://wiki.example/")
    with pytest.raises(ValueError, match=r"only .url"):
        WikiSettings(url="x", uri="https://wiki.example/{page}/{path}")


def test_a_name_that_is_not_utf_8_is_shown_and_fetched(repo: HistoryRepo, wiki: WikiConnector, tmp_path: Path) -> None:
    repo.put(b"caf\xe9.md", b"# Caf\xc3\xa9\n")
    repo.commit()
    item = {item.path: item for item in wiki.list()}["caf\\xe9.md"]
    assert item.uri.endswith("/caf%E9.md")
    wiki.fetch(item, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"# Caf\xc3\xa9\n"


def test_what_is_no_repository_or_has_no_such_branch_says_so(repo: HistoryRepo, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(SystemFault, match="plain is no git repository"):
        WikiConnector(WikiSettings(url=str(tmp_path / "plain")), None, tmp_path / "work").list()
    with pytest.raises(SystemFault, match="has no branch 'gone'"):
        connector(repo, tmp_path, branch="gone").list()
    with pytest.raises(Transient, match="does not answer"):
        WikiConnector(WikiSettings(url="http://127.0.0.1:9/wiki.git"), None, tmp_path / "nobody").list()


def test_an_unknown_cursor_commit_is_an_expired_cursor(repo: HistoryRepo, wiki: WikiConnector) -> None:
    with pytest.raises(CursorExpired):
        wiki.changes({**cursor_of(wiki), "commit": "0" * 40})


def test_a_push_is_decoded_without_asking_the_repository(repo: HistoryRepo, tmp_path: Path) -> None:
    wiki = connector(repo, tmp_path, branch="main")
    push = {
        "ref": "refs/heads/main",
        "commits": [
            {"id": "c" * 40, "timestamp": "2026-01-31T17:30:00+05:30", "added": ["n.md"], "modified": ["x.png"], "removed": ["a.md"]}
        ],
    }
    told = wiki.decode({}, json.dumps(push).encode())
    assert [(change.operation, change.path, change.item) for change in told] == [
        (Operation.UPSERT, "n.md", None), (Operation.DELETE, "a.md", None),
    ]  # fmt: skip
    assert told[0].event_time.isoformat() == "2026-01-31T12:00:00+00:00"
    assert told.ignored == ("1 files are no pages",)
    draft = wiki.decode({}, json.dumps({**push, "ref": "refs/heads/draft"}).encode())
    assert (list(draft), draft.ignored) == ([], ("refs/heads/draft is not main, which this source reads",))
    push["commits"][0]["timestamp"] = "2026-01-31T17:30:00"  # type: ignore[index]
    for body in (json.dumps(push).encode(), b"[]", b"no json"):
        with pytest.raises(PrimerError, match=r"webhook of .*not that of a push"):
            wiki.decode({}, body)


def test_a_repository_over_http_takes_a_token_and_a_wrong_one_is_named_not_shown(
    repo: HistoryRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with git_server(repo, token="right") as host:
        monkeypatch.setenv("WIKI_TOKEN", "wrong")
        wiki = WikiConnector(WikiSettings(url=host.url), "env:WIKI_TOKEN", tmp_path / "work")
        with pytest.raises(PrimerError, match=r"refused the credentials \(env:WIKI_TOKEN\)") as caught:
            wiki.list()
        assert "wrong" not in str(caught.value)
        monkeypatch.setenv("WIKI_TOKEN", "right")
        cursor = cursor_of(wiki)
        repo.put("a.md", b"# A\n\nEdited and served.\n")
        repo.commit()
        page = wiki.changes(cursor)
        assert page is not None
        assert [change.path for change in page.changes] == ["a.md"]


def test_many_fetches_do_not_leave_many_packs(repo: HistoryRepo, wiki: WikiConnector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("primer_resources.connectors.git_mirror.MOST_PACKS", 3)
    for number in range(8):
        repo.put("a.md", b"# A\n\nEdit %d.\n" % number)
        repo.commit()
        wiki.list()
    assert len(list(wiki._mirror.repo.object_store.packs)) <= 4
    assert {item.path for item in wiki.list()} == {"a.md", "b.md", "f/c.md"}
    assert Ref(b"refs/heads/primer") in wiki._mirror.repo.refs
