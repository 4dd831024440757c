"""Real edits replayed through the git wiki connector and the whole main job: what they leave is what a fresh index of the last pages holds.

A few edits by default. `--edits k8s:1-150` replays more, `--edits httpd` all of a history, and prints what each cost.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from primer.materialise import Materialiser
from primer.syncing import Syncing, SyncResult
from primer.workspace import Workspace
from primer_core.chunks import Chunk
from primer_resources.catalog.sources import Source
from tests.deployment import workspace
from tests.git_history import EditHistory, HistoryRepo

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
        """Add the repository as a source."""
        settings = {"url": str(self.repo.folder), "groups": [name], "suffixes": ["*"]}
        self.made.catalog.sources.add(Source(name, self.made.settings.tenant, "main", "wiki", settings, "poll", 20))
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
        live = self.made.catalog.lookup.chunk_ids(document.doc_id, version.name)
        if not live:
            return {}
        recipe = version.recipe
        chunks = self.made.store.get_chunks(document.content_hash, recipe.parser.version, recipe.chunker.version)
        by_id = {chunk.id_in(document.doc_id): chunk for chunk in chunks}
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


@pytest.mark.timeout(7200)
def test_real_edits_in_order_leave_what_a_fresh_index_of_the_last_pages_holds(
    corpus: Path, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    name, _, span = str(request.config.getoption("--edits")).partition(":")
    first, _, last = (span or f"1-{10**9}").partition("-")
    history = EditHistory(corpus / "edits" / name, int(first), int(last), touched_only=bool(span))
    repo = HistoryRepo(tmp_path / "wiki.git")
    history.start(repo)
    with workspace(tmp_path / "home", buckets=1) as made:
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
        report = (
            f"{name}: {edits} events ({front_matter} commits of front matter only), {replay.embedded} strings embedded; words again: "
            f"{replay.words_new / max(1, replay.words_all):.3f} pooled, {sum(replay.shares) / max(1, len(replay.shares)):.3f} mean of "
            f"{len(replay.shares)} edits"
        )
        replay.add("fresh")
        assert replay.sync("fresh").counts["embedded"] == 0, "the final pages hold strings that no edit embedded"
        assert replay.texts("wiki") == replay.texts("fresh")
        with made.catalog.database.read() as connection:
            paths = Counter(row.path for row in connection.exec_driver_sql(
                "SELECT path FROM documents WHERE source_id = 'wiki' AND deleted_at IS NULL"))  # fmt: skip
        assert set(paths.values()) == {1}
        assert set(paths) == set(repo.contents())
        reconciled = made.catalog.deployments.live()
        from primer.reconciling import reconcile

        assert reconcile(made.catalog, reconciled, made.toolkit.of(reconciled)).agrees
    assert edits
    with capsys.disabled():
        print(f"\n{report}")  # noqa: T201 - the figures are what the longer replays are for
