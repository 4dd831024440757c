"""The Postgres server and databases that other tests stand on."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, inspect, text

from tests.conftest import PROJECT
from tests.postgres import PostgresServer, find_binaries

HOLD_A_SERVER = """
import sys
from tests.postgres import postgres_server

with postgres_server() as server:
    print(server.process.pid, server.folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("use", ["first", "second"])
def test_every_test_gets_an_empty_database(database_url: str, use: str) -> None:
    engine = create_engine(database_url)
    assert inspect(engine).get_table_names() == []
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE left_behind (used_by TEXT)"))
        connection.execute(text("INSERT INTO left_behind VALUES (:use)"), {"use": use})
    assert inspect(engine).get_table_names() == ["left_behind"]
    engine.dispose()


def test_the_url_of_the_postgres_parameter_is_a_postgres(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        assert str(connection.scalar(text("SELECT version()"))).startswith("PostgreSQL")
        assert connection.scalar(text("SHOW server_encoding")) == "UTF8"
    engine.dispose()


def test_a_database_is_dropped_under_a_connection_that_a_test_forgot(postgres: PostgresServer) -> None:
    with postgres.database() as url:
        engine = create_engine(url)
        forgotten = engine.connect()
        forgotten.execute(text("SELECT 1"))
    with postgres.database() as other:
        admin = create_engine(other)
        with admin.connect() as connection:
            names = connection.scalars(text("SELECT datname FROM pg_database")).all()
        admin.dispose()
    assert url.split("/")[-1].split("?")[0] not in names
    forgotten.invalidate()
    engine.dispose()


@pytest.mark.system
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_ends_with_the_process_that_started_it(how: signal.Signals) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD_A_SERVER], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder, holder.stdin:
        pid, _, folder = holder.stdout.readline().strip().partition(" ")
        postmaster = psutil.Process(int(pid))
        holder.send_signal(how)
        postmaster.wait(timeout=30)
    subprocess.run(["rm", "-rf", folder], check=True)


def test_missing_binaries_name_the_package_and_the_make_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"make test.*apt-get install -y postgresql"):
        find_binaries(tmp_path)


def test_the_newest_of_several_versions_is_taken(tmp_path: Path) -> None:
    for version in ("9", "15", "17"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").touch()
    assert find_binaries(tmp_path) == tmp_path / "17" / "bin"
