"""Tenants and their drives on the command line: made by `primer init`, added, moved, stopped; every mistake one line with the fix."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from alembic import command
from alembic.config import Config
from moto.server import ThreadedMotoServer
from sqlalchemy import text

from primer_core.failures import PrimerError
from primer_core.stored_states import DriveKind
from primer_resources.catalog.database import MIGRATIONS, Database
from primer_resources.clock import SystemClock
from primer_resources.document_store.drives import TenantRefused
from primer_resources.settings import load_settings
from tests.deployment import Workspace, primer, primer_json

KEYS = "KEYID:SECRETKEY"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(moto: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A new bucket."""
    monkeypatch.setenv("BUCKET_KEYS", KEYS)
    name = f"b{abs(hash(request.node.name))}"
    admin = boto3.client("s3", endpoint_url=moto, region_name="us-east-1", aws_access_key_id="KEYID", aws_secret_access_key="SECRETKEY")
    admin.create_bucket(Bucket=name)
    return name


def drives_of(name: str = "default") -> dict[str, Any]:
    """kind → url of a tenant's drives."""
    (found,) = [each for each in primer_json("tenant", "list") if each["tenant"] == name]
    return {kind: drive["url"] for kind, drive in found["drives"].items()}


def test_init_gives_the_tenant_folders_in_the_home_which_may_be_moved(home: Path) -> None:
    assert drives_of() == {"intake": "store/intake", "pipeline": "store/pipeline"}
    assert [path.name for path in sorted((home / "store").iterdir())] == ["intake", "pipeline"]
    workspace = Workspace(load_settings())
    for kind in DriveKind:
        assert workspace.drives.of("default", kind).place == str(home / "store" / kind)
    workspace.close()
    shutil.rmtree(home / "store")
    assert primer("init")[0] == 0
    assert (home / "store" / "intake").is_dir()


def test_init_gives_a_deployment_of_before_there_were_drives_its_drives(primer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_BUCKETS", "2")
    primer_home.mkdir()
    database = Database(load_settings().catalog_url, SystemClock())
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0008")
        connection.execute(text("INSERT INTO deployment (key, value) VALUES ('buckets', '2'), ('identity', 'x')"))
        connection.execute(text("INSERT INTO accounts (tenant_id, active) VALUES ('default', true)"))
    database.close()
    with pytest.raises(PrimerError, match="run `primer init`"):
        primer("tenant", "list")
    assert primer("init")[0] == 0
    assert drives_of() == {"intake": "store/intake", "pipeline": "store/pipeline"}


def test_drives_on_s3_by_settings_alone(primer_home: Path, moto: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_BUCKETS", "2")
    for name, value in {
        "INTAKE_URL": f"s3://{bucket}/in",
        "PIPELINE_URL": f"s3://{bucket}/out/",
        "DRIVE_ENDPOINT": moto,
        "DRIVE_CREDENTIALS": "env:BUCKET_KEYS",
    }.items():
        monkeypatch.setenv(f"PRIMER_{name}", value)
    assert primer("init")[0] == 0
    assert drives_of() == {"intake": f"s3://{bucket}/in", "pipeline": f"s3://{bucket}/out"}
    assert primer("init")[0] == 0
    assert not (primer_home / "store").exists()
    workspace = Workspace(load_settings())
    intake, pipeline = (workspace.drives.of("default", kind) for kind in DriveKind)
    intake.create("a", b"x")
    intake.copy("a", pipeline, "b")
    assert pipeline.get("b") == b"x"
    workspace.close()
    assert b"SECRETKEY" not in b"".join(path.read_bytes() for path in primer_home.glob("catalog.sqlite*"))
    monkeypatch.setenv("PRIMER_INTAKE_URL", f"s3://{bucket}/another")
    with pytest.raises(PrimerError, match=r"put the intake drive of tenant 'default' at s3://.*/another .*, but it is at s3://.*/in "):
        primer("init")


def test_a_bucket_that_cannot_be_used_makes_no_deployment(primer_home: Path, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUCKET_KEYS", KEYS)
    monkeypatch.setenv("PRIMER_INTAKE_URL", "s3://no-such-bucket/in")
    monkeypatch.setenv("PRIMER_DRIVE_ENDPOINT", moto)
    monkeypatch.setenv("PRIMER_DRIVE_CREDENTIALS", "env:BUCKET_KEYS")
    with pytest.raises(PrimerError, match=r"drive s3://no-such-bucket/in at .* there is no such bucket"):
        primer("init")
    monkeypatch.setenv("PRIMER_DRIVE_CREDENTIALS", "KEYID:SECRETKEY")
    with pytest.raises(PrimerError, match="by reference") as caught:
        primer("init")
    assert "SECRETKEY" not in str(caught.value)


def test_tenants_are_added_with_drives_of_their_own(home: Path, moto: str, bucket: str, tmp_path: Path) -> None:
    nothing = {"region": "", "endpoint": "", "credentials": None}
    added = primer_json("tenant", "add", "acme")
    assert (added["tenant"], added["active"]) == ("acme", True)
    assert added["drives"] == {kind: {"url": f"store/tenants/acme/{kind}", **nothing} for kind in ("intake", "pipeline")}
    assert "is there already" in primer("tenant", "add", "acme")[1]
    given = ("--intake", f"s3://{bucket}/in", "--endpoint", moto, "--credentials", "env:BUCKET_KEYS", "--region", "eu-central-1")
    added = primer_json("tenant", "add", "mixed", *given, "--pipeline", str(tmp_path / "folder"))
    assert added["drives"] == {
        "intake": {"url": f"s3://{bucket}/in", "region": "eu-central-1", "endpoint": moto, "credentials": "env:BUCKET_KEYS"},
        "pipeline": {"url": str(tmp_path / "folder"), **nothing},
    }
    assert [each["tenant"] for each in primer_json("tenant", "list")] == ["acme", "default", "mixed"]
    assert f"s3://{bucket}/in" in primer("tenant", "list")[1]


def test_what_cannot_be_a_tenant_or_a_drive_is_one_line_and_adds_nothing(home: Path, tmp_path: Path) -> None:
    primer("tenant", "add", "acme", "--intake", str(tmp_path / "in"), "--pipeline", str(tmp_path / "out"))
    for words, told in (
        (("Acme Inc",), "tenant name 'Acme Inc' is not valid"),
        (("new", "--intake", str(home)), "would hold PRIMER_HOME"),
        (("new", "--intake", str(home / "vectors")), "would mix with what else Primer keeps"),
        (("new", "--intake", str(home / "store")), "would mix with what else Primer keeps"),
        (("new", "--intake", str(tmp_path / "in" / "deeper")), "would share objects with drive acme:intake"),
        (("new", "--intake", str(tmp_path / "x"), "--pipeline", str(tmp_path / "x")), "would share objects with drive new:intake"),
        (("new", "--intake", "gs://bucket"), "kind of place is unknown"),
        (("new", "--endpoint", "http://h:1"), "both drives are folders"),
        (("new", "--intake", "s3://bucket/x", "--endpoint", "http://me:secret@h:1"), "has a user or password in it"),
        (("acme", "--intake", str(tmp_path / "elsewhere")), "exists already with other drives"),
    ):
        with pytest.raises(PrimerError, match=told):
            primer("tenant", "add", *words)
    assert [each["tenant"] for each in primer_json("tenant", "list")] == ["acme", "default"]


def test_a_drive_moves_once_its_objects_are_there_and_its_tenant_rests(home: Path, tmp_path: Path) -> None:
    workspace = Workspace(load_settings())
    workspace.drives.of("default", DriveKind.INTAKE).create("a/b", b"x")
    moved = str(tmp_path / "moved")
    with pytest.raises(PrimerError, match=r"holds a/b and other objects that are not at .*; copy all of store/intake there first"):
        primer("tenant", "set", "default", "--intake", moved)
    shutil.copytree(home / "store" / "intake", moved, dirs_exist_ok=True)
    with pytest.raises(PrimerError, match=r"is active, .*`primer tenant deactivate default`"):
        primer("tenant", "set", "default", "--intake", moved)
    primer("tenant", "deactivate", "default")
    assert primer_json("tenant", "set", "default", "--intake", moved)["drives"]["intake"]["url"] == moved
    primer("tenant", "activate", "default")
    workspace.drives.forget("default")
    assert workspace.drives.of("default", DriveKind.INTAKE).get("a/b") == b"x"
    shutil.rmtree(moved)
    primer("tenant", "deactivate", "default")
    with pytest.raises(PrimerError, match=r"cannot be looked at .* is empty; copy its objects there first"):
        primer("tenant", "set", "default", "--intake", str(tmp_path / "third"))
    with pytest.raises(TenantRefused, match="inactive"):
        Workspace(load_settings()).drives.of("default", DriveKind.INTAKE)
    workspace.close()


def test_keys_are_rotated_without_a_stop(home: Path, moto: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("--endpoint", moto, "--credentials", "env:BUCKET_KEYS")
    primer("tenant", "add", "acme", "--intake", f"s3://{bucket}/in", "--pipeline", f"s3://{bucket}/out", *given)
    monkeypatch.setenv("NEW_KEYS", "OTHER:KEYS")
    changed = primer_json("tenant", "set", "acme", "--credentials", "env:NEW_KEYS")["drives"]
    assert {drive["credentials"] for drive in changed.values()} == {"env:NEW_KEYS"}
    changed = primer_json("tenant", "set", "acme", "--pipeline", f"s3://{bucket}/out", "--credentials", "env:BUCKET_KEYS")["drives"]
    assert [drive["credentials"] for drive in changed.values()] == ["env:NEW_KEYS", "env:BUCKET_KEYS"]


def test_sources_of_an_inactive_tenant_are_passed_over_and_refused_by_name(home: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nText.")
    primer("source", "add", str(tmp_path / "docs"), "--groups", "all")
    assert "default is inactive" in primer("tenant", "deactivate", "default")[1]
    assert "inactive already" in primer("tenant", "deactivate", "default")[1]
    code, told = primer("sync")
    assert code == 0
    assert "source docs is not read: its tenant default is inactive" in told
    for words in (("sync", "docs"), ("plan", "docs")):
        with pytest.raises(PrimerError, match="tenant 'default' is inactive; `primer tenant activate default`"):
            primer(*words)
    with pytest.raises(PrimerError, match="tenant 'default' is inactive; `primer tenant activate default`"):
        primer("replay", "--source", "docs", "--to-stage", "chunk", "--apply")
    assert primer_json("status")["sources"] == []
    assert "is active" in primer("tenant", "activate", "default")[1]
    assert [each["source"] for each in primer_json("status")["sources"]] == ["docs"]
    for words in (("tenant", "activate", "nobody"), ("tenant", "set", "nobody")):
        with pytest.raises(PrimerError, match="tenant 'nobody' is unknown; known tenants: default"):
            primer(*words)


def test_a_reset_names_the_drives_that_it_leaves(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    primer("tenant", "add", "acme", "--intake", str(outside))
    (outside / "a").write_bytes(b"x")
    told = primer("reset", "--yes")[1]
    assert f"what is on drive {outside} stays" in told
    assert told.count("stays") == 1
    assert ((outside / "a").exists(), (home / "store").exists()) == (True, False)
    assert "stays" not in primer("reset", "--yes")[1]


def test_nothing_is_added_to_a_tenant_that_is_not_there(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMER_TENANT", "nobody")
    (tmp_path / "docs").mkdir()
    for words in (("source", "add", str(tmp_path / "docs"), "--groups", "all"), ("token", "add", "me", "--role", "reader")):
        with pytest.raises(PrimerError, match="tenant 'nobody' is unknown"):
            primer(*words)
    assert primer("init")[0] == 0
    assert drives_of("nobody")["intake"] == "store/tenants/nobody/intake"


def test_doctor_tries_the_drives_and_names_what_rests(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    primer("tenant", "add", "idle")
    (tmp_path / "docs").mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("PRIMER_TENANT", "idle")
        primer("source", "add", str(tmp_path / "docs"), "--groups", "all")
    primer("tenant", "deactivate", "idle")
    shutil.rmtree(home / "store" / "pipeline")
    code, output = primer("doctor", "--json")
    checks = json.loads(output)
    told = [(check["name"], check["severity"]) for check in checks if check["name"].startswith("tenant")]
    assert (code, told) == (1, [("tenant default", "ok"), ("tenant default", "error"), ("tenant idle", "warning")])
    messages = {(check["name"], check["severity"]): check["message"] for check in checks}
    assert "pipeline drive: the folder of drive" in messages["tenant default", "error"]
    assert "its tenant idle is inactive" in messages["source docs", "ok"]
    assert list((home / "store" / "intake").iterdir()) == []
