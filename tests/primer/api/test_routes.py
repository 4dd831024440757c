"""Who may do what over HTTP, and what is answered."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from primer_core.coherence import DriveCoherence, MissingObject, Tally
from primer_core.failures import DocumentFault, Reason
from primer_core.ids import doc_id as doc_id_of
from primer_core.stages import FETCH, PARSE, Operation
from primer_core.stored_states import DriveKind
from primer_resources.catalog.jobs import NewJob
from primer_resources.catalog.tokens import Role
from tests.primer.api.conftest import Api
from tests.primer_resources.catalog.world import LEASE, SOURCE, TENANT, VERSION, drives_of, source

DOC = doc_id_of(SOURCE, "a.md")
ROUTES = [
    ("POST", "/v1/sources", Role.OPERATOR, {"tenant_id": TENANT, "type": "drive", "settings": {}}),
    ("POST", f"/v1/sources/{SOURCE}/sync", Role.CONNECTOR, {}),
    ("GET", f"/v1/docs/{DOC}/status", Role.READER, None),
    ("GET", "/v1/dead-letters", Role.READER, None),
    ("POST", "/v1/dead-letters/job-1/retry", Role.OPERATOR, None),
    ("GET", "/internal/admin/storage/coherence", Role.OPERATOR, None),
    ("GET", "/metrics", Role.READER, None),
]


@pytest.mark.parametrize(("method", "path", "least", "body"), ROUTES, ids=[f"{method} {path}" for method, path, *_ in ROUTES])
def test_each_route_asks_for_its_role(api: Api, method: str, path: str, least: Role, body: Any) -> None:
    bad = {"Authorization": "Bearer primer_0123456789abcdef_" + "x" * 43}
    assert api.request(method, path, None, json=body).status_code == 401
    assert api.request(method, path, None, json=body, headers=bad).status_code == 401
    assert api.request(method, path, None, json=body, headers={"Authorization": f"Basic {api.tokens[least]}"}).status_code == 401
    for role in Role:
        answer = api.request(method, path, role, json=body)
        assert (answer.status_code == 403) == (not role.may(least)), (role, answer.text)
        assert answer.status_code != 401


def test_a_revoked_token_is_no_token(api: Api) -> None:
    api.world.catalog.tokens.revoke(TENANT, "reader")
    answer = api.request("GET", "/metrics", Role.READER)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


def test_a_probe_needs_no_token(api: Api) -> None:
    assert api.request("GET", "/healthz", None).json() == {"status": "ok"}


def test_a_source_is_added_once(api: Api, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    wanted = {
        "tenant_id": TENANT, "type": "drive", "sync": "webhook", "webhook_secret_ref": "env:HANDBOOK_SECRET", "poll_interval_s": 60,
        "settings": {"root": str(folder), "groups": ["everyone"]},
    }  # fmt: skip
    answer = api.request("POST", "/v1/sources", json=wanted)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["source_id"], made["sync"], made["poll_interval_s"]) == ("docs", "webhook", 60)
    assert api.request("POST", "/v1/sources", json=wanted).status_code == 200
    assert api.world.catalog.sources.get("docs").settings["root"] == str(folder)


@pytest.mark.parametrize(
    ("changes", "status", "word"),
    [
        ({"tenant_id": "other"}, 403, "tenant"),
        ({"type": "fax"}, 422, "type"),
        ({"settings": {"root": "/nowhere", "groups": ["a"]}}, 422, "not a folder"),
        ({"settings": {}}, 422, "root"),
        ({"sync": "webhook"}, 422, "webhook"),
        ({"webhook_secret_ref": "hunter2"}, 422, "reference"),
        ({"credentials_ref": "hunter2", "type": "wiki", "settings": {"url": "https://x/y.git", "groups": ["a"]}}, 422, "reference"),
        ({"name": "Has Blanks"}, 422, "name"),
        ({"more": 1}, 422, "more"),
        ({"settings": {"root": "a\0b"}}, 422, "NUL"),
    ],
)
def test_a_source_that_is_not_valid_is_refused_with_the_reason(api: Api, changes: dict[str, Any], status: int, word: str) -> None:
    wanted = {"tenant_id": TENANT, "type": "drive", "settings": {"root": "/tmp", "groups": ["a"]}} | changes
    answer = api.request("POST", "/v1/sources", json=wanted)
    assert (answer.status_code, word in answer.json()["detail"]) == (status, True), answer.text
    assert "hunter2" not in answer.text


def test_a_sync_is_asked_for(api: Api) -> None:
    taken = api.world.catalog.sources.acquire(SOURCE, "a run", LEASE)
    assert taken is not None
    api.world.catalog.sources.finish(SOURCE, taken[1], api.world.catalog.now(), None)
    api.world.clock.moment = api.world.clock.moment.replace(minute=1)
    answer = api.request("POST", f"/v1/sources/{SOURCE}/sync", Role.CONNECTOR, json={"mode": "full"})
    assert (answer.status_code, answer.json()["mode"]) == (202, "full")
    found = api.world.catalog.sources.get(SOURCE)
    assert (found.asked_at, found.last_reconciled_at) == (api.world.catalog.now(), None)
    assert api.request("POST", "/v1/sources/none/sync", json={}).status_code == 404
    assert api.request("POST", f"/v1/sources/{SOURCE}/sync", json={"mode": "some"}).status_code == 422


def test_a_document_whose_new_version_died_has_its_old_one_indexed(api: Api) -> None:
    world, doc_id = api.world, api.world.document("a.md")
    world.index(doc_id, 1, ["c1", "c2"])
    world.advance(doc_id, 2, "two")
    with world.catalog.database.begin() as connection:
        job = NewJob(doc_id, SOURCE, "v2", None, "00", "fast", Operation.UPSERT, world.catalog.now())
        world.catalog.dead_letters.add(connection, job, [VERSION], "fetch", DocumentFault(Reason.ENCRYPTED, "it needs a password"))
    answer = api.request("GET", f"/v1/docs/{doc_id}/status", Role.READER).json()
    assert (answer["outcome"], answer["stage"], answer["reason"]) == ("dead", "dead_letter", "encrypted")
    assert answer["error"] == "it needs a password"
    assert (answer["source_version"], answer["indexed_version"], answer["chunks"]) == ("v2", "v1", 2)
    assert answer["indexed_at"] == world.catalog.now().isoformat().replace("+00:00", "Z")


def test_the_status_of_a_document(api: Api) -> None:
    api.add_document(DOC, "a.md")
    answer = api.request("GET", f"/v1/docs/{DOC}/status", Role.READER).json()
    assert (answer["doc_id"], answer["stage"], answer["chunks"], answer["indexed_version"]) == (DOC, "pending", 0, None)
    assert answer["outcome"] is None
    assert api.request("GET", f"/v1/docs/{'0' * 32}/status", Role.READER).status_code == 404
    assert api.request("GET", "/v1/docs/..%2f..%2fetc/status", Role.READER).status_code in (404, 422)


def add_dead(api: Api, count: int, stage: str) -> None:
    catalog = api.world.catalog
    for number in range(count):
        doc_id = doc_id_of(SOURCE, f"{stage}{number}")
        api.add_document(doc_id, f"{stage}{number}.md")
        job = NewJob(doc_id, SOURCE, "v1", None, "00", "fast", Operation.UPSERT, catalog.now())
        with catalog.database.begin() as connection:
            catalog.dead_letters.add(connection, job, [VERSION], stage, DocumentFault(Reason.CORRUPT, "it is broken"))


def test_dead_letters_come_page_by_page_documents_first(api: Api) -> None:
    add_dead(api, 3, PARSE.name)
    api.send(api.event("e.md"), api.event("f.md"))
    with api.world.catalog.database.begin() as connection:
        for event in api.waiting():
            api.world.catalog.events.bury(connection, event.seq, "the source shows an older version")
    found, cursor = [], None
    for _ in range(4):
        params = {"source_id": SOURCE, "limit": "2"} | ({} if cursor is None else {"cursor": cursor})
        page = api.request("GET", "/v1/dead-letters", Role.READER, params=params).json()
        found += [item["kind"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == ["document"] * 3 + ["event"] * 2
    assert page["items"][0]["error"] == "the source shows an older version"
    assert api.request("GET", "/v1/dead-letters", Role.READER, params={"source_id": "none"}).status_code == 404


def test_a_dead_letter_is_put_back(api: Api) -> None:
    add_dead(api, 1, PARSE.name)
    add_dead(api, 1, FETCH)
    letters = {item["stage"]: item["id"] for item in api.request("GET", "/v1/dead-letters").json()["items"]}
    assert api.request("POST", f"/v1/dead-letters/{letters['parse']}/retry").json()["waits_for"] == "sweep"
    assert api.request("POST", f"/v1/dead-letters/{letters['parse']}/retry").status_code == 404
    assert api.request("POST", f"/v1/dead-letters/{letters['fetch']}/retry").json()["waits_for"] == "sync"
    assert api.world.catalog.sources.get(SOURCE).asked_at is not None
    api.send(api.event())
    [event] = api.waiting()
    with api.world.catalog.database.begin() as connection:
        api.world.catalog.events.bury(connection, event.seq, "no")
    assert api.request("POST", f"/v1/dead-letters/event-{event.seq}/retry").status_code == 202
    assert api.waiting() != []


def test_what_is_of_another_tenant_is_not_there(api: Api) -> None:
    catalog = api.world.catalog
    catalog.tenants.add("rival", drives_of("rival"))
    catalog.sources.add(source("rivals", tenant_id="rival", settings={"root": "/rivals"}))
    api.add_document(DOC, "a.md", "rivals")
    assert api.request("POST", "/v1/sources/rivals/sync", json={}).status_code == 404
    assert api.request("GET", f"/v1/docs/{DOC}/status").status_code == 404
    assert api.request("GET", "/v1/dead-letters", params={"source_id": "rivals"}).status_code == 404
    assert "rivals" not in api.request("GET", "/metrics").text
    wanted = {"tenant_id": TENANT, "type": "drive", "name": "rivals", "settings": {"root": "/tmp", "groups": ["a"]}}
    assert "is taken" in api.request("POST", "/v1/sources", json=wanted).json()["detail"]


def test_an_inactive_tenants_tokens_are_refused_until_it_is_active_again(api: Api) -> None:
    asks = [("GET", "/metrics"), ("GET", "/v1/dead-letters"), ("POST", f"/v1/sources/{SOURCE}/sync")]
    api.world.catalog.tenants.set_active(TENANT, False)
    for method, path in asks:
        answer = api.request(method, path, **({"json": {}} if method == "POST" else {}))
        assert (answer.status_code, answer.json()["detail"]) == (403, "tenant acme is inactive; ask whoever runs Primer to activate it")
    assert api.request("GET", "/metrics", None).status_code == 401
    assert api.world.catalog.sources.get(SOURCE).asked_at is None
    api.world.catalog.tenants.set_active(TENANT, True)
    assert api.request("GET", "/metrics").status_code == 200


def test_figures_for_a_monitor(api: Api) -> None:
    add_dead(api, 2, PARSE.name)
    api.send(api.event())
    text = api.request("GET", "/metrics", Role.READER).text
    assert 'primer_dead_letters{reason="corrupt"} 2.0' in text
    assert f'primer_events_waiting{{source="{SOURCE}"}} 1.0' in text
    assert f'primer_source_failing{{source="{SOURCE}"}} 0.0' in text


def test_a_name_is_free_again_once_its_token_is_revoked(api: Api) -> None:
    tokens = api.world.catalog.tokens
    tokens.revoke(TENANT, "reader")
    assert tokens.check(tokens.add(TENANT, "reader", Role.CONNECTOR)) is not None
    assert [(each.name, each.revoked_at is None) for each in tokens.all(TENANT) if each.name == "reader"].count(("reader", True)) == 1


def test_coherence_is_the_newest_look_at_the_drives_of_the_tokens_tenant(api: Api) -> None:
    catalog, at = api.world.catalog, api.world.catalog.now()
    nothing = api.request("GET", "/internal/admin/storage/coherence").json()
    assert (nothing["drives"], nothing["severity"], nothing["present_share"]) == ([], "warn", 1.0)
    gone = MissingObject("ab/key", "0f" * 32, "chunks", "c1", "doc-1")
    look = DriveCoherence(
        TENANT, DriveKind.PIPELINE, "/p", at, 7, 70, Tally(2, 9, ("k1", "k2")), checked=4, missing=1, missing_sample=(gone,)
    )
    for each in (look, replace(look, kind=DriveKind.INTAKE, orphans=Tally(), missing=0, missing_sample=())):
        catalog.coherence.keep(each)
    catalog.tenants.add("rival", drives_of("rival"))
    catalog.coherence.keep(replace(look, tenant_id="rival", fault="gone"))
    answer = api.request("GET", "/internal/admin/storage/coherence")
    found = answer.json()
    assert (answer.status_code, found["tenant_id"], found["severity"], found["present_share"]) == (200, TENANT, "error", 0.875)
    assert len(found["reasons"]) == 2
    intake, pipeline = found["drives"]
    assert (intake["drive"], intake["missing"], pipeline["drive"], pipeline["missing"]) == ("intake", 0, "pipeline", 1)
    assert pipeline["orphans"] == {"count": 2, "bytes": 9, "sample": ["k1", "k2"]}
    assert pipeline["missing_sample"][0]["doc_id"] == "doc-1"
    assert (pipeline["objects"], pipeline["bytes"], pipeline["checked"], pipeline["fault"]) == (7, 70, 4, None)
