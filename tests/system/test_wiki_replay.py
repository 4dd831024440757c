"""Real edits replayed through the git wiki connector and the whole main job: what they leave is what a fresh index of the last pages holds.

Once in order, each commit followed by a sync; and once told by webhooks that come late, shuffled and twice. A few edits by default.
`--edits k8s:1-150` replays more, `--edits httpd` all of a history, `httpd:1-999` so without the pages that no edit touches; each prints
what it cost. `--vectors` and `--told-together` make long ones shorter.
"""

import hmac
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from primer.api.app import make_app
from primer.materialise import Materialiser
from primer.syncing import Syncing, SyncResult
from primer.workspace import Workspace
from primer_core.chunks import Chunk
from primer_resources.catalog.schema import documents
from primer_resources.catalog.sources import Source
from primer_resources.reconciling import reconcile
from tests.deployment import workspace
from tests.git_history import EditHistory, HistoryRepo

SECRET = "the secret of the wiki"
FRONT_MATTER = re.compile(rb"\A---\r?\n.*?\r?\n---\r?\n", re.DOTALL)


@dataclass
class Replay:
    """A wiki in a deployment, and what its edits cost so far. Words are those of the strings that the model sees."""

    made: Workspace
    repo: HistoryRepo
    chunks: dict[str, dict[str, Chunk]] = field(default_factory=dict)
    words_new: int = 0
    words_all: int = 0
    shares: list[float] = field(default_factory=list)
    embedded: int = 0

    def add(self, name: str) -> None:
        """Add the repository as a source, with a library of its own: equal contents of one library are indexed once."""
        settings = {"url": str(self.repo.folder), "groups": [name], "suffixes": ["*"]}
        self.made.catalog.sources.add(Source(name, self.made.settings.tenant, name, "wiki", settings, "poll", 20))
        self.made.add_partitions()

    def sync(self, name: str) -> SyncResult:
        """Sync one source to the end."""
        made = self.made
        resources = {"settings": made.settings, "catalog": made.catalog, "store": made.store, "toolkit": made.toolkit}
        result = Syncing(made.catalog, made.settings, Materialiser(made.instance, resources), lambda *_: None).run([name])[0]
        assert result.error is None, result.error
        return result

    def chunks_at(self, name: str, path: str) -> dict[str, Chunk]:
        """chunk_id → chunk of what is live at a path; the catalog and the store must agree on it."""
        version = self.made.catalog.deployments.live()
        document = self.made.catalog.documents.by_path(name, [path]).get(path)
        if document is None or document.content_hash is None:
            return {}
        leading = document.canonical_doc_id  # two pages may hold the same
        live = self.made.catalog.lookup.chunk_ids(leading, version.name)
        if not live:
            return {}
        recipe = version.recipe
        chunks = self.made.store.of(self.made.settings.tenant).get_chunks(
            document.content_hash, recipe.parser.version, recipe.chunker.version
        )
        by_id = {chunk.id_in(leading): chunk for chunk in chunks}
        assert set(by_id) == set(live), path
        return by_id

    def measure(self, event: Mapping[str, Any]) -> None:
        """Count what the edit of one page embeds again."""
        before = self.chunks.pop(event.get("old_path") or event["path"], {})
        after = self.chunks_at("wiki", event["path"])
        self.chunks[event["path"]] = after
        if event["op"] not in ("modify", "rename") or not after:
            return
        words = {chunk_id: len(chunk.embed_text.split()) for chunk_id, chunk in after.items()}
        new = sum(count for chunk_id, count in words.items() if chunk_id not in before)
        self.words_new, self.words_all = self.words_new + new, self.words_all + sum(words.values())
        self.shares.append(new / max(1, sum(words.values())))

    def texts(self, name: str) -> dict[str, list[tuple[str, int]]]:
        """path → keys and ordinals of the live chunks: an index's content, whatever its documents are called."""
        return {path: sorted((chunk.key, chunk.ordinal) for chunk in self.chunks_at(name, path).values()) for path in self.repo.contents()}


def changes_front_matter_only(history: EditHistory, events: list[dict[str, Any]]) -> bool:
    """Whether a commit's edits leave the text of every page as it was."""
    if any(event["op"] != "modify" for event in events):
        return False
    pairs = [(history.data(event["before"]), history.data(event["after"])) for event in events]
    return all(FRONT_MATTER.sub(b"", before) == FRONT_MATTER.sub(b"", after) for before, after in pairs)


def check_as_fresh(replay: Replay) -> None:
    """The wiki's index is what one made afresh of the last pages is: ids and texts, every page once, and all three id sets agree."""
    made = replay.made
    replay.add("fresh")
    assert replay.sync("fresh").counts["embedded"] == 0, "the final pages hold strings that no edit embedded"
    assert replay.texts("wiki") == replay.texts("fresh")
    with made.catalog.database.read() as connection:
        living = select(documents.c.path).where(documents.c.source_id == "wiki", documents.c.deleted_at.is_(None))
        paths = Counter(connection.execute(living).scalars())
    assert set(paths.values()) == {1}
    assert set(paths) == set(replay.repo.contents())
    version = made.catalog.deployments.live()
    assert reconcile(made.catalog, version, made.toolkit.of(version)).agrees


@pytest.fixture
def history(corpus: Path, request: pytest.FixtureRequest) -> EditHistory:
    """The edits that `--edits` names."""
    name, _, span = str(request.config.getoption("--edits")).partition(":")
    first, _, last = (span or f"1-{10**9}").partition("-")
    return EditHistory(corpus / "edits" / name, int(first), int(last), touched_only=bool(span))


def begin_with_vectors(made: Workspace, folder: str | None) -> None:
    """Copy an embedding cache, which spares a long replay the embedding of its first pages."""
    if folder is not None:
        shutil.copytree(folder, made.settings.home / "embeddings", dirs_exist_ok=True)


@pytest.mark.timeout(7200)
def test_real_edits_in_order_leave_what_a_fresh_index_of_the_last_pages_holds(
    history: EditHistory, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    repo = HistoryRepo(tmp_path / "wiki.git")
    history.start(repo)
    with workspace(tmp_path / "home", buckets=1) as made:
        begin_with_vectors(made, request.config.getoption("--vectors"))
        replay = Replay(made, repo)
        replay.add("wiki")
        replay.sync("wiki")
        replay.chunks = {path: replay.chunks_at("wiki", path) for path in repo.contents()}
        edits = front_matter = 0
        for events in history.commits(repo):
            counts = replay.sync("wiki").counts
            assert counts["held"] == 0
            edits += len(events)
            replay.embedded += counts["embedded"]
            for event in events:
                replay.measure(event)
            if changes_front_matter_only(history, events):
                front_matter += 1
                assert counts["embedded"] == 0, events
        pooled, mean = replay.words_new / max(1, replay.words_all), sum(replay.shares) / max(1, len(replay.shares))
        report = (
            f"{history.folder.name}: {edits} events ({front_matter} commits of front matter only), {replay.embedded} strings embedded; "
            f"words again: {pooled:.3f} pooled, {mean:.3f} mean of {len(replay.shares)} edits"
        )
        check_as_fresh(replay)
    assert edits
    with capsys.disabled():
        print(f"\n{report}")  # noqa: T201 - the figures are what the longer replays are for


def push_of(commit: str, at: datetime, events: Sequence[Mapping[str, Any]]) -> bytes:
    """The body of the webhook that a git service sends for one commit."""
    kinds: dict[str, list[str]] = {"added": [], "modified": [], "removed": []}
    for event in events:
        place = {"add": "added", "rename": "added", "delete": "removed"}.get(event["op"], "modified")
        kinds[place].append(event["path"])
        if event["op"] == "rename":
            kinds["removed"].append(event["old_path"])
    return json.dumps({"ref": "refs/heads/main", "commits": [{"id": commit, "timestamp": at.isoformat(), **kinds}]}).encode()


@pytest.mark.timeout(7200)
def test_real_edits_told_late_shuffled_and_twice_leave_the_same(
    history: EditHistory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    together = request.config.getoption("--told-together")
    monkeypatch.setenv("WIKI_SECRET", SECRET)
    random = Random(7)
    repo = HistoryRepo(tmp_path / "wiki.git")
    history.start(repo)
    with workspace(tmp_path / "home", buckets=1) as made, TestClient(make_app(made.settings, made.catalog)) as client:
        begin_with_vectors(made, request.config.getoption("--vectors"))
        replay = Replay(made, repo)
        replay.add("wiki")
        wiki = replace(made.catalog.sources.get("wiki"), sync="webhook", webhook_secret_ref="env:WIKI_SECRET")
        made.catalog.sources.change(wiki)
        replay.sync("wiki")
        untold: list[bytes] = []
        accepted = duplicates = edits = 0
        for number, events in enumerate(history.commits(repo), start=1):
            assert repo.head is not None
            edits += len(events)
            untold += [push_of(repo.head.decode(), datetime.fromisoformat(events[0]["time"]), events)] * 2
            if number % together == 0:
                random.shuffle(untold)
                late = len(untold) // 2
                for body in untold[late:]:
                    answer = tell(client, body)
                    accepted, duplicates = accepted + answer["accepted"], duplicates + answer["duplicates"]
                del untold[late:]
                replay.sync("wiki")
        for body in random.sample(untold, len(untold)):
            answer = tell(client, body)
            accepted, duplicates = accepted + answer["accepted"], duplicates + answer["duplicates"]
        replay.sync("wiki")
        assert accepted == duplicates > 0
        waiting = {event.path for event in made.catalog.events.due("wiki", made.catalog.now(), 0, 10_000)}
        assert not waiting & set(repo.contents()), "events wait although the wiki shows what they told of"
        check_as_fresh(replay)
    with capsys.disabled():
        print(f"\n{history.folder.name}: {edits} edits told by {accepted} events and {duplicates} duplicates")  # noqa: T201 - as above


def tell(client: TestClient, body: bytes) -> dict[str, int]:
    """Send one webhook, signed as a git service signs it."""
    signature = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
    response = client.post("/v1/sources/wiki/webhook", content=body, headers={"X-Hub-Signature-256": f"sha256={signature}"})
    assert response.status_code == 202, response.text
    told: dict[str, int] = response.json()
    return told
