"""`POST /v1/replays`: a line a candidate and the totals at the end; nothing is done unless it is asked for, nor for another tenant."""

import json
from typing import Any

from sqlalchemy import func, select

from primer_core.lanes import Lane
from primer_core.part_keys import chunk_set
from primer_core.stored_states import PartEntry, PartState, WrittenBy, pipeline_state
from primer_resources.catalog.replays import Replays
from primer_resources.catalog.schema import jobs
from primer_resources.catalog.tokens import Role
from tests.primer.api.conftest import Api
from tests.primer_resources.catalog.world import HASHES, RECIPE, SOURCE, TENANT, drives_of

NDJSON = "application/x-ndjson"


def fill(api: Api) -> tuple[str, str]:
    """Two indexed documents; of the second one nothing is kept. Returns their doc_ids."""
    world = api.world
    made = []
    for path, content in (("a.md", "one"), ("b.md", "two")):
        world.content(content, Lane.FAST)
        made.append(world.document(path, content=content))
        world.index(made[-1], 1, [f"chunk of {path}"], content)
    by = WrittenBy("chunk", "run", RECIPE.chunker.version)
    entry = PartEntry(*chunk_set(RECIPE.chunker.version), PartState.PRESENT, 1, "aa", world.catalog.now(), "ab/key", by)
    world.catalog.states.save(pipeline_state(TENANT, HASHES["one"], RECIPE.parser.version), HASHES["one"], [entry])
    return made[0], made[1]


def ask(api: Api, role: Role = Role.OPERATOR, **body: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    answer = api.request("POST", "/v1/replays", role, json={"to_stage": "embed", **body})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, NDJSON), answer.text
    *lines, last = [json.loads(line) for line in answer.text.splitlines()]
    return lines, last


def job_count(api: Api) -> int:
    with api.world.catalog.database.read() as connection:
        return connection.execute(select(func.count()).select_from(jobs)).scalar_one()


def test_it_tells_of_each_candidate_and_of_all_and_does_nothing_unless_asked(api: Api) -> None:
    kept, lost = fill(api)
    before = job_count(api)
    lines, last = ask(api, source_id=SOURCE)
    assert {each["doc_id"]: (each["verdict"], each["action"]) for each in lines} == {
        kept: ("replayable", "job"),
        lost: ("source_receipt", "fetch"),
    }
    assert last["totals"]["verdicts"] == {"replayable": 1, "source_receipt": 1, "body_missing": 0}
    assert (last["totals"]["applied"], job_count(api)) == (False, before)

    lines, last = ask(api, doc_ids=[kept], dry_run=False)
    assert [each["doc_id"] for each in lines] == [kept]
    assert (last["totals"]["applied"], last["totals"]["actions"]["job"], job_count(api)) == (True, 1, before + 1)
    assert ask(api, doc_ids=[kept], dry_run=False)[1]["totals"]["actions"]["under_way"] == 1

    ask(api, doc_ids=[lost], dry_run=False)
    assert api.world.row_of(lost).fetch_again
    assert api.world.catalog.sources.get(SOURCE).asked_at is not None


def test_selectors_are_anded_and_one_is_needed(api: Api) -> None:
    kept, lost = fill(api)
    ended = api.world.catalog.ledger.of([kept], "v1")[kept].ended_at.isoformat()
    assert len(ask(api, since=ended, outcome="indexed", index_version="v1")[0]) == 2
    assert ask(api, until=ended)[0] == []
    assert ask(api, doc_ids=[lost], outcome="dead")[0] == []
    bare = api.request("POST", "/v1/replays", json={"to_stage": "embed"})
    assert bare.status_code == 422
    assert "say which documents" in bare.json()["detail"]


def test_only_an_operator_may_and_only_of_his_own_tenant(api: Api) -> None:
    kept, _ = fill(api)
    assert api.request("POST", "/v1/replays", Role.CONNECTOR, json={"to_stage": "embed", "doc_ids": [kept]}).status_code == 403
    catalog = api.world.catalog
    catalog.tenants.add("rival", drives_of("rival"))
    token = catalog.tokens.add("rival", "theirs", Role.OPERATOR)
    headers = {"Authorization": f"Bearer {token}"}
    theirs = api.client.post("/v1/replays", headers=headers, json={"to_stage": "embed", "doc_ids": [kept], "dry_run": False})
    assert [json.loads(line).keys() for line in theirs.text.splitlines()] == [{"totals"}]
    named = {"to_stage": "embed", "source_id": SOURCE}
    assert api.client.post("/v1/replays", headers=headers, json=named).status_code == 404
    assert api.request("POST", "/v1/replays", json={"to_stage": "embed", "index_version": "v9"}).status_code == 404


def test_an_error_after_the_first_line_is_the_last_line(api: Api, monkeypatch: Any) -> None:
    from primer_core.failures import SystemFault

    fill(api)

    def fail(*_: Any) -> None:
        raise SystemFault("the catalog is gone")

    monkeypatch.setattr(Replays, "look", fail)
    assert ask(api, source_id=SOURCE) == ([], {"error": "the catalog is gone"})
