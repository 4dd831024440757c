"""A second index version through Dagster itself, with real tools: built beside live edits, judged, swapped, gone back from, and dropped."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import select, update

from primer.backfilling import Filling
from primer.definitions import build_defs
from primer.materialise import Materialiser
from primer_assets.partitions import INDEX_VERSION
from primer_core.backfills import BackfillReason, BackfillState
from primer_core.index_versions import VersionState
from primer_resources.catalog.backfills import Backfill
from primer_resources.catalog.schema import chunks, index_versions, jobs
from primer_resources.reader import Reader, SearchResult
from primer_resources.version_making import RecipeChange, begin_backfill
from tests.deployment import Deployment, workspace

TEXTS = {
    "leave.md": "# Parental leave\n\nParents have sixteen weeks of paid leave.\n\n# Notice\n\nTell your manager eight weeks before.",
    "travel.md": "# Travel\n\nTrains are booked by everybody; flights need an approval.",
    "radio.md": "# Radio gateway\n\nThe outdoor gateway costs 340 euro and has two antennas.",
}


class Versions(Deployment):
    """A deployment whose index versions come and go."""

    def overrides(self) -> dict[str, Any]:
        made = self.workspace
        return {"settings": made.settings, "catalog": made.catalog, "store": made.store, "toolkit": made.toolkit}

    def begin(self, target: str, reason: BackfillReason, **change: Any) -> Backfill:
        made = self.workspace
        begun = begin_backfill(made.catalog, made.settings, target, reason, RecipeChange(**change), None)
        made.add_partitions()
        return begun

    def fill(self, backfill: Backfill) -> Backfill:
        made = self.workspace
        materialiser = Materialiser(made.instance, self.overrides())
        return Filling(made.catalog, made.settings, materialiser, lambda *_: None).run(backfill.backfill_id)

    def launch(self, job: str, partition: str | None = None) -> dg.ExecuteInProcessResult:
        found = build_defs(self.overrides()).resolve_job_def(job)
        return found.execute_in_process(instance=self.workspace.instance, partition_key=partition, raise_on_error=False)

    def hits(self, query: str, version: str) -> list[SearchResult]:
        made = self.workspace
        which = made.catalog.deployments.version(version)
        reader = Reader(made.catalog, made.store, which, made.toolkit.of(which))
        return reader.search(query, made.settings.tenant, (self.name,), 10)

    def finds(self, query: str, version: str) -> list[str]:
        return [result.path for result in self.hits(query, version)]

    def passages(self, version: str) -> set[tuple[str, str]]:
        """(doc_id, hash of the words) of the passages that count."""
        with self.workspace.catalog.database.read() as connection:
            mine = select(chunks.c.doc_id, chunks.c.text_hash).where(chunks.c.index_version == version)
            return {(row.doc_id, row.text_hash) for row in connection.execute(mine)}

    def parsed(self, version: str) -> int:
        """How many parses the version's jobs made."""
        with self.workspace.catalog.database.read() as connection:
            return sum(connection.execute(select(jobs.c.parsed).where(jobs.c.index_version == version)).scalars())

    @property
    def live(self) -> str:
        return self.workspace.catalog.deployments.live().name


@pytest.fixture
def deployment(tmp_path: Path, tiny_model: Path) -> Iterator[Versions]:
    with workspace(tmp_path / "home", buckets=2, models_folder=tiny_model.parent) as made:
        deployment = Versions(made, tmp_path / "docs", "docs")
        for path, text in TEXTS.items():
            deployment.write(path, text)
        deployment.sync()
        yield deployment


def test_a_new_model_is_built_beside_live_edits_swapped_gone_back_from_and_what_it_replaced_is_dropped(
    deployment: Versions, tiny_model: Path
) -> None:
    made = deployment.workspace
    backfill = deployment.begin("v2", BackfillReason.EMBEDDING_MODEL, model=tiny_model.name)
    deployment.write("radio.md", "# Radio gateway\n\nThe outdoor gateway costs 360 euro now.")
    deployment.write("new.md", "# Bicycles\n\nA bicycle can be leased after six months.")
    (deployment.folder / "travel.md").unlink()
    refused = deployment.launch("promote", "v2")
    assert not refused.success
    assert deployment.live == "v1"

    deployment.sync()
    assert deployment.fill(backfill).state is BackfillState.FINISHED
    assert deployment.parsed("v2") <= 2, "only what changed meanwhile, and that once in either version"
    assert deployment.parsed("v1") + deployment.parsed("v2") == len(TEXTS) + 2
    assert deployment.passages("v2") == deployment.passages("v1")

    assert deployment.launch("promote", "v2").success
    assert deployment.live == "v2"
    assert set(deployment.finds("gateway", "v2")) == {"leave.md", "radio.md", "new.md"}
    assert [result.path for result in deployment.search("travel flights")].count("travel.md") == 0

    deployment.write("after.md", "# Pension\n\nThe pension begins at sixty-seven.")
    deployment.sync()
    assert deployment.launch("rollback").success
    assert deployment.live == "v1"
    assert deployment.finds("When does the pension begin?", "v1")[0] == "after.md"
    assert deployment.passages("v2") == deployment.passages("v1")

    assert deployment.launch("promote", "v2").success
    soon = update(index_versions).where(index_versions.c.name == "v1").values(retire_at=made.catalog.now())
    with made.catalog.database.begin() as connection:
        connection.execute(soon)
    asset = build_defs(deployment.overrides()).resolve_implicit_global_asset_job_def()
    dropped = asset.get_subset(asset_selection={dg.AssetKey("retired_versions")}).execute_in_process(instance=made.instance)
    assert dropped.success
    assert made.instance.get_dynamic_partitions(INDEX_VERSION) == ["v2"]
    assert made.catalog.deployments.version("v1").state is VersionState.RETIRED
    home = made.settings.home
    left = [path for folder in ("vectors", "keywords") for path in (home / folder).rglob("*") if "v1" in str(path.relative_to(home))]
    assert left == []
    assert len(list((home / "embeddings").glob("*.lance"))) == 1, "the vectors of the first model are gone"
    assert deployment.finds("When does the pension begin?", "v2")
    assert deployment.reconcile().agrees


def test_another_chunker_setting_gives_what_an_index_built_fresh_has(deployment: Versions, tmp_path: Path) -> None:
    backfill = deployment.begin("v2", BackfillReason.CHUNKER, max_tokens=32)
    weeks = " ".join(f"In week {number} pay goes on in full for all who are on leave." for number in range(1, 9))
    deployment.write("leave.md", TEXTS["leave.md"] + f"\n\n# Pay\n\n{weeks}")
    deployment.sync()
    deployment.fill(backfill)
    assert deployment.launch("promote", "v2").success
    with workspace(tmp_path / "fresh", buckets=2, chunk_max_tokens=32) as other:
        fresh = Versions(other, deployment.folder, "docs")
        fresh.sync()
        assert fresh.passages("v1") == deployment.passages("v2") != deployment.passages("v1")


def test_a_version_that_lost_passages_or_shows_what_is_restricted_is_refused_by_name(deployment: Versions) -> None:
    made = deployment.workspace
    golden = made.settings.home / "golden"
    golden.mkdir()
    question = {"id": "q-1", "question": "How much leave do parents get?", "path": "docs/leave.md", "format": "wiki"}
    (golden / "questions.jsonl").write_text(json.dumps({**question, "answer_substring": "sixteen weeks of paid leave"}))
    canary = {"path": "docs/radio.md", "text": "outdoor gateway antennas", "found_by": ["docs"], "hidden_from": ["public"]}
    (golden / "canaries.jsonl").write_text(json.dumps(canary))
    deployment.fill(deployment.begin("v2", BackfillReason.CHUNKER, max_tokens=64))
    version = made.catalog.deployments.version("v2")
    tools = made.toolkit.of(version)
    (lost,) = [hit for hit in deployment.hits("paid leave", "v2") if "sixteen" in hit.text]
    rows = [row for row in tools.vectors.row_ids() if row.startswith(lost.chunk_id)]
    tools.vectors.delete(rows)
    for bucket in ("00", "01"):
        tools.keywords.delete(bucket, rows)
    tools.keywords.close()
    found = made.catalog.sources.get("docs")
    made.catalog.sources.change(replace(found, settings={**found.settings, "groups": ["docs", "public"]}))
    deployment.sync()

    refused = deployment.launch("promote", "v2")
    assert not refused.success
    assert deployment.live == "v1"
    failed = {result.name: result.words for result in made.catalog.promotions.results("v2") if not result.passed}
    assert failed.keys() == {"indexes_agree", "golden_recall", "canaries"}
    assert "wiki: recall 0.000 against 1.000" in failed["golden_recall"]
    assert "lost q-1" in failed["golden_recall"]
    assert "public must not find it and does" in failed["canaries"]
