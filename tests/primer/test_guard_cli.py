"""Plans, held deletes and permissions as an operator types them, over one small deployment."""

from pathlib import Path

import pytest

from tests.primer.test_cli import read, run

PAGES = 14


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deployment over a folder of pages, synced once."""
    root = tmp_path_factory.mktemp("guard")
    (root / "docs" / "HR").mkdir(parents=True)
    for number in range(PAGES):
        (root / "docs" / f"page-{number:02}.txt").write_text(f"Page {number} is about the ferry of district {number}.")
    (root / "docs" / "HR" / "bands.txt").write_text("The salary band of a pilot is seven.")
    (root / "docs.access.yaml").write_text("groups: [everyone]\nfolders:\n  HR: [hr]\n")
    (root / "people.yaml").write_text("people: {ana: [hr], ben: [staff], cleo: []}\ngroups: {hr: [staff], staff: [everyone]}\n")
    assert run(root / "home", "init").returncode == 0
    assert run(root / "home", "source", "add", str(root / "docs")).returncode == 0
    assert read(root / "home", "sync")["indexed"] == PAGES + 1
    return root / "home"


def test_a_person_searches_with_the_groups_that_the_directory_knows(home: Path) -> None:
    people = {"PRIMER_DIRECTORY_FILE": str(home.parent / "people.yaml")}
    assert "HR/bands.txt" in run(home, "search", "salary of a pilot", "--as", "ana", env=people).stdout
    ben = run(home, "search", "salary of a pilot", "--as", "ben", env=people)
    assert ben.returncode == 0
    assert "bands" not in ben.stdout
    assert "page-" in ben.stdout
    assert "cleo is in no group" in run(home, "search", "salary", "--as", "cleo", env=people).stdout
    for words, environment, says in (
        (("--as", "dora"), people, "'dora' is not in the directory"),
        (("--as", "ana", "--groups", "hr"), people, "choose one of --groups and --as"),
        (("--as", "ana"), {}, "set PRIMER_DIRECTORY_FILE"),
        (("--as", "ana"), {"PRIMER_DIRECTORY_FILE": str(home / "none.yaml")}, "nobody's groups are known"),
    ):
        done = run(home, "search", "salary", *words, env=environment)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_who_may_see_a_document_and_what_a_group_opens(home: Path) -> None:
    shown = read(home, "acl", "show", "docs/HR/bands.txt")
    assert set(shown) == {"doc_id", "uri", "source", "path", "readable", "error", "scopes", "rows", "people"}
    assert [(scope["scope"], scope["groups"]) for scope in shown["scopes"]] == [("HR", ["hr"])]
    assert (shown["readable"], shown["rows"], shown["people"]) == (True, [{"index_version": "v1", "follow": True}], None)
    people = {"PRIMER_DIRECTORY_FILE": str(home.parent / "people.yaml")}
    assert "people: ana\n" in run(home, "acl", "show", "docs/HR/bands.txt", env=people).stdout
    opened = read(home, "acl", "who", "everyone", "--limit", "10")
    assert set(opened) == {"group", "documents", "scopes", "sample", "next"}
    assert (opened["documents"], len(opened["sample"])) == (PAGES, 10)
    rest = read(home, "acl", "who", "everyone", "--limit", "10", "--after", opened["next"])
    assert (len(rest["sample"]), rest["next"]) == (PAGES - 10, None)
    assert "opens 1 documents" in run(home, "acl", "who", "hr").stdout


def test_a_plan_is_shown_written_and_applied_or_refused(home: Path, tmp_path: Path) -> None:
    docs = home.parent / "docs"
    (docs / "page-00.txt").write_text("Page 0 is about the new ferry, which is larger.")
    (docs / "added.txt").write_text("A page about the lighthouse.")
    file = tmp_path / "plan.json"
    plan = read(home, "plan", "docs", "--out", str(file))
    assert (plan["counts"]["add"], plan["counts"]["update"], plan["counts"]["delete"], plan["verdict"]) == (1, 1, 0, "apply")
    assert plan["estimate"]["tokens_to_embed"] > 0
    assert "estimated: " in run(home, "plan", "docs").stdout
    assert read(home, "search", "lighthouse", "--groups", "everyone")[0]["path"] != "added.txt"
    (docs / "late.txt").write_text("Late.")
    refused = run(home, "sync", "--plan", str(file))
    assert (refused.returncode, "late.txt: planned nothing, now add" in refused.stderr) == (2, True), refused.stderr
    assert read(home, "source", "list")[0]["last_error"] is None
    (docs / "late.txt").unlink()
    assert run(home, "sync", "other", "--plan", str(file)).returncode == 2
    report = read(home, "sync", "--plan", str(file))
    assert (report["new"], report["changed"], report["indexed"]) == (1, 1, 2)
    assert {name: report[name] for name in ("scanned", "unchanged", "deleted")} == {
        name: plan["figures"][name] for name in ("scanned", "unchanged", "deleted")
    }
    assert read(home, "search", "lighthouse", "--groups", "everyone")[0]["path"] == "added.txt"
    assert run(home, "sync", "--plan", str(file)).returncode == 2
    (docs / "added.txt").unlink()
    assert read(home, "sync")["deleted"] == 1


def test_held_deletes_are_listed_rejected_and_approved(home: Path) -> None:
    docs = home.parent / "docs"
    assert read(home, "deletes", "list") == []
    assert run(home, "deletes", "approve", "docs").returncode == 2
    for number in range(PAGES - 1):
        (docs / f"page-{number:02}.txt").unlink()
    assert read(home, "sync")["held"] == PAGES - 1
    (held,) = read(home, "deletes", "list")
    assert (held["source"], held["state"], held["documents"], held["still_missing"]) == ("docs", "held", PAGES - 1, PAGES - 1)
    assert held["sample"][0].startswith("page-")
    assert read(home, "deletes", "reject", "docs")["digest"] == held["digest"]
    for _ in range(2):
        assert (read(home, "sync")["held"], read(home, "sync")["deleted"]) == (PAGES - 1, 0)
    assert "rejected by " in run(home, "deletes", "list").stdout
    assert read(home, "deletes", "approve", "docs")["deleted"] == PAGES - 1
    assert {hit["path"] for hit in read(home, "search", "ferry", "--groups", "everyone")} <= {f"page-{PAGES - 1:02}.txt"}
    assert read(home, "sync")["held"] == 0
    assert read(home, "deletes", "list") == []
    assert read(home, "reconcile")["agrees"]
