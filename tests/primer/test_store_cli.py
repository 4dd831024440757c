"""`primer store reconcile` as a person and a script use it, and the asset and check that say the same in Dagster."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from primer.workspace import Workspace
from primer_assets.stored_objects import coherent, stored_objects
from primer_core.drives import DriveSpec
from primer_core.failures import PrimerError
from primer_core.stored_states import DriveKind
from primer_resources.settings import load_settings
from tests.deployment import primer, primer_json
from tests.shelves import Shelves

INTAKE, PIPELINE = DriveKind.INTAKE, DriveKind.PIPELINE


@pytest.fixture
def workspace(home: Path) -> Iterator[Workspace]:
    made = Workspace(load_settings())
    yield made
    made.close()


@pytest.fixture
def shelves(workspace: Workspace, home: Path, tmp_path: Path) -> Shelves:
    """The drives of the deployment's tenant, with two documents."""
    specs = {kind: DriveSpec(str(home / "store" / kind)) for kind in DriveKind}
    made = Shelves(workspace.catalog, "default", specs, tmp_path)
    for name in ("one", "two"):
        made.document(name)
    return made


def plant(shelves: Shelves, kind: DriveKind, key: str) -> None:
    """An object of nobody, a day old."""
    shelves.drive(kind).create(key, b"nobody's")
    path = Path(shelves.drive(kind).place) / key
    then = path.stat().st_mtime - 86_400
    os.utime(path, (then, then))


def checked(workspace: Workspace) -> tuple[dg.ExecuteInProcessResult, dg.AssetCheckEvaluation]:
    """The asset and its check, made once."""
    made = dg.materialize(
        [stored_objects, coherent], resources={"catalog": workspace.catalog, "drives": workspace.drives}, raise_on_error=False
    )
    (check,) = made.get_asset_check_evaluations()
    return made, check


def test_a_clean_store_is_exit_0_and_says_how_much_there_is(shelves: Shelves) -> None:
    assert primer("store", "reconcile")[0] == 0
    intake, pipeline = primer_json("store", "reconcile")
    assert (intake["tenant"], intake["drive"], intake["objects"], intake["checked"]) == ("default", "intake", 2, 2)
    assert (pipeline["drive"], pipeline["objects"], pipeline["bytes"]) == ("pipeline", 6, sum(shelves.keys(PIPELINE).values()))
    assert pipeline["missing"] == {"count": 0, "sample": []}
    assert pipeline["orphans"] == {"count": 0, "bytes": 0, "sample": []}


def test_orphans_and_missing_objects_are_exit_1_and_apply_takes_the_orphans_only(shelves: Shelves) -> None:
    plant(shelves, PIPELINE, "ab/planted")
    gone = shelves.intake_key("one")
    shelves.drive(INTAKE).create("ab/young", b"of a save under way")
    before = {kind: shelves.keys(kind).keys() for kind in DriveKind}
    shelves.drive(INTAKE).delete([gone])
    code, told = primer("store", "reconcile")
    assert code == 1
    assert "orphan on default pipeline: ab/planted" in told
    assert f"missing on default intake: {gone}" in told
    assert "(document doc-one)" in told
    assert "ab/young" not in told
    assert "primer store reconcile --apply" in told
    assert shelves.keys(PIPELINE).keys() == before[PIPELINE]

    code, told = primer("store", "reconcile", "--apply", "--json")
    intake, pipeline = json.loads(told)
    assert (code, pipeline["reclaimed"]["count"], intake["too_young"]["count"], intake["missing"]["count"]) == (1, 1, 1, 1)
    (missing,) = intake["missing"]["sample"]
    assert (missing["object_key"], missing["doc_id"]) == (gone, "doc-one")
    assert shelves.keys(PIPELINE).keys() == before[PIPELINE] - {"ab/planted"}
    assert shelves.keys(INTAKE).keys() == before[INTAKE] - {gone}
    assert "orphan" not in primer("store", "reconcile")[1].split("missing")[2]


def test_a_tenant_is_named_or_refused_and_an_inactive_one_is_passed_over(shelves: Shelves) -> None:
    assert primer("tenant", "add", "rival")[0] == 0
    assert [each["tenant"] for each in primer_json("store", "reconcile")] == ["default", "default", "rival", "rival"]
    assert [each["tenant"] for each in primer_json("store", "reconcile", "--tenant", "rival")] == ["rival", "rival"]
    assert primer("tenant", "deactivate", "rival")[0] == 0
    assert "tenant rival is inactive; its drives were not looked at" in primer("store", "reconcile")[1]
    with pytest.raises(PrimerError, match="inactive"):
        primer("store", "reconcile", "--tenant", "rival")
    with pytest.raises(PrimerError, match="tenant 'nobody' is unknown"):
        primer("store", "reconcile", "--tenant", "nobody")


def test_a_drive_that_is_not_there_is_exit_1_and_calls_nothing_missing(shelves: Shelves, home: Path) -> None:
    shutil.rmtree(home / "store" / "pipeline")
    code, told = primer("store", "reconcile", "--json")
    assert code == 1
    intake, pipeline = json.loads(told)
    assert intake["fault"] is None
    assert "is not there; mount it" in pipeline["fault"]
    assert pipeline["missing"]["count"] == 0
    assert "is not there; mount it" in primer("store", "reconcile")[1]


def test_the_asset_tells_the_figures_and_deletes_nothing_and_its_check_judges_them(workspace: Workspace, shelves: Shelves) -> None:
    made, check = checked(workspace)
    assert made.success
    assert (check.passed, check.metadata["present_share"].value, check.metadata["checked"].value) == (True, 1.0, 8)
    plant(shelves, PIPELINE, "ab/planted")
    _, check = checked(workspace)
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    gone = shelves.intake_key("two")
    shelves.drive(INTAKE).delete([gone])
    made, check = checked(workspace)
    assert (check.passed, check.severity, check.metadata["present_share"].value) == (False, dg.AssetCheckSeverity.ERROR, 0.875)
    assert "1 of 2 objects are missing" in (check.description or "")
    (told,) = made.asset_materializations_for_node("stored_objects")
    figures = {name: told.metadata[name].value for name in ("objects", "orphans", "orphan_bytes", "missing", "faults", "too_young")}
    assert figures == {"objects": 8, "orphans": 1, "orphan_bytes": 8, "missing": 1, "faults": 0, "too_young": 0}
    assert told.metadata["samples"].value["default intake"]["missing"] == [gone]
    assert "ab/planted" in shelves.keys(PIPELINE)


def test_the_check_reads_the_newest_look_alone(workspace: Workspace, shelves: Shelves, monkeypatch: pytest.MonkeyPatch) -> None:
    result = coherent(catalog=workspace.catalog)
    assert isinstance(result, dg.AssetCheckResult)
    assert not result.passed
    assert "nobody has looked yet" in (result.description or "")
    assert primer("store", "reconcile")[0] == 0
    monkeypatch.setattr("primer_resources.document_store.drive.Drive.list", None)
    result = coherent(catalog=workspace.catalog)
    assert isinstance(result, dg.AssetCheckResult)
    assert result.passed
