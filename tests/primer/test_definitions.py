"""Definitions load whole, with names and descriptions for the person who watches them, and light: no model, no parser, no index."""

import subprocess
import sys

import dagster as dg
import pytest

from primer.definitions import build_defs

ASSETS = (
    *("source_documents", "parsed_elements", "slow_parsed_elements", "chunks", "embeddings"),
    *("vector_index", "keyword_index", "indexed_documents", "access_rows", "purged_documents"),
    *("index_version", "serving_alias", "retired_versions"),
    *("parse_quality", "freshness_report", "stored_objects", "body_policies"),
)


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return build_defs().get_repository_def()


def test_every_asset_has_a_group_a_description_and_its_place_in_the_graph(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    assert {key.to_user_string() for key in graph.materializable_asset_keys} == set(ASSETS)
    for name in ASSETS:
        node = graph.get(dg.AssetKey(name))
        assert node.description
        assert node.group_name in {"sources", "documents", "indexes", "versions", "store", "reports"}
    assert graph.get(dg.AssetKey("indexed_documents")).parent_keys == {dg.AssetKey("vector_index"), dg.AssetKey("keyword_index")}
    assert graph.get(dg.AssetKey("parsed_elements")).parent_keys == {dg.AssetKey("source_documents")}


def test_the_grid_is_bucket_by_index_version(repository: dg.RepositoryDefinition) -> None:
    grid = repository.asset_graph.get(dg.AssetKey("chunks")).partitions_def
    assert isinstance(grid, dg.MultiPartitionsDefinition)
    assert [dimension.name for dimension in grid.partitions_defs] == ["bucket", "index_version"]


def test_indexed_documents_says_when_it_is_stale(repository: dg.RepositoryDefinition) -> None:
    assert repository.assets_defs_by_key[dg.AssetKey("indexed_documents")].specs_by_key[dg.AssetKey("indexed_documents")].freshness_policy


def test_the_sensors_run_from_the_start(repository: dg.RepositoryDefinition) -> None:
    assert {sensor.name: sensor.default_status for sensor in repository.sensor_defs} == {
        "source_sync_sensor": dg.DefaultSensorStatus.RUNNING,
        "index_sweep_sensor": dg.DefaultSensorStatus.RUNNING,
        "slow_parse_sensor": dg.DefaultSensorStatus.RUNNING,
        "access_sensor": dg.DefaultSensorStatus.RUNNING,
        "backfill_sensor": dg.DefaultSensorStatus.RUNNING,
        "purge_sensor": dg.DefaultSensorStatus.RUNNING,
        "pulse_sensor": dg.DefaultSensorStatus.RUNNING,
    }
    running = dg.DefaultScheduleStatus.RUNNING
    names = ("freshness_schedule", "stored_objects_schedule", "body_policies_schedule", "retired_versions_schedule")
    assert {each.name: each.default_status for each in repository.schedule_defs} == dict.fromkeys(names, running)
    assert all(each.description for each in (*repository.sensor_defs, *repository.schedule_defs))


def test_runs_that_the_sensors_launch_make_no_checks(repository: dg.RepositoryDefinition) -> None:
    """`pulse_sensor` reports them; in every sweep they would be one step more."""
    graph = repository.asset_graph
    assert {key.name for key in graph.asset_check_keys} == {
        *("sources_in_step", "changes_in_time", "coherent"),
        *("indexes_agree", "documents_agree", "rows_indexed", "index_size", "golden_recall", "canaries"),
    }
    jobs = [job for job in repository.get_all_jobs() if "sensor" in job.name]
    assert len(jobs) >= 4
    steps = {name for job in jobs for name in job.graph.node_names()}
    assert not {name for name in steps if name.endswith(("in_step", "in_time"))}


def test_an_override_replaces_one_resource_and_keeps_the_rest() -> None:
    calls: list[str] = []
    resources = build_defs({"checkpoint": calls.append}).resources or {}
    assert resources["checkpoint"] == calls.append
    assert {"settings", "catalog", "store", "toolkit", "connectors"} <= set(resources)


def test_loading_imports_nothing_heavy() -> None:
    script = (
        "import sys, primer.definitions\n"
        "heavy = {'torch', 'docling', 'docling_core', 'lancedb', 'tantivy', 'sentence_transformers', 'transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)
