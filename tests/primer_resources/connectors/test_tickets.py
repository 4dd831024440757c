"""The tickets connector against a tracker over HTTP: every ticket once, whatever its pages, seconds, limits and tokens do."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from primer_core.failures import Deferred, DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_core.stages import Operation
from primer_resources.connectors.base import CursorExpired
from primer_resources.connectors.tickets import TicketsConnector, TicketsSettings
from tests.source_bench import Bench
from tests.ticket_server import Tracker, later, ticket_server

OLD = timedelta(days=30)


@pytest.fixture
def tracker() -> Iterator[Tracker]:
    with ticket_server() as made:
        yield made


def open_tickets(tracker: Tracker, credentials: str | None = None, waited: list[float] | None = None, **settings: Any) -> TicketsConnector:
    values = {"url": tracker.base, "groups": ["support"], "page_size": 2, **settings}
    sleep = waited.append if waited is not None else (lambda _: None)
    return TicketsConnector(TicketsSettings.model_validate(values), credentials, Path(), sleep)


def listed(connector: TicketsConnector) -> list[str]:
    listing = connector.list()
    paths = [item.path for item in listing]
    assert listing.problems == ()
    assert len(set(paths)) == len(paths)
    return paths


def cursor_of(connector: TicketsConnector) -> Any:
    listing = connector.list()
    list(listing)
    return listing.cursor


def told(connector: TicketsConnector, cursor: Any) -> tuple[list[str], Any]:
    """The paths of all pages of the feed, and the cursor at its end."""
    paths: list[str] = []
    seen = []
    while True:
        page = connector.changes(cursor)
        assert page is not None
        paths.extend(change.path for change in page.changes)
        assert not (page.more and page.cursor in seen)
        cursor = page.cursor
        seen.append(cursor)
        if not page.more:
            return paths, cursor


def test_a_ticket_is_one_document_whose_comments_are_sections(tracker: Tracker, tmp_path: Path) -> None:
    tracker.put(
        7, "# Steps\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<script>alert(1)</script>", "Crash & burn <when> saving", labels=[{"name": "bug"}]
    )
    for n in range(5):
        tracker.comment(7, f"Remark number {n}.")
    connector = open_tickets(tracker)
    item = next(iter(connector.list()))
    assert (item.path, item.title, item.uri) == ("7", "Crash & burn <when> saving", f"{tracker.base}/issues/7")
    connector.fetch(item, tmp_path / "one")
    fetched = connector.fetch(item, tmp_path / "two")
    html = (tmp_path / "one").read_text()
    assert html == (tmp_path / "two").read_text()
    assert fetched.fingerprint == item.fingerprint
    assert "<h1>Crash &amp; burn &lt;when&gt; saving</h1>" in html
    assert "Labels: bug." in html
    assert "<h2>Steps</h2>" in html
    assert "<td>1</td>" in html
    assert "<script>" not in html
    assert html.count("<h2>Comment by bob on 2026-06-01</h2>") == 5
    assert html.index("Remark number 0") < html.index("Remark number 4")


def test_a_gone_account_and_an_empty_body_are_no_fault(tracker: Tracker, tmp_path: Path) -> None:
    tracker.put(1, "", user=None)
    tracker.tickets[1]["body"] = None
    connector = open_tickets(tracker)
    connector.fetch(next(iter(connector.list())), tmp_path / "copy")
    assert "opened by a deleted account" in (tmp_path / "copy").read_text()


def test_pull_requests_are_no_tickets(tracker: Tracker) -> None:
    tracker.put(1, "A ticket.")
    tracker.put(2, "A pull request.", pull_request={"url": "x"})
    tracker.put(3, "A ticket.")
    assert listed(open_tickets(tracker)) == ["1", "3"]


def test_tickets_that_share_a_second_over_many_pages_are_each_told_once(tracker: Tracker) -> None:
    connector = open_tickets(tracker)
    cursor = cursor_of(connector)
    at = later(tracker, 60)
    for number in range(1, 6):
        tracker.put(number, "Same second.", at=at)
    later(tracker, 60)
    paths, cursor = told(connector, cursor)
    assert sorted(paths) == ["1", "2", "3", "4", "5"]
    tracker.put(6, "It came later, in the same second.", at=at)
    paths, cursor = told(connector, cursor)
    assert paths == ["6"]
    assert told(connector, cursor)[0] == []


def test_an_edit_in_the_same_second_as_one_that_was_read_is_not_lost(tracker: Tracker, bench: Bench) -> None:
    tracker.put(1, "First text.")
    bench.sync(open_tickets(tracker))
    later(tracker, 100)
    tracker.put(1, "Second text.")
    bench.sync(open_tickets(tracker))
    before = bench.living()
    tracker.put(1, "Third text.")
    bench.sync(open_tickets(tracker))
    assert bench.living() != before
    third = bench.living()
    tracker.put(1, "Fourth text.")
    bench.sync(open_tickets(tracker))
    assert bench.living() != third


def test_a_ticket_edited_between_two_pages_shifts_no_other_out_of_sight(tracker: Tracker) -> None:
    for number in range(1, 8):
        tracker.put(number, "Old.", at=tracker.clock - OLD + timedelta(seconds=number))
    done: list[int] = []

    def edit(page: int) -> None:
        if len(tracker.requests) > 2 and not done:
            done.append(page)
            tracker.put(1, "Edited while the pages are read.")

    tracker.before_page = edit
    connector = open_tickets(tracker)
    listing = connector.list()
    assert sorted(item.path for item in listing) == [str(number) for number in range(1, 8)]
    assert done
    later(tracker, 10)
    assert told(connector, listing.cursor)[0] == ["1"]


def test_a_ticket_of_a_crowded_second_edited_away_hides_no_other(tracker: Tracker) -> None:
    at = tracker.clock - OLD
    for number in range(1, 8):
        tracker.put(number, "Same second.", at=at)
    done: list[int] = []

    def edit(page: int) -> None:
        if page == 2 and not done:
            done.append(page)
            tracker.put(1, "Edited while the pages are read.")

    tracker.before_page = edit
    assert sorted(listed(open_tickets(tracker))) == [str(number) for number in range(1, 8)]
    assert done


def test_a_tracker_in_another_zone_is_read_at_the_right_moment(tracker: Tracker) -> None:
    tracker.suffix = "+05:30"  # it writes its wall clock: noon is 06:30 UTC
    tracker.put(1, "From Pune.")
    item = next(iter(open_tickets(tracker).list()))
    assert item.version == "2026-06-01T06:30:00+00:00"
    assert item.modified_ns == 1780295400 * 10**9


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "America/St_Johns"])
def test_an_hour_that_a_clock_has_twice_is_neither_skipped_nor_repeated(tracker: Tracker, zone: str) -> None:
    tracker.zone, tracker.clock = ZoneInfo(zone), datetime(2025, 10, 25, 23, 40, tzinfo=UTC)
    tracker.put(1, "Before the clocks go back.")
    connector = open_tickets(tracker)
    cursor = cursor_of(connector)
    seen: list[str] = []
    for number in range(2, 12):  # every 30 minutes, over 01:00 UTC, when 02:00 to 03:00 comes a second time in Berlin
        later(tracker, 1800)
        tracker.put(number, "Half an hour later.")
        later(tracker, 60)
        paths, cursor = told(connector, cursor)
        seen.extend(paths)
    assert [path for path in seen if path != "1"] == [str(number) for number in range(2, 12)]


def test_a_time_without_a_zone_stops_the_sync_and_is_named(tracker: Tracker) -> None:
    tracker.put(1, "No zone.")
    tracker.suffix = ""
    with pytest.raises(SystemFault, match=r"created_at = '2026-06-01T12:00:00' of a ticket is not valid"):
        listed(open_tickets(tracker))


def test_a_listing_that_fails_at_its_third_page_deletes_nothing(tracker: Tracker, bench: Bench) -> None:
    for number in range(1, 9):
        tracker.put(number, "Old.", at=tracker.clock - OLD + timedelta(seconds=number))
    bench.sync(open_tickets(tracker))
    before = bench.living()
    for number in (7, 8):
        tracker.remove(number)
    bench.world.pass_time(timedelta(days=1))
    pages = 0

    def fail(_page: int) -> None:
        nonlocal pages
        pages += 1
        if pages == 2:
            tracker.answers = [(502, {})] * 4

    tracker.before_page = fail
    turn = bench.sync(open_tickets(tracker))
    assert turn.listed is not None
    assert not turn.listed.is_complete
    assert bench.living() == before
    assert "HTTP 502" in (bench.world.catalog.sources.get("handbook").last_error or "")
    tracker.before_page = lambda _: None
    bench.sync(open_tickets(tracker))
    assert set(bench.living()) == {str(number) for number in range(1, 7)}


def test_an_empty_page_with_200_is_held(tracker: Tracker, bench: Bench) -> None:
    for number in range(1, 16):
        tracker.put(number, "Old.", at=tracker.clock - OLD + timedelta(seconds=number))
    bench.sync(open_tickets(tracker))
    tracker.tickets, kept, bench.confirms_held = {}, tracker.tickets, False
    bench.world.pass_time(timedelta(days=1))
    bench.sync(open_tickets(tracker))
    assert (len(bench.living()), bench.world.catalog.sources.get("handbook").held_count) == (15, 15)
    tracker.tickets, bench.confirms_held = kept, True
    bench.sync(open_tickets(tracker))
    assert bench.world.catalog.sources.get("handbook").held_count == 0


def test_a_time_to_wait_is_waited_within_the_quota_and_defers_the_sync_beyond_it(tracker: Tracker) -> None:
    tracker.put(1, "One.")
    waited: list[float] = []
    connector = open_tickets(tracker, waited=waited)
    tracker.answers = [(429, {"Retry-After": "20"}), (503, {"Retry-After": "Mon, 01 Jun 2026 12:00:30 GMT"})]
    assert listed(connector) == ["1"]
    assert waited == [20.0, 30.0]
    tracker.answers = [(429, {"Retry-After": "11"})]
    with pytest.raises(Deferred, match=r"asks to wait 11 s and 10 s are left of the 60 s"):
        listed(connector)
    tracker.answers = [(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(tracker.clock.timestamp()) + 7)})]
    assert listed(connector) == ["1"]
    assert waited[-1] == 7.0


def test_what_fails_for_a_moment_is_asked_again_and_what_goes_on_failing_is_transient(tracker: Tracker) -> None:
    tracker.put(1, "One.")
    waited: list[float] = []
    connector = open_tickets(tracker, waited=waited)
    tracker.answers = [(500, {}), (408, {})]
    assert listed(connector) == ["1"]
    assert waited == [0.5, 1.0]
    tracker.answers = [(500, {})] * 4
    with pytest.raises(Transient, match="HTTP 500"):
        listed(connector)


def test_a_token_that_ran_out_is_read_anew_once_and_then_named_not_shown(tracker: Tracker, tmp_path: Path) -> None:
    tracker.put(1, "One.")
    secret = tmp_path / "token"
    secret.write_text("old-token")
    tracker.token = "old-token"
    connector = open_tickets(tracker, f"file:{secret}")
    assert listed(connector) == ["1"]
    tracker.token = "new-token"
    secret.write_text("new-token\n")
    assert listed(connector) == ["1"]
    tracker.token = "another"
    count = len(tracker.requests)
    with pytest.raises(PrimerError, match=rf"refused the credentials file:{secret}; renew") as caught:
        listed(connector)
    assert "new-token" not in str(caught.value)
    assert len(tracker.requests) - count == 2


def test_teams_over_pages_are_the_groups_and_unread_teams_are_not_nobody(tracker: Tracker, bench: Bench) -> None:
    tracker.put(1, "One.")
    tracker.teams = ["ops", "dev", "qa", "docs", "legal"]

    def connector() -> TicketsConnector:
        return open_tickets(tracker, permissions="teams", groups=[])

    bench.sync(connector())
    assert bench.groups()[""] == ("dev", "docs", "legal", "ops", "qa")
    tracker.refused = {"/teams": 403}
    assert "was changed" in (bench.sync(connector()).why_listed or "")
    assert "cannot be read" in bench.row("1").acl_error
    assert bench.groups()[""] == ("dev", "docs", "legal", "ops", "qa")
    tracker.refused, tracker.teams = {}, ["ops"]
    bench.sync(connector())
    assert (bench.groups()[""], bench.row("1").acl_error, bench.job_count("acl")) == (("ops",), None, 0)


def test_one_ticket_that_is_forbidden_stops_no_other(tracker: Tracker, bench: Bench) -> None:
    for number in (1, 2, 3):
        tracker.put(number, f"Text {number}.")
    tracker.refused = {"/issues/2": 403}
    bench.sync(open_tickets(tracker))
    assert bench.row("2").reason == Reason.UNREADABLE
    assert [path for path, content in bench.living().items() if content is not None] == ["1", "3"]


def test_a_ticket_that_is_commented_on_while_it_is_read_is_read_again(tracker: Tracker, tmp_path: Path) -> None:
    tracker.put(1, "One.")
    connector = open_tickets(tracker)
    item = next(iter(connector.list()))
    tracker.tickets[1]["comments"] = 3
    with pytest.raises(Transient, match="changed while it was read"):
        connector.fetch(item, tmp_path / "copy")
    tracker.tickets[1]["comments"] = 0
    tracker.remove(1)
    with pytest.raises(Transient, match="is gone"):
        connector.fetch(item, tmp_path / "copy")


def test_a_ticket_over_the_limit_is_refused(tracker: Tracker, tmp_path: Path) -> None:
    tracker.put(1, "x" * (1 << 20))
    connector = open_tickets(tracker, max_file_mb=1)
    with pytest.raises(DocumentFault, match="over the limit"):
        connector.fetch(next(iter(connector.list())), tmp_path / "copy")


def test_a_next_page_on_another_service_is_not_asked(tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tracker, "_page", lambda self, rows, query: (200, self._written(rows[:1]), None))
    tracker.put(1, "One.")
    connector = open_tickets(tracker)
    with pytest.raises(SystemFault, match="names a next page on another service"):
        connector._client.get("http://127.0.0.2:1/issues")


def test_a_look_at_a_pull_request_or_a_ticket_that_is_gone_finds_nothing(tracker: Tracker) -> None:
    tracker.put(1, "One.")
    tracker.put(2, "A pull request.", pull_request={"url": "x"})
    connector = open_tickets(tracker)
    assert connector.look("1") == next(iter(connector.list()))
    assert [connector.look(path) for path in ("2", "3", "01", "1/comments", "../issues/1", "1?x", "٣", "9" * 30)] == [None] * 8
    tracker.refused = {"/issues/1": 410}
    assert connector.look("1") is None


def test_a_tracker_that_hides_all_of_itself_says_nothing_of_one_ticket(tracker: Tracker) -> None:
    tracker.put(1, "One.")
    connector = open_tickets(tracker)
    tracker.refused = {"/": 404}
    with pytest.raises(SystemFault, match="does not show its tickets any more"):
        connector.look("1")
    tracker.refused = {"/issues/1": 451}
    with pytest.raises(Transient, match="451"):
        connector.look("1")


def test_groups_that_changed_expire_the_cursor(tracker: Tracker) -> None:
    tracker.put(1, "One.")
    cursor = cursor_of(open_tickets(tracker))
    with pytest.raises(CursorExpired):
        open_tickets(tracker, groups=["others"]).changes(cursor)


def test_webhooks_of_tickets_and_comments_become_events(tracker: Tracker) -> None:
    tracker.put(4, "Text.")
    issue = tracker._written(tracker.tickets[4])
    connector = open_tickets(tracker)
    changed = connector.decode({"X-GitHub-Event": "issue_comment"}, json.dumps({"action": "deleted", "issue": issue}).encode())
    assert [(change.operation, change.path, change.item) for change in changed] == [(Operation.UPSERT, "4", None)]
    gone = connector.decode({"X-GitHub-Event": "issues"}, json.dumps({"action": "deleted", "issue": issue}).encode())
    assert gone[0].operation is Operation.DELETE
    assert list(connector.decode({"X-GitHub-Event": "ping"}, b'{"zen": "x"}')) == []
    issue["updated_at"] = "2026-06-01T12:00:00"
    for body in (json.dumps({"issue": issue}).encode(), b"[]", b"{"):
        with pytest.raises(PrimerError):
            connector.decode({"X-GitHub-Event": "issues"}, body)


def test_the_corpus_tickets_are_each_one_document(tracker: Tracker, corpus: Path, tmp_path: Path) -> None:
    tracker.load(corpus / "files" / "tickets" / "tls-ech")
    connector = open_tickets(tracker, page_size=50)
    items = {item.path: item for item in connector.list()}
    assert len(items) == len(tracker.tickets) > 20
    tickets = sorted(tracker.comments, key=lambda number: len(tracker.comments[number]))
    busiest = items[str(tickets[-1])]
    connector.fetch(busiest, tmp_path / "copy")
    assert (tmp_path / "copy").read_text().count("<h2>Comment by ") == len(tracker.comments[tickets[-1]])
