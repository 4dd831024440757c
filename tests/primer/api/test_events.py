"""Events over HTTP: signed, taken one by one, kept once; permissions hold when the answer comes; no address leads out of its source."""

import hashlib
import hmac
import json
from datetime import timedelta

import pytest

from primer_core.ids import doc_id as doc_id_of
from primer_core.stages import Operation
from tests.primer.api.conftest import SECRET, Api
from tests.primer_resources.catalog.world import LEASE, SOURCE, TENANT, source

DOC = doc_id_of(SOURCE, "a.md")


def test_a_signed_batch_is_kept_and_told_again_it_is_a_duplicate(api: Api) -> None:
    sent = (api.event("a.md", event_id="one"), api.event("b.md"), api.event("b.md"))
    answer = api.send(*sent)
    assert answer.status_code == 202
    first = answer.json()["events"]
    assert [(each["accepted"], each["duplicate"]) for each in first] == [(True, False), (True, False), (True, True)]
    again = api.send(*sent).json()["events"]
    assert [(each["accepted"], each["duplicate"]) for each in again] == [(True, True)] * 3
    assert [each["event_id"] for each in again] == [each["event_id"] for each in first]
    assert sorted(event.path for event in api.waiting()) == ["a.md", "b.md"]
    assert api.world.catalog.events.due_sources() == [SOURCE]


@pytest.mark.parametrize("away", [0, 301, -301])
def test_a_batch_that_is_not_signed_now_by_its_source_is_refused(api: Api, away: int) -> None:
    at = api.world.catalog.now().timestamp() + away
    assert api.send(api.event(), secret="another" if away == 0 else SECRET, at=at).status_code == 401
    assert api.client.post("/internal/events", json={"events": [api.event()]}).status_code == 401
    assert api.send(api.event(source_id="unknown")).status_code == 401
    assert api.waiting() == []


def test_events_of_an_inactive_tenant_are_refused_to_those_who_signed_them(api: Api) -> None:
    api.world.catalog.tenants.set_active(TENANT, False)
    body = json.dumps({"zen": "…"}).encode()
    signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "ping", "X-Hub-Signature-256": signature}
    for answer in (api.send(api.event()), api.client.post(f"/v1/sources/{SOURCE}/webhook", content=body, headers=headers)):
        assert (answer.status_code, answer.json()["detail"].partition(";")[0]) == (403, "tenant acme is inactive")
    assert api.send(api.event(), secret="another").status_code == 401
    assert api.waiting() == []


def test_a_source_without_a_secret_takes_no_events(api: Api) -> None:
    api.world.catalog.sources.add(source("open", settings={"root": "/open"}))
    assert api.send(api.event(source_id="open"), secret="").status_code == 401


def test_one_bad_event_refuses_no_other(api: Api) -> None:
    naive = api.event("a.md", event_time="2026-01-01T00:00:00")
    later = api.event("a.md", event_time=(api.world.catalog.now() + timedelta(hours=1)).isoformat())
    sent = (naive, later, api.event("../a.md"), api.event("a.md", op="acl"), 7, api.event("a.md", source_id="other"), api.event("good.md"))
    answer = api.send(*sent)  # type: ignore[arg-type]
    verdicts = answer.json()["events"]
    assert (answer.status_code, [each["accepted"] for each in verdicts]) == (202, [False] * 6 + [True])
    for verdict, word in zip(verdicts, ("timezone", "future", "no path", "acl_groups", "dictionary", "not signed"), strict=False):
        assert word in verdict["error"]
    assert [event.path for event in api.waiting()] == ["good.md"]


def test_a_batch_of_which_nothing_can_be_taken_is_refused(api: Api) -> None:
    answer = api.send(api.event("../a.md"))
    assert (answer.status_code, answer.json()["events"][0]["accepted"]) == (422, False)
    assert "../a.md" in answer.json()["detail"]


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "file:///handbook/../etc/passwd",
        "file:///handbook/%2e%2e/etc/passwd",
        "file:///handbook/%252e%252e/etc/passwd",
        "file://evil.example/handbook/a.md",
        "https://evil.example/handbook/a.md",
        "s3://handbook/a.md",
        "file:///handbook@evil.example/a.md",
    ],
)
def test_an_address_outside_the_sources_root_is_refused(api: Api, uri: str) -> None:
    assert api.send(api.event(content_uri=uri)).status_code == 422
    assert api.waiting() == []


def test_an_address_inside_it_is_taken(api: Api) -> None:
    assert api.send(api.event(content_uri="file:///handbook/a.md")).status_code == 202


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"events": []}', b'{"events": {}}', b'{"events": [1], "more": 1}', b"\xff"])
def test_what_is_no_batch_is_refused(api: Api, body: bytes) -> None:
    headers = {"X-Primer-Signature": f"t={int(api.world.catalog.now().timestamp())},v1=00"}
    assert api.client.post("/internal/events", content=body, headers=headers).status_code == 422


def test_a_removed_group_is_gone_when_the_answer_comes(api: Api) -> None:
    api.add_document(DOC, "a.md")
    at = api.world.catalog.now()
    groups = api.world.catalog.acls
    assert api.send(api.event(DOC, op="acl", acl_groups=["hr", "staff"])).status_code == 202
    [acl_id] = groups.open_to("acme", ["staff"])
    later = (at + timedelta(seconds=1)).isoformat()
    assert api.send(api.event("a.md", op="acl", acl_groups=["hr"], event_time=later)).status_code == 202
    assert (groups.open_to("acme", ["staff"]), groups.open_to("acme", ["hr"])) == (frozenset(), {acl_id})
    assert api.world.catalog.documents.by_id([DOC])[DOC].acl_id == acl_id


def test_an_upsert_may_tell_permissions_as_well(api: Api) -> None:
    api.add_document(DOC, "a.md")
    assert api.send(api.event("a.md", acl_groups=["hr"])).status_code == 202
    assert len(api.world.catalog.acls.open_to("acme", ["hr"])) == 1
    assert [event.op for event in api.waiting()] == [Operation.UPSERT]


def test_a_document_of_another_source_is_not_reached_by_its_id(api: Api) -> None:
    api.world.catalog.sources.add(source("other", settings={"root": "/other"}))
    api.add_document(DOC, "secret.md", "other")
    api.send(api.event(DOC, op="acl", acl_groups=["thief"]))
    assert api.world.catalog.acls.open_to("acme", ["thief"]) == frozenset()


def github(api: Api, source_id: str, event: str, body: bytes, secret: str = SECRET) -> tuple[int, dict[str, object]]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={digest}"}
    answer = api.client.post(f"/v1/sources/{source_id}/webhook", content=body, headers=headers)
    return answer.status_code, answer.json()


def test_a_trackers_own_webhook_becomes_an_event(api: Api) -> None:
    settings = {"url": "https://api.tracker.example/repos/o/n", "groups": ["support"]}
    api.world.catalog.sources.add(source("tracker", type="tickets", settings=settings, webhook_secret_ref="env:HANDBOOK_SECRET"))
    issue = {
        "number": 7, "title": "Pump", "state": "open", "html_url": "https://tracker.example/o/n/issues/7", "comments": 0, "body": "",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "user": {"login": "ann"}, "labels": [],
    }  # fmt: skip
    body = json.dumps({"action": "edited", "issue": issue}).encode()
    assert github(api, "tracker", "issues", body) == (202, {"accepted": 1, "duplicates": 0, "ignored": []})
    assert github(api, "tracker", "issues", body)[1]["duplicates"] == 1
    assert [(event.path, event.op) for event in api.waiting("tracker")] == [("7", Operation.UPSERT)]
    assert github(api, "tracker", "issues", body, "another")[0] == 401
    assert github(api, "unknown", "issues", body)[0] == 401
    assert github(api, "tracker", "ping", b"{}") == (202, {"accepted": 0, "duplicates": 0, "ignored": ["ping"]})
    assert github(api, "tracker", "issues", b"{")[0] == 422


def test_a_folder_has_no_webhook_of_its_own(api: Api) -> None:
    status, answer = github(api, SOURCE, "push", b"{}")
    assert (status, "/internal/events" in str(answer["detail"])) == (422, True)


def test_an_event_that_comes_while_its_source_is_read_waits_for_the_next_tick(api: Api) -> None:
    taken = api.world.catalog.sources.acquire(SOURCE, "a run", LEASE)
    assert taken is not None
    assert api.send(api.event()).status_code == 202
    api.world.catalog.sources.finish(SOURCE, taken[1], api.world.catalog.now(), None)
    assert api.world.catalog.events.due_sources() == [SOURCE]
