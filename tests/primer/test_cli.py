"""The command line as a newcomer types it: set up, sync, search, look after; and every mistake one line that names the fix."""

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from primer.cli import main
from tests.conftest import PROJECT
from tests.git_history import HistoryRepo

SYNC_FIELDS = {
    *("scanned", "new", "changed", "unchanged", "acl_only", "deleted", "held", "failed", "indexed"),
    *("chunks_new", "chunks_kept", "chunks_gone", "embedded", "cache_hits", "parsed", "seconds", "sources"),
}
SEARCH_FIELDS = {"doc_id", "uri", "source", "path", "chunk_id", "score", "text", "heading_path", "page"}
STATUS_FIELDS = {"stage", "source_version", "outcome", "indexed_version", "chunks", "indexed_at", "error", "reason"}
DLQ_FIELDS = {"doc_id", "uri", "path", "stage", "reason", "error", "attempts"}


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(home: Path, *words: str, env: Mapping[str, str] | None = None) -> Done:
    """One `primer` command, through the very function that the installed script calls."""
    environment = {"PRIMER_HOME": str(home), "PRIMER_BUCKETS": "2", "PRIMER_PARSE_WORKERS": "1", **(env or {})}
    code: int | str | None = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        patch.chdir(PROJECT)
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            main.run(words)
        except SystemExit as stop:
            code = stop.code
        finally:
            logging.disable(logging.NOTSET)
    return Done(int(code or 0), out.getvalue(), err.getvalue())


def read(home: Path, *words: str) -> Any:
    done = run(home, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deployment over a copy of the samples, synced once, with one broken file."""
    root = tmp_path_factory.mktemp("cli")
    shutil.copytree(PROJECT / "samples", root / "samples")
    shutil.copy(PROJECT / "samples.access.yaml", root / "samples.access.yaml")
    (root / "samples" / "broken.docx").write_bytes(b"PK\x03\x04 no archive")
    assert run(root / "home", "init").returncode == 0
    assert run(root / "home", "source", "add", str(root / "samples")).returncode == 0
    report = read(root / "home", "sync")
    assert set(report) == SYNC_FIELDS
    assert report["scanned"] == report["new"] == report["indexed"] + report["failed"]
    assert report["failed"] == 1
    return root / "home"


def test_search_finds_what_the_groups_open_with_all_its_fields(home: Path) -> None:
    hits = read(home, "search", "What does the outdoor radio gateway cost?", "--groups", "everyone", "-k", "5")
    assert 1 <= len(hits) <= 5
    assert set(hits[0]) == SEARCH_FIELDS
    assert "Sales/price-list-2026.csv" in {hit["path"] for hit in hits}
    bands = read(home, "search", "pay range of a team lead", "--groups", "everyone", "-k", "20")
    assert not any(hit["path"].startswith("HR/salary") for hit in bands)
    assert any(hit["path"].startswith("HR/salary") for hit in read(home, "search", "pay range of a team lead", "--groups", "hr"))
    assert read(home, "search", "gateway") == []


def test_a_document_is_named_by_id_uri_or_path(home: Path) -> None:
    status = read(home, "status", "samples/Mail/battery-recall.eml")
    assert set(status) >= STATUS_FIELDS
    assert status["stage"] == "indexed"
    assert status["indexed_version"] == status["source_version"]
    for name in (status["doc_id"], status["uri"]):
        assert read(home, "status", name) == status
    passages = read(home, "show", status["doc_id"], "--chunks")
    assert len(passages) == status["chunks"]
    assert all(passage["indexed"] for passage in passages)
    assert {element["kind"] for element in read(home, "show", status["doc_id"], "--elements")}
    assert "battery" in read(home, "show", status["doc_id"], "--text")["text"].lower()


def test_a_dead_letter_has_its_reason_and_can_be_retried(home: Path) -> None:
    letters = read(home, "dlq", "list")
    assert [letter["path"] for letter in letters] == ["broken.docx"]
    assert set(letters[0]) >= DLQ_FIELDS
    assert letters[0]["reason"] in {"corrupt", "truncated"}
    assert letters[0]["attempts"] == 1
    assert read(home, "dlq", "retry", "samples/broken.docx") == {"retried": 1, "wait_for_sync": 0}
    assert read(home, "sync")["failed"] == 1
    assert len(read(home, "dlq", "list")) == 1


def test_reconcile_agrees_and_names_a_row_that_is_missing(home: Path) -> None:
    assert read(home, "reconcile")["agrees"] is True
    from primer_resources.vector_index.lance_index import LanceVectorIndex
    from tests.deployment import Workspace, load_settings

    workspace = Workspace(load_settings(home=home, buckets=2))
    version = workspace.catalog.deployments.live()
    vectors = LanceVectorIndex(str(home / "vectors"), version.name, version.recipe.embedding)
    row = next(iter(vectors.row_ids()))
    saved = shutil.copytree(home / "vectors", home.parent / "vectors-saved")
    try:
        vectors.delete([row])
        done = run(home, "reconcile", "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout)["differences"]["missing_in_vector"] == [row]
    finally:
        workspace.close()
        shutil.rmtree(home / "vectors")
        saved.rename(home / "vectors")


def test_status_tells_freshness_and_what_the_first_sync_found_is_no_change(home: Path) -> None:
    found = read(home, "status", "--freshness", "--window", "3d")
    assert (found["window_s"], found["freshness"], found["queue"]) == (3 * 86400.0, [], [])
    assert {lane["lane"]: lane["severity"] for lane in found["lanes"]} == {"fast": "ok", "slow": "ok", "access": "ok"}
    assert [(each["source"], each["health"]) for each in found["sources"]] == [("samples", "good")]
    assert set(read(home, "status")["sources"][0]) == {"source", "health", "severity", "reason", "silent_s"}
    words = run(home, "status", "--freshness").stdout
    assert "fast lane: nothing changed, nothing waits (limit 5.0 min)" in words


def test_a_source_that_stalls_is_named_with_its_reason_and_doctor_says_how_bad_it_is(home: Path) -> None:
    folder, away = home.parent / "samples", home.parent / "away"
    folder.rename(away)
    try:
        assert run(home, "sync").returncode == 2
        limits = {"PRIMER_STALLED_AFTER": "1ms", "PRIMER_STALLED_ERROR_AFTER": "1h"}
        (status,) = json.loads(run(home, "status", "--json", env=limits).stdout)["sources"]
        assert (status["health"], status["severity"]) == ("failing", "warn"), "three polls are the least that it may miss"
        words = run(home, "status", env=limits).stdout
        assert "failing samples: no good sync for" in words
        assert str(folder) in words
    finally:
        away.rename(folder)
    read(home, "sync")
    assert [each["health"] for each in read(home, "status")["sources"]] == ["good"]


def test_doctor_finds_nothing_wrong_but_the_dead_letter(home: Path) -> None:
    done = run(home, "doctor", "--json")
    checks = json.loads(done.stdout)
    assert done.returncode == 0, checks
    assert not [check for check in checks if check["severity"] == "error"]
    (cache,) = (check["message"] for check in checks if check["name"] == "embedding cache")
    assert int(cache.split()[0]) > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status", "samples/nowhere.md"), "document 'samples/nowhere.md' is unknown"),
        (("status", "--freshness", "--window", "90"), "--window '90' is no duration"),
        (("status", "--freshness", "--window", "9d"), "finished changes are kept 3 days"),
        (("status", "samples/x.md", "--freshness"), "give a document, or --freshness"),
        (("sync", "nowhere"), "source 'nowhere' is unknown; known sources: samples"),
        (("source", "add", "/does/not/exist", "--groups", "a"), "is not a folder"),
        (("source", "add", "docs"), "docs: give --groups"),
        (("source", "remove", "nowhere"), "is unknown"),
        (("dlq", "retry"), "say which"),
        (("search", " "), "the query is empty"),
        (("search",), "Missing argument 'QUERY'"),
        (("sync", "--fast"), "No such option: --fast"),
        (("show", "samples/nowhere.md", "--chunks", "--text"), "choose one of"),
        (("source", "add", "docs", "--groups", "a", "--poll", "20"), "--poll '20' is no duration with a unit"),
        (("source", "set", "samples", "--location", "/does/not/exist"), "is not a folder"),
        (("source", "add", "docs", "--type", "ftp"), "source type 'ftp' is unknown; known types: drive, wiki"),
        (("source", "add", "https://git.example/w", "--type", "wiki"), "nobody could read https://git.example/w: give --groups"),
        (("source", "add", "https://git.example/w", "--type", "wiki", "--set", "branch"), "--set 'branch' is no pair"),
        (("source", "add", "https://git.example/w", "--type", "wiki", "--set", "brnch=main"), "wiki setting brnch = 'main' is not valid"),
        (("source", "add", "docs", "--type", "tickets", "--groups", "a"), "tickets setting url = "),
        (("source", "add", "s3://b", "--type", "object_store", "--groups", "a", "--set", "max_file_mb=0"), "greater than or equal to 1"),
        (("source", "add", "https://git.example/w", "--type", "wiki", "--groups", "a", "--credentials", "hunter2"), "by reference"),
        (("source", "add", "docs", "--groups", "a", "--credentials", "env:X"), "of type drive takes no credentials"),
        (("source", "add", "https://dav.example/files", "--groups", "a", "--set", "branch=x"), "drive setting branch = 'x' is not valid"),
        (("source", "add", "https://w.example/api.php", "--type", "wiki"), "nobody could read https://w.example/api.php: give --groups"),
        (("source", "set", "samples", "--set", "max_file_mb=many"), "drive setting max_file_mb = 'many' is not valid"),
    ],
)
def test_a_mistake_is_one_line_with_the_fix_and_exit_2(home: Path, words: tuple[str, ...], said: str) -> None:
    done = run(home, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"PRIMER_LEASE": "60"}, "PRIMER_LEASE"),
        ({"PRIMER_BUCKETS": "4"}, "PRIMER_BUCKETS = 4"),
        ({"PRIMER_EMBEDDING_MODEL": "/no/such/model"}, "/no/such/model"),
        ({"PRIMER_DATABASE_URL": "nonsense"}, "PRIMER_DATABASE_URL"),
    ],
)
def test_settings_that_do_not_fit_stop_the_start_with_one_line(home: Path, settings: dict[str, str], said: str) -> None:
    for words in (["init"], ["sync"]):
        done = run(home, *words, env=settings)
        assert done.returncode == 2, done.stdout
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_another_chunk_limit_leaves_the_index_version_as_it_was_sealed_and_is_told(home: Path) -> None:
    other = {"PRIMER_CHUNK_MAX_TOKENS": "200"}
    assert run(home, "init", env=other).returncode == 0
    assert "chunker max_tokens 400, and the settings make 200" in run(home, "doctor", env=other).stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('embeding_model = "x"', "primer.toml: 'embeding_model' is no setting; did you mean 'embedding_model'?"),
        ("max_file_mb = 0", "setting primer.toml: max_file_mb = 0 is not valid: input should be greater than or equal to 1"),
        ("max_file_mb = ", "primer.toml in PRIMER_HOME is no valid TOML"),
    ],
)
def test_a_fault_of_the_settings_file_names_the_file_and_the_fix(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "primer.toml").write_text(text)
    done = run(tmp_path, "status")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_empty_home_is_refused_and_a_mistyped_variable_is_told(home: Path) -> None:
    assert "PRIMER_HOME = '' is not valid" in run(home, "status", env={"PRIMER_HOME": ""}).stderr
    told = run(home, "doctor", env={"PRIMER_EMBEDING_MODEL": "x"}).stdout
    assert "PRIMER_EMBEDING_MODEL is no setting" in told
    assert "PRIMER_EMBEDDING_MODEL" in told


def test_a_source_that_moved_is_told_and_set_right_without_losing_a_document(home: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "sub").mkdir(parents=True)
    (here / "sub" / "a.md").write_text("# Gates\n\nThe gate opens at dawn.")
    assert run(home, "source", "add", str(here), "--groups", "a", "--name", "moves").returncode == 0
    assert read(home, "sync", "moves")["indexed"] == 1
    here.rename(there)
    lost = run(home, "sync", "moves")
    assert lost.returncode == 2
    assert "source moves: source folder" in lost.stderr
    assert "Fault" not in lost.stderr
    assert run(home, "doctor").returncode == 1
    noted = run(home, "source", "set", "moves", "--location", str(there))
    assert noted.returncode == 0
    again = read(home, "sync", "moves")
    assert (again["scanned"], again["unchanged"] + again["acl_only"], again["embedded"]) == (1, 1, 0)
    assert "reads" in run(home, "source", "add", str(there / "sub"), "--groups", "a", "--name", "inside").stderr
    for name in ("moves", "inside"):
        assert run(home, "source", "remove", name).returncode == 0


def test_the_installed_script_is_that_function(tmp_path: Path) -> None:
    environment = {**os.environ, "PRIMER_HOME": str(tmp_path / "home")}
    done = subprocess.run([Path(sys.executable).with_name("primer"), "status"], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("primer: there is no catalog at")
    assert len(done.stderr.strip().splitlines()) == 1


def test_nothing_works_before_init_and_the_message_says_so(tmp_path: Path) -> None:
    done = run(tmp_path / "home", "status")
    assert done.returncode == 2
    assert "primer init" in done.stderr
    assert not (tmp_path / "home").exists()
    checks = run(tmp_path / "home", "doctor").stdout
    assert checks.count("there is no catalog") == 1


def test_reset_leaves_an_empty_home_that_init_fills_again(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "home"
    shutil.copytree(home, other)
    (other / "primer.toml").write_text('lease = "80s"\n')
    assert run(other, "reset", "--yes").returncode == 0
    assert sorted(path.name for path in other.iterdir()) == ["primer.toml"]
    assert run(other, "init").returncode == 0
    assert read(other, "source", "list") == []


def test_the_two_runs_of_init_and_source_add_change_nothing(home: Path) -> None:
    assert run(home, "init").returncode == 0
    done = run(home, "source", "add", str(home.parent / "samples"))
    assert done.returncode == 0
    assert "is there already" in done.stdout
    assert run(home, "source", "add", str(home.parent / "samples"), "--groups", "others").returncode == 2


def test_ci_materialises_through_dagsters_own_command(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "home"
    assert run(other, "init").returncode == 0
    assert run(other, "source", "add", str(home.parent / "samples")).returncode == 0
    environment = {**os.environ, "PRIMER_HOME": str(other), "DAGSTER_HOME": str(other / "dagster"), "PRIMER_BUCKETS": "2"}
    grid = "parsed_elements,slow_parsed_elements,chunks,embeddings,vector_index,keyword_index,indexed_documents"
    for assets, partition in (("source_documents", "samples"), (grid, "00|v1"), (grid, "01|v1")):
        command = [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "primer.definitions"]
        done = subprocess.run(
            [*command, "--select", assets, "--partition", partition], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
    overview = read(other, "status")
    assert overview["unfinished_jobs"] == 0
    assert overview["documents"]["samples"]["indexed"] == read(home, "status")["documents"]["samples"]["indexed"]
    assert read(other, "reconcile")["agrees"] is True


def test_what_a_command_printed_reaches_a_pipe_and_a_reader_that_leaves_early_is_no_crash(home: Path) -> None:
    environment = {**os.environ, "PRIMER_HOME": str(home), "PRIMER_BUCKETS": "2"}
    command = [sys.executable, "-m", "primer.cli.launch", "source", "list", "--json"]
    whole = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert whole.returncode == 0
    assert [source["source"] for source in json.loads(whole.stdout)] == ["samples"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as left:
        assert left.stdout is not None
        assert left.stderr is not None
        left.stdout.close()
        assert left.stderr.read() == ""
    assert left.returncode != 0


def test_a_wiki_is_added_with_its_settings_read_by_its_feed_and_changed(home: Path, tmp_path: Path) -> None:
    repo = HistoryRepo(tmp_path / "team-wiki.git")
    repo.put("guide.md", b"# Guide\n\nThe pelican crossing opens at dawn.\n")
    repo.commit()
    words = ("--type", "wiki", "--groups", "walkers, staff", "--set", "branch=main", "--set", "suffixes=.md,.html")
    added = read(home, "source", "add", str(repo.folder), *words, "--credentials", "env:WIKI_SECRET")
    assert (added["source"], added["credentials"]) == ("team-wiki", "env:WIKI_SECRET")
    assert added["settings"]["suffixes"] == [".md", ".html"]
    assert added["settings"]["groups"] == ["walkers", "staff"]
    lost = run(home, "sync", "team-wiki")
    assert (lost.returncode, "credentials env:WIKI_SECRET are empty" in lost.stderr) == (2, True)
    secret = {"WIKI_SECRET": "pelican-token"}
    assert run(home, "sync", "team-wiki", env=secret).returncode == 0
    repo.put("guide.md", b"# Guide\n\nThe zebra crossing opens at dusk.\n")
    repo.commit()
    done = run(home, "sync", "team-wiki", "--json", env=secret)
    assert (json.loads(done.stdout)["changed"], "pelican-token" in done.stdout + done.stderr) == (1, False)
    assert {hit["path"] for hit in read(home, "search", "zebra crossing at dusk", "--groups", "walkers", "-k", "1")} == {"guide.md"}
    changed = read(home, "source", "set", "team-wiki", "--set", "uri=https://wiki.example/{path}", "--set", "suffixes=")
    assert (changed["settings"]["uri"], "suffixes" in changed["settings"]) == ("https://wiki.example/{path}", False)
    assert (changed["settings"]["branch"], changed["credentials"]) == ("main", "env:WIKI_SECRET")
    assert (home / "sources" / "team-wiki").is_dir()
    assert read(home, "source", "remove", "team-wiki")["deleted"] == 1
    assert not (home / "sources" / "team-wiki").exists()
    assert b"pelican-token" not in b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_the_golden_set_of_the_samples_is_asked_and_its_misses_are_explained(home: Path) -> None:
    golden = {"PRIMER_GOLDEN": str(PROJECT / "golden")}
    done = run(home, "eval", "--against", "v1", "--json", env=golden)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {
        "index_version",
        "k",
        "figures",
        "outcomes",
        "misses",
        "by_heading",
        "without_value",
        "causes",
        "notices",
        "comparison",
    }
    assert {row["format"] for row in report["figures"]} >= {"all", "docx", "eml", "html", "pdf", "pptx", "txt", "wiki", "xlsx"}
    assert len(report["outcomes"]) == report["figures"][-1]["questions"]
    assert report["figures"][-1]["recall_at_k"] >= 0.7
    # All is indexed, so nothing but the order of the passages may cost an answer.
    assert set(report["causes"]) <= {"ranking", "model"}
    assert report["comparison"]["passes"]
    shown = run(home, "eval", "-k", "1", "--misses", "1", env=golden)
    assert shown.returncode == 0
    assert "recall@1" in shown.stdout
    assert "more misses; --misses shows more of them" in shown.stdout
    assert "there is no golden set" in run(home, "eval").stderr
    assert "index version 'v9' is unknown" in run(home, "eval", "--index", "v9", env=golden).stderr
