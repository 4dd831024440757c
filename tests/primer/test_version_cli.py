"""Index versions on the command line, from the plan of a backfill to the drop of what it replaced; every mistake one line that names the
fix."""

from pathlib import Path
from typing import Any

import pytest

from tests.primer.test_cli import Done, read, run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nParents have sixteen weeks of paid leave.")
    (folder / "travel.md").write_text("# Travel\n\nTrains are booked by everybody.")
    assert run(tmp_path / "home", "init").returncode == 0
    assert run(tmp_path / "home", "source", "add", str(folder), "--groups", "everyone").returncode == 0
    read(tmp_path / "home", "sync")
    return tmp_path / "home"


def states(home: Path) -> dict[str, str]:
    return {version["name"]: version["state"] for version in read(home, "version", "list")}


def refused(done: Done) -> str:
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


def search(home: Path, *words: str) -> list[Any]:
    found: list[Any] = read(home, "search", *words, "--groups", "everyone")
    return found


def test_a_version_is_planned_filled_promoted_rolled_back_and_dropped(home: Path) -> None:
    new = ("--reason", "chunker", "--target", "v2", "--max-tokens", "64")
    plan = read(home, "backfill", "plan", *new)
    assert (plan["is_new"], plan["documents"], plan["recipe"]["chunker"]["max_tokens"]) == (True, 2, 64)
    assert states(home) == {"v1": "live"}, "a plan changes nothing"

    begun = read(home, "backfill", "start", *new)
    assert (begun["state"], begun["total"], begun["done"]) == ("running", 2, 0)
    number = str(begun["backfill_id"])
    assert "the backfill of v2 is not finished" in refused(run(home, "promote", "v2"))
    assert read(home, "backfill", "pause", number)["state"] == "paused"
    assert f"backfill {number} is paused" in refused(run(home, "backfill", "run", number))
    assert read(home, "backfill", "resume", number)["state"] == "running"
    ended = read(home, "backfill", "run", number)
    assert (ended["state"], ended["done"], ended["failed"], ended["eta_s"]) == ("finished", 2, 0, 0)
    assert [each["state"] for each in read(home, "backfill", "status")] == ["finished"]

    assert all(check["passed"] for check in read(home, "version", "check", "v2"))
    assert read(home, "promote", "v2")["before"] == "v1"
    assert states(home) == {"v1": "retiring", "v2": "live"}
    assert search(home, "paid leave for parents")[0]["path"] == "leave.md"
    assert read(home, "rollback") == {"live": "v1", "before": "v2"}
    assert states(home) == {"v1": "live", "v2": "building"}
    assert read(home, "version", "retire", "v2")["dropped"] == 1
    assert states(home) == {"v1": "live", "v2": "retired"}
    assert not (home / "keywords" / "v2").exists()
    assert search(home, "paid leave for parents")[0]["path"] == "leave.md"


def test_mistakes_name_the_value_and_the_fix(home: Path) -> None:
    assert "cannot be called so" in refused(run(home, "version", "add", "V 2"))
    assert "index version v1 has this very recipe" in refused(run(home, "version", "add", "v2"))
    assert "say --reason chunker" in refused(
        run(home, "backfill", "start", "--reason", "embedding_model", "--target", "v2", "--max-tokens", "64")
    )
    assert "index version 'v9' is unknown; known are v1" in refused(run(home, "promote", "v9"))
    assert "no version to go back to" in refused(run(home, "rollback"))
    assert "v1 is the live one" in refused(run(home, "version", "retire", "v1"))
    assert "there is no backfill 7" in refused(run(home, "backfill", "status", "7"))
    assert states(home) == {"v1": "live"}
