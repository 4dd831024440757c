"""The wiki connector against a MediaWiki over HTTP: the feed alone keeps in step with edits, moves, deletes and restores."""

import hashlib
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from primer_core.failures import Deferred, DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_core.stages import Operation
from primer_resources.connectors.base import Change, Cursor, CursorExpired
from primer_resources.connectors.mediawiki import MediaWikiConnector, MediaWikiSettings
from primer_resources.connectors.registry import check_source
from primer_resources.connectors.wiki import WikiSettings
from tests.mediawiki_server import Wiki, later, mediawiki_server
from tests.source_bench import Bench

DAY = timedelta(days=1)


@pytest.fixture
def wiki() -> Iterator[Wiki]:
    with mediawiki_server() as made:
        yield made


def open_wiki(wiki: Wiki, credentials: str | None = None, waited: list[float] | None = None, **settings: Any) -> MediaWikiConnector:
    sleep = waited.append if waited is not None else (lambda _: None)
    values = {"url": wiki.url, "groups": ["staff"], "page_size": 2, **settings}
    return MediaWikiConnector(MediaWikiSettings.model_validate(values), credentials, Path(), sleep)


def listed(connector: MediaWikiConnector) -> list[str]:
    listing = connector.list()
    paths = [item.path for item in listing]
    assert listing.problems == ()
    return paths


def cursor_of(connector: MediaWikiConnector) -> Cursor:
    listing = connector.list()
    list(listing)
    assert listing.cursor is not None
    return listing.cursor


def told(connector: MediaWikiConnector, cursor: Cursor) -> tuple[list[Change], Cursor]:
    """All pieces of the feed, and the cursor at its end."""
    changes: list[Change] = []
    while True:
        page = connector.changes(cursor)
        assert page is not None
        changes.extend(page.changes)
        cursor = page.cursor
        if not page.more:
            return changes, cursor


def sync(bench: Bench, wiki: Wiki, **settings: Any) -> None:
    """One sync by the feed alone."""
    turn = bench.sync(open_wiki(wiki, **settings))
    assert turn.why_listed is None


def in_step(bench: Bench, wiki: Wiki) -> None:
    """The catalog has the wiki's pages, each in its newest revision."""
    pages = {title: page.newest.id for title, page in wiki.pages.items() if page.ns == 0 and not page.is_redirect}
    assert set(bench.living()) == set(pages)
    assert {title: int(bench.row(title).fingerprint.partition(":")[0]) for title in pages} == pages


def texts(bench: Bench, wiki: Wiki) -> None:
    """The same, and the content of each is what a fetch gives now."""
    in_step(bench, wiki)
    connector = open_wiki(wiki)
    for item in connector.list():
        assert bench.living()[item.path] == connector.fetch(item, bench.folder / "check").content_hash, item.path


def begun(bench: Bench, wiki: Wiki, *titles: str) -> None:
    """Pages that were listed, a good while ago."""
    for title in titles:
        wiki.put(title, f"Text of {title}.")
    later(wiki, 120)
    bench.sync(open_wiki(wiki))
    later(wiki, 120)


def test_a_page_is_html_under_its_title_and_the_same_revision_is_the_same_bytes(wiki: Wiki, tmp_path: Path) -> None:
    wiki.put("Q & A/Part 1", "One.\n\nTwo < three.")
    connector = open_wiki(wiki)
    item = next(iter(connector.list()))
    assert (item.path, item.title, item.version, item.uri) == ("Q & A/Part 1", "Q & A/Part 1", "1", f"{wiki.base}/wiki/Q_%26_A/Part_1")
    fetched = connector.fetch(item, tmp_path / "one")
    later(wiki, 60)
    connector.fetch(item, tmp_path / "two")
    html = (tmp_path / "one").read_text()
    assert (tmp_path / "two").read_text() == html
    assert "<h1>Q &amp; A/Part 1</h1>" in html
    assert "<p>Two &lt; three.\n</p>" in html
    assert "<!--" not in html
    assert fetched.content_hash == hashlib.sha256(html.encode()).hexdigest()


def test_redirects_are_left_out_and_counted_and_other_namespaces_only_where_they_are_asked_for(wiki: Wiki) -> None:
    for title in ("Alpha", "Help:Sync", "Talk:Alpha", "Zeta"):
        wiki.put(title, "Text.")
    wiki.put("Beta", "#REDIRECT [[Alpha]]")
    listing = open_wiki(wiki).list()
    assert [item.path for item in listing] == ["Alpha", "Zeta"]
    assert listing.skipped == {"redirect": 1}
    assert listed(open_wiki(wiki, namespaces="12, 0")) == ["Help:Sync", "Alpha", "Zeta"]


def test_a_page_that_becomes_a_redirect_goes_and_one_that_ceases_to_be_comes(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta")
    wiki.put("Beta", "#REDIRECT [[Alpha]]")
    sync(bench, wiki)
    assert set(bench.living()) == {"Alpha"}
    later(wiki, 60)
    wiki.put("Beta", "A page again.")
    sync(bench, wiki)
    texts(bench, wiki)


def test_a_moved_page_stays_the_same_document_and_leaves_none_behind(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta")
    doc_id = bench.row("Alpha").doc_id
    wiki.put("Alpha", "Edited, then moved.")
    wiki.move("Alpha", "Gamma")
    wiki.put("Gamma", "Edited, moved, edited.")
    sync(bench, wiki)
    assert bench.row("Gamma").doc_id == doc_id
    texts(bench, wiki)
    later(wiki, 60)
    wiki.move("Gamma", "Alpha")  # back over its own redirect, which MediaWiki deletes
    sync(bench, wiki)
    assert bench.row("Alpha").doc_id == doc_id
    texts(bench, wiki)


def test_a_page_moved_out_of_the_namespaces_goes_and_one_moved_in_comes(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta", "Help:Gamma")
    wiki.move("Alpha", "Talk:Alpha", leaves_redirect=False)
    wiki.move("Help:Gamma", "Gamma")
    sync(bench, wiki)
    assert set(bench.living()) == {"Beta", "Gamma"}
    texts(bench, wiki)


def test_pages_that_swap_their_titles_keep_their_texts(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta")
    first, second = bench.row("Alpha").doc_id, bench.row("Beta").doc_id
    wiki.move("Alpha", "Aside", leaves_redirect=False)
    wiki.move("Beta", "Alpha", leaves_redirect=False)
    wiki.move("Aside", "Beta", leaves_redirect=False)
    sync(bench, wiki)
    assert (bench.row("Beta").doc_id, bench.row("Alpha").doc_id) == (first, second)
    texts(bench, wiki)


def test_a_deleted_page_goes_and_a_restored_one_comes_back_with_its_old_revision(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta")
    for _ in range(3):
        wiki.remove("Alpha")
        sync(bench, wiki)
        assert set(bench.living()) == {"Beta"}
        later(wiki, 40)
        wiki.restore("Alpha")
        sync(bench, wiki)
        texts(bench, wiki)
        later(wiki, 40)
    wiki.put("Alpha", "The first edit since all that.")
    sync(bench, wiki)
    texts(bench, wiki)


def test_a_page_made_anew_after_deletes_and_restores_is_not_taken_for_an_older_one(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta")
    for act in (wiki.remove, wiki.restore, wiki.remove):
        act("Alpha")
        sync(bench, wiki)
        later(wiki, 40)
    wiki.put("Alpha", "A new page of that title.")
    sync(bench, wiki)
    texts(bench, wiki)


def test_a_page_that_a_listing_missed_and_that_is_restored_comes_back(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta")
    wiki.remove("Alpha")
    later(wiki, 120)
    bench.world.pass_time(DAY)
    assert bench.sync(open_wiki(wiki)).why_listed is not None
    assert set(bench.living()) == {"Beta"}
    later(wiki, 120)
    wiki.restore("Alpha")
    sync(bench, wiki)
    texts(bench, wiki)


def test_a_page_edited_and_deleted_between_two_syncs_goes_though_its_edits_are_dropped(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta")
    wiki.put("Alpha", "Edited.")
    sync(bench, wiki)
    wiki.put("Alpha", "Edited again.")
    wiki.remove("Alpha")
    sync(bench, wiki)
    assert set(bench.living()) == {"Beta"}
    wiki.put("Alpha", "A new page of that title.")
    sync(bench, wiki)
    texts(bench, wiki)


def test_a_merged_history_and_a_protection_are_followed(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, "Alpha", "Beta")
    wiki.protect("Beta")
    wiki.merge("Alpha", "Beta")
    jobs = bench.job_count("upsert")
    sync(bench, wiki)
    texts(bench, wiki)
    assert bench.job_count("upsert") == jobs
    assert bench.row("Beta").fingerprint.startswith(f"{wiki.pages['Beta'].newest.id}:")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_the_feed_alone_ends_with_what_the_wiki_has(wiki: Wiki, bench: Bench, seed: int) -> None:
    rng = random.Random(seed)
    titles = [f"Page {letter}" for letter in "ABCDEF"]
    begun(bench, wiki, *titles[:4])
    for step in range(30):
        there = [title for title in titles if title in wiki.pages]
        free = [title for title in titles if title not in wiki.pages or wiki.pages[title].is_redirect]
        acts = ["put", "put", "redirect", "protect", "remove", "move"] if there else ["put"]
        act = rng.choice([*acts, *(["restore"] if set(wiki.deleted) - set(wiki.pages) else [])])
        title = rng.choice(there or titles)
        if act == "put":
            wiki.put(rng.choice(titles), f"Text {step}.")
        elif act == "redirect":
            wiki.put(title, "#REDIRECT [[Elsewhere]]")
        elif act == "restore":
            wiki.restore(rng.choice(sorted(set(wiki.deleted) - set(wiki.pages))))
        elif act == "move" and set(free) - {title}:
            wiki.move(title, rng.choice(sorted(set(free) - {title})), leaves_redirect=rng.random() < 0.5)
        elif act in ("protect", "remove"):
            getattr(wiki, act)(title)
        later(wiki, rng.choice([0, 0, 1, 20, 100]))
        if rng.random() < 0.3:
            bench.world.pass_time(timedelta(minutes=1))
            sync(bench, wiki)
            in_step(bench, wiki)
    sync(bench, wiki)
    texts(bench, wiki)


def test_changes_of_one_second_over_many_pieces_are_each_told_once(wiki: Wiki) -> None:
    connector = open_wiki(wiki)
    cursor = cursor_of(connector)
    later(wiki, 60)
    for number in range(5):
        wiki.put(f"Same {number}", "Same second.")
    changes, cursor = told(connector, cursor)
    assert [change.path for change in changes] == [f"Same {number}" for number in range(5)]
    wiki.put("Same 5", "It came later, in the same second.")
    changes, cursor = told(connector, cursor)
    assert [change.path for change in changes] == ["Same 5"]
    later(wiki, 100)
    assert told(connector, cursor)[0] == []


def test_a_change_that_is_saved_seconds_after_the_time_it_bears_is_told(wiki: Wiki) -> None:
    connector = open_wiki(wiki)
    cursor = cursor_of(connector)
    began = later(wiki, 60)
    later(wiki, 20)
    wiki.put("Quick", "Saved at once.")
    changes, cursor = told(connector, cursor)
    assert [change.path for change in changes] == ["Quick"]
    page = wiki.put("Slow", "Its edit began before the other's.")
    page.newest.at = wiki.changes[-1]["timestamp"] = began
    changes, cursor = told(connector, cursor)
    assert [change.path for change in changes] == ["Slow"]
    later(wiki, 100)
    assert told(connector, cursor)[0] == []


def test_a_cursor_expires_after_what_the_wiki_keeps_and_a_quiet_wikis_does_not(wiki: Wiki) -> None:
    wiki.put("Alpha", "Text.")
    later(wiki, 60)
    connector = open_wiki(wiki, changes_kept="30d")
    old = cursor = cursor_of(connector)
    for _ in range(40):
        later(wiki, DAY.total_seconds())
        wiki.purge(wiki.clock - timedelta(days=30))
        changes, cursor = told(connector, cursor)
        assert changes == []
    with pytest.raises(CursorExpired, match="for 30 days"):
        connector.changes(old)


def test_answers_that_go_round_in_a_circle_end(wiki: Wiki) -> None:
    for number in range(6):
        wiki.put(f"Page {number}", "Text.")
    connector = open_wiki(wiki)
    cursor = cursor_of(connector)
    wiki.stuck = True
    listing = connector.list()
    assert len(list(listing)) == 2
    assert "go round in a circle" in listing.problems[0]
    with pytest.raises(CursorExpired, match="go round in a circle"):
        told(connector, cursor)


def test_rules_that_changed_expire_the_cursor(wiki: Wiki) -> None:
    cursor = cursor_of(open_wiki(wiki))
    with pytest.raises(CursorExpired, match="who may read"):
        open_wiki(wiki, groups=["others"]).changes(cursor)


def test_a_listing_that_fails_at_its_third_part_deletes_nothing(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, *(f"Page {number}" for number in range(8)))
    before = bench.living()
    wiki.remove("Page 7")
    wiki.purge(later(wiki, 1))
    bench.world.pass_time(DAY)
    parts = 0

    def fail(params: dict[str, str]) -> None:
        nonlocal parts
        parts += params.get("generator") == "allpages"
        if parts == 4:
            wiki.errors = [("internal_api_error_DBQueryError", {})] * 9

    wiki.before = fail
    turn = bench.sync(open_wiki(wiki))
    assert turn.listed is not None
    assert not turn.listed.is_complete
    assert bench.living() == before
    assert "internal_api_error_DBQueryError" in (bench.world.catalog.sources.get("handbook").last_error or "")
    wiki.before, wiki.errors = lambda params: None, []
    bench.sync(open_wiki(wiki))
    assert set(bench.living()) == set(before) - {"Page 7"}


def test_an_empty_answer_with_200_is_held(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, *(f"Page {number}" for number in range(15)))
    wiki.pages, kept = {}, wiki.pages
    bench.world.pass_time(DAY)
    bench.confirms_held = False
    bench.sync(open_wiki(wiki))
    assert (len(bench.living()), bench.world.catalog.sources.get("handbook").held_count) == (15, 15)
    wiki.pages = kept


def test_a_page_moved_while_the_titles_are_read_is_shown_once(wiki: Wiki, bench: Bench) -> None:
    begun(bench, wiki, *(f"Page {number}" for number in range(8)))
    ids = {path: bench.row(path).doc_id for path in ("Page 1", "Page 7")}
    bench.world.pass_time(DAY)

    def move(params: dict[str, str]) -> None:
        if params.get("gapcontinue", "").startswith("Page_4") and "Page 0/moved" not in wiki.pages:
            wiki.move("Page 7", "Page 0/moved", leaves_redirect=False)  # to where the listing was already
            wiki.move("Page 1", "Page 9", leaves_redirect=False)  # to where it comes yet

    wiki.before = move
    turn = bench.sync(open_wiki(wiki))
    assert turn.listed is not None
    assert turn.listed.is_complete
    assert bench.row("Page 0/moved").doc_id == ids["Page 7"] or "Page 0/moved" in bench.living()
    assert "Page 1" in bench.living()
    later(wiki, 60)
    sync(bench, wiki)
    assert bench.row("Page 9").doc_id == ids["Page 1"]
    texts(bench, wiki)


def test_errors_with_status_200_are_waited_for_within_the_quota(wiki: Wiki) -> None:
    wiki.put("Alpha", "Text.")
    waited: list[float] = []
    connector = open_wiki(wiki, waited=waited)
    wiki.errors = [("maxlag", {"Retry-After": "7"}), ("ratelimited", {}), ("internal_api_error_DBQueryError", {})]
    assert listed(connector) == ["Alpha"]
    assert waited == [7.0, 5.0, 2.0]
    assert {params["maxlag"] for params in wiki.requests} == {"5"}
    wiki.errors = [("maxlag", {"Retry-After": "49"})]
    with pytest.raises(Deferred, match="48 s are left of the 60 s"):
        listed(connector)


def test_a_bot_signs_in_and_signs_in_anew_once_when_its_session_is_gone(wiki: Wiki, tmp_path: Path) -> None:
    wiki.put("Alpha", "Text.")
    wiki.is_private, wiki.bots, wiki.login_wait = True, {"Reader@primer": "pass:word"}, 3
    secret = tmp_path / "secret"
    secret.write_text("Reader@primer:pass:word\n")
    waited: list[float] = []
    connector = open_wiki(wiki, f"file:{secret}", waited)
    assert listed(connector) == ["Alpha"]
    assert waited == [3.0]
    asked = len(wiki.requests)
    wiki.sessions = {}
    assert listed(connector) == ["Alpha"]
    assert [params["action"] for params in wiki.requests[asked:]].count("login") == 1
    wiki.sessions, wiki.bots = {}, {"Reader@primer": "another"}
    with pytest.raises(PrimerError, match=rf"refused the credentials file:{secret}; renew") as caught:
        listed(connector)
    assert "pass:word" not in str(caught.value)
    assert all("pass:word" not in str(params) for params in wiki.requests if params["action"] != "login")
    with pytest.raises(SystemFault, match="readapidenied"):
        listed(open_wiki(wiki))


def test_a_token_signs_each_request_and_is_read_anew_once(wiki: Wiki, tmp_path: Path) -> None:
    wiki.put("Alpha", "Text.")
    wiki.is_private, wiki.tokens = True, {"first"}
    secret = tmp_path / "secret"
    secret.write_text("first")
    connector = open_wiki(wiki, f"file:{secret}")
    assert listed(connector) == ["Alpha"]
    wiki.tokens = {"second"}
    secret.write_text("second")
    assert listed(connector) == ["Alpha"]
    assert all(params.get("assert") == "user" for params in wiki.requests)
    wiki.tokens = set()
    with pytest.raises(PrimerError, match=rf"refused the credentials file:{secret}"):
        listed(connector)


def test_a_revision_that_is_older_than_listed_or_not_there_yet_is_tried_again(wiki: Wiki, tmp_path: Path) -> None:
    wiki.put("Alpha", "First.")
    wiki.put("Alpha", "Second.")
    connector = open_wiki(wiki)
    item = next(iter(connector.list()))
    wiki.lags = {2: 1}
    with pytest.raises(Transient, match="revision 1, older than 2"):
        connector.fetch(item, tmp_path / "copy")
    wiki.remove("Alpha")
    with pytest.raises(Transient, match="revision 2 is gone"):
        connector.fetch(item, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_one_page_that_is_forbidden_stops_no_other(wiki: Wiki, bench: Bench) -> None:
    wiki.hidden = {2: "permissiondenied"}
    begun(bench, wiki, "Alpha", "Beta", "Gamma")
    assert bench.row("Beta").reason == Reason.UNREADABLE
    assert sorted(path for path, content in bench.living().items() if content is not None) == ["Alpha", "Gamma"]


def test_a_page_over_the_limit_is_refused(wiki: Wiki, tmp_path: Path) -> None:
    wiki.put("Alpha", "x" * (1 << 20))
    connector = open_wiki(wiki, max_file_mb=1)
    with pytest.raises(DocumentFault, match="over the limit"):
        connector.fetch(next(iter(connector.list())), tmp_path / "copy")


def test_a_rule_counts_for_a_title_with_its_subpages_or_for_a_namespace(wiki: Wiki, tmp_path: Path) -> None:
    for title in ("HR", "HR/Pay", "HR/Pay/2026", "HRM", "Help:Sync", "Help:Admin/Keys"):
        wiki.put(title, "Text.")
    rules = tmp_path / "rules.yaml"
    rules.write_text('groups: [everyone]\nfolders: {HR: [hr], HR/Pay: [board], "Help:": [staff], "Help:Admin": [ops], Hr: [x]}\n')
    connector = open_wiki(wiki, access_file=rules, namespaces="0,12")
    listing = connector.list()
    assert {item.path: (item.access.scope, item.access.groups) for item in listing} == {
        "HR": ("HR", ("hr",)), "HR/Pay": ("HR/Pay", ("board",)), "HR/Pay/2026": ("HR/Pay", ("board",)), "HRM": ("", ("everyone",)),
        "Help:Sync": ("Help:", ("staff",)), "Help:Admin/Keys": ("Help:Admin", ("ops",)),
    }  # fmt: skip
    assert listing.notices == ("the access file names 'Hr', which is no page or namespace read here: misspelt, or gone",)


def test_a_delete_is_told_with_the_time_of_the_wiki(wiki: Wiki) -> None:
    wiki.put("Alpha", "Text.")
    connector = open_wiki(wiki)
    cursor = cursor_of(connector)
    at = later(wiki, 60)
    wiki.remove("Alpha")
    (change,), _ = told(connector, cursor)
    assert (change.operation, change.path, change.event_time, change.item) == (Operation.DELETE, "Alpha", at, None)


def test_what_is_no_api_of_a_mediawiki_is_named(wiki: Wiki) -> None:
    with pytest.raises(SystemFault, match="answered 404"):
        listed(open_wiki(wiki, url=f"{wiki.base}/other/api.php"))


def test_the_location_says_whether_a_wiki_is_a_repository_or_a_mediawiki() -> None:
    assert isinstance(check_source("wiki", {"url": "https://git.example/wiki.git"}, None), WikiSettings)
    settings = check_source("wiki", {"url": "https://wiki.example/w/api.php", "namespaces": "0,12"}, "env:BOT")
    assert isinstance(settings, MediaWikiSettings)
    assert settings.namespaces == (0, 12)
    with pytest.raises(PrimerError, match="namespaces"):
        check_source("wiki", {"url": "https://wiki.example/w/api.php", "namespaces": "Help"}, None)
    with pytest.raises(PrimerError, match="take it out"):
        check_source("wiki", {"url": "https://bot:word@wiki.example/w/api.php"}, None)
