"""The jobs on index versions that people launch in the UI say what is wrong in their own words, and do what the commands do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from primer.definitions import build_defs
from primer_assets.partitions import INDEX_VERSION
from tests.deployment import Deployment, workspace


@pytest.fixture
def docs(tmp_path: Path) -> Iterator[Deployment]:
    with workspace(tmp_path / "home", buckets=2) as made:
        yield Deployment(made, tmp_path / "docs", "docs")


def launch(docs: Deployment, job: str, config: dict[str, Any] | None = None) -> dg.ExecuteInProcessResult:
    made = docs.workspace
    overrides = {"settings": made.settings, "catalog": made.catalog, "store": made.store, "toolkit": made.toolkit}
    run_config = {"ops": {"open_and_fill": {"config": config}}} if config else {}
    return build_defs(overrides).resolve_job_def(job).execute_in_process(run_config, instance=made.instance, raise_on_error=False)


def words(result: dg.ExecuteInProcessResult) -> str:
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    data = failed.step_failure_data.user_failure_data
    assert data is not None
    return str(data.description)


def test_backfill_start_makes_the_version_its_partition_and_its_backfill(docs: Deployment) -> None:
    assert launch(docs, "backfill_start", {"target": "v2", "reason": "CHUNKER", "max_tokens": 64, "max_docs_per_s": 5.0}).success
    assert docs.workspace.catalog.deployments.version("v2").recipe.chunker.max_tokens == 64
    assert sorted(docs.workspace.instance.get_dynamic_partitions(INDEX_VERSION)) == ["v1", "v2"]
    (begun,) = docs.workspace.catalog.backfills.running()
    assert (begun.index_version, begun.max_docs_per_s) == ("v2", 5.0)
    again = launch(docs, "backfill_start", {"target": "v2", "reason": "CHUNKER"})
    assert "is running already" in words(again)


def test_a_rollback_with_nothing_behind_it_says_so_once(docs: Deployment) -> None:
    assert "there is no version to go back to" in words(launch(docs, "rollback"))
