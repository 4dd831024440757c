"""The commands of the API: tokens, sources that tell of changes by webhook, events that need a person."""

from pathlib import Path

import pytest

from primer.workspace import open_workspace
from primer_core.failures import PrimerError
from primer_core.stages import Operation
from primer_resources.catalog.events import NewEvent
from tests.deployment import primer, primer_json


@pytest.fixture
def home(primer_home: Path) -> Path:
    assert primer("init")[0] == 0
    return primer_home


def test_tokens_are_made_listed_and_revoked(home: Path) -> None:
    made = primer_json("token", "add", "ci", "--role", "connector")["token"]
    [listed] = primer_json("token", "list")
    assert (listed["name"], listed["role"], listed["revoked_at"]) == ("ci", "connector", None)
    assert made not in primer("token", "list")[1]
    primer("token", "revoke", "ci")
    assert primer_json("token", "list")[0]["revoked_at"] is not None
    with pytest.raises(PrimerError, match="unknown or revoked"):
        primer("token", "revoke", "ci")


def test_a_source_that_tells_of_changes_by_webhook(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    with pytest.raises(PrimerError, match="secret that signs"):
        primer("source", "add", str(folder), "--groups", "a", "--sync", "webhook")
    with pytest.raises(PrimerError, match="by reference"):
        primer("source", "add", str(folder), "--groups", "a", "--sync", "webhook", "--webhook-secret", "hunter2")
    primer("source", "add", str(folder), "--groups", "a", "--sync", "webhook", "--webhook-secret", "env:DOCS")
    [shown] = primer_json("source", "list")
    assert (shown["sync"], shown["webhook_secret"]) == ("webhook", "env:DOCS")
    primer("source", "set", "docs", "--sync", "poll", "--poll", "5m")
    [shown] = primer_json("source", "list")
    assert (shown["sync"], shown["poll_interval_s"], shown["webhook_secret"]) == ("poll", 300, "env:DOCS")


def test_dead_events_are_listed_and_put_back(home: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    primer("source", "add", str(tmp_path / "docs"), "--groups", "a")
    with open_workspace() as workspace:
        catalog = workspace.catalog
        event = NewEvent("docs", "one", "a.md", None, Operation.UPSERT, "v1", None, None, catalog.now())
        catalog.inbox.receive(catalog.sources.get("docs"), [event])
        [waiting] = catalog.events.due("docs", catalog.now(), 0, 1)
        with catalog.database.begin() as connection:
            catalog.events.bury(connection, waiting.seq, "the source shows an older version")
    [dead] = primer_json("events", "dead")
    assert (dead["path"], dead["error"]) == ("a.md", "the source shows an older version")
    assert primer_json("events", "retry", str(dead["seq"])) == {"retried": 1}
    assert primer_json("events", "retry", "--all") == {"retried": 0}
    with pytest.raises(PrimerError, match="say which"):
        primer("events", "retry")
