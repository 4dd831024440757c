"""primer/dagster.yaml: Dagster takes it, and it says what the rest of Primer counts on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance

from primer_resources.settings import load_settings
from primer_sensors.source_turns import HANGING
from tests.conftest import PROJECT

CONFIG = PROJECT / "primer" / "dagster.yaml"


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterInstance]:
    """The instance that a DAGSTER_HOME with this file in it gives."""
    home = tmp_path_factory.mktemp("dagster-home")
    shutil.copy(CONFIG, home)
    with DagsterInstance.from_config(str(home)) as instance:
        yield instance


def test_runs_and_pools_leave_room_for_what_the_sensors_keep_under_way_and_two_more(instance: DagsterInstance) -> None:
    concurrency = instance.get_concurrency_config()
    assert concurrency.run_queue_config is not None
    settings = load_settings()
    sensors = settings.sweep_ranges + len(("slow lane", "access lane")) + HANGING * settings.source_runs
    assert concurrency.run_queue_config.max_concurrent_runs == sensors + 2
    assert instance.run_coordinator.dequeue_interval_seconds == 1  # type: ignore[attr-defined]
    assert concurrency.pool_config.default_pool_limit == 2


def test_a_failed_step_is_not_retried_by_the_run_as_well(instance: DagsterInstance) -> None:
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == 2
    assert not instance.run_retries_retry_on_asset_or_op_failure


def test_a_killed_run_is_ended_and_gives_back_its_slots(instance: DagsterInstance) -> None:
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_max_runtime_seconds == 7200
    assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] == 60


def test_nothing_is_reported_home_and_the_page_is_not_covered(instance: DagsterInstance) -> None:
    assert not instance.telemetry_enabled
    assert not instance.nux_enabled


def test_everything_is_kept_below_dagster_home(instance: DagsterInstance) -> None:
    assert (Path(instance.root_directory) / "history").is_dir()
    assert (Path(instance.root_directory) / "schedules").is_dir()


def test_the_file_at_the_root_is_the_packaged_one() -> None:
    assert (PROJECT / "dagster.yaml").resolve() == CONFIG.resolve()


def test_the_workspace_and_the_project_name_the_same_module() -> None:
    workspace = yaml.safe_load((PROJECT / "workspace.yaml").read_text())
    assert workspace["load_from"] == [{"python_module": "primer.definitions"}]
    assert 'module_name = "primer.definitions"' in (PROJECT / "pyproject.toml").read_text()
