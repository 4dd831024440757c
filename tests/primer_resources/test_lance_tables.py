"""A table that several processes make and write at once, in a folder and in a bucket."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from lancedb.table import Table
from obstore.exceptions import GenericError

from primer_core.failures import PrimerError, SystemFault
from primer_resources.lance_tables import StampedTable
from tests.conftest import PROJECT
from tests.radosgw import RadosGateway

SCHEMA = pa.schema([("id", pa.string())])
ROUNDS = 4
COMMITS = 4
WRITER = f"""
import json, sys
import pyarrow as pa
from primer_resources.lance_tables import StampedTable

uri, options, who = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
print("ready", flush=True)
for round in range({ROUNDS}):
    sys.stdin.readline()
    stamped = StampedTable(uri, f"t{{round}}", "model", (), options)
    table = stamped.open_or_create(pa.schema([("id", pa.string())]))
    for commit in range({COMMITS}):
        stamped.commit(table, lambda latest: latest.add([{{"id": f"{{who}}-{{commit}}"}}]))
    print("done", flush=True)
"""


@dataclass(frozen=True)
class Place:
    """Where tables are."""

    uri: str
    options: Mapping[str, str]

    def table(self, name: str = "t", stamp: str = "model") -> StampedTable:
        return StampedTable(self.uri, name, stamp, (), self.options)


@pytest.fixture(params=["folder", "moto", "radosgw"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return Place(str(tmp_path / "not yet" / "tables"), {})
    server = request.getfixturevalue(request.param)
    s3 = server if request.param == "moto" else server.s3
    return Place(f"s3://{s3.make_bucket()}/tables", s3.lance_options())


def add(table: StampedTable, row_id: str) -> None:
    table.commit(table.open_or_create(SCHEMA), lambda latest: latest.add([{"id": row_id}]))


def ids(table: StampedTable) -> list[str]:
    found: list[str] | None = table.read(lambda latest: latest.to_arrow()["id"].to_pylist())
    return sorted(found or [])


class LateTable(StampedTable):
    """One that finds no table, and stands still while another process makes it: `meanwhile` is what that does."""

    meanwhile: Callable[[], object] | None = None

    def open(self) -> Table | None:
        if self.meanwhile is not None:
            self.meanwhile()
            self.meanwhile = None
            return None
        return super().open()


def test_one_that_makes_the_table_late_writes_over_nothing(place: Place) -> None:
    late = LateTable(place.uri, "t", "model", (), place.options)
    late.meanwhile = lambda: add(place.table(), "kept")
    add(late, "second")
    assert ids(place.table()) == ["kept", "second"]


def test_one_that_makes_the_table_late_for_another_model_is_refused(place: Place) -> None:
    late = LateTable(place.uri, "t", "other", (), place.options)
    late.meanwhile = lambda: place.table().open_or_create(SCHEMA)
    with pytest.raises(PrimerError, match="holds vectors of model, not of other"):
        add(late, "second")
    assert ids(place.table()) == []


def test_a_table_made_half_way_is_no_table_and_is_made_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    put = obstore.put

    def fail_at_the_manifest(store: Any, path: str, *rest: Any, **options: Any) -> Any:
        if path.endswith(".manifest"):
            raise GenericError("connection lost")
        return put(store, path, *rest, **options)

    with monkeypatch.context() as broken:
        broken.setattr(obstore, "put", fail_at_the_manifest)
        with pytest.raises(SystemFault, match="table t could not be made: connection lost"):
            add(place.table(), "first")
    assert place.table().open() is None
    add(place.table(), "first")
    assert ids(place.table()) == ["first"]


def test_a_dropped_table_is_made_again(place: Place) -> None:
    table = place.table()
    add(table, "first")
    table.drop()
    assert place.table().open() is None
    add(table, "second")
    assert ids(place.table()) == ["second"]


@pytest.mark.system
@pytest.mark.parametrize("place", ["folder", "radosgw"], indirect=True)
def test_processes_that_make_one_table_and_append_to_it_at_once_lose_no_row(place: Place) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, place.uri, json.dumps(dict(place.options)), who],
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in ("a", "b")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for number in range(ROUNDS):
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "done\n"
        assert ids(place.table(f"t{number}")) == [f"{who}-{commit}" for who in ("a", "b") for commit in range(COMMITS)]
    for writer in writers:
        writer.communicate(timeout=60)
    assert [writer.returncode for writer in writers] == [0, 0]


@pytest.mark.parametrize(("bucket", "secret", "says"), [("nowhere-at-all", None, "NoSuchBucket"), (None, "wrong", "SignatureDoesNotMatch")])
def test_a_bucket_that_is_not_there_and_wrong_keys_are_named(
    radosgw: RadosGateway, bucket: str | None, secret: str | None, says: str
) -> None:
    s3 = radosgw.s3
    options = s3.lance_options() | ({"aws_secret_access_key": secret} if secret else {})
    place = Place(f"s3://{bucket or s3.make_bucket()}/tables", options)
    with pytest.raises(SystemFault, match=rf"(?s){place.uri} cannot be reached.*{says}"):
        place.table()
