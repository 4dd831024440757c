"""One suite for every kind of drive: a folder, and buckets of S3 servers over HTTP."""

import base64
import hashlib
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from moto.server import DomainDispatcherApplication, ThreadedMotoServer, create_backend_app
from werkzeug.serving import make_server

from primer_core.drives import DriveSpec
from primer_core.failures import PrimerError, SystemFault
from primer_resources.document_store.drive import Drive, ObjectGone
from primer_resources.document_store.opening import open_drive, probe, set_up_drive
from tests.drive_racers import RACERS, race
from tests.radosgw import RadosGateway
from tests.s3_endpoint import REGION, S3Endpoint
from tests.s3_server import s3_server

KEYS = "KEYID:SECRETKEY"
NUMBERS = count()


@dataclass
class Place:
    """Where drives of a kind are made. `make_spec` gives a new empty one; `break_it` takes the drive away from under its objects."""

    make_spec: Callable[[], DriveSpec]
    break_it: Callable[[DriveSpec], None]

    def make(self) -> Drive:
        """A new drive, set up and probed."""
        return set_up_drive(self.make_spec(), Path("/"))


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    """Keys that no server knows."""
    (tmp_path / "keys").write_text(KEYS)
    return tmp_path / "keys"


@pytest.fixture
def folder_place(tmp_path: Path) -> Place:
    return Place(lambda: DriveSpec(str(tmp_path / f"drive{next(NUMBERS)}")), lambda spec: shutil.rmtree(spec.url))


@pytest.fixture
def moto_place(moto: S3Endpoint, tmp_path: Path) -> Place:
    return bucket_place(moto, tmp_path / "moto-keys")


@pytest.fixture
def radosgw_place(radosgw: RadosGateway, tmp_path: Path) -> Place:
    return bucket_place(radosgw.s3, tmp_path / "radosgw-keys")


def bucket_place(server: S3Endpoint, keys_file: Path) -> Place:
    """Drives on a server, each in a bucket of its own. The keys stand in a file, where racers read them, too."""
    keys_file.write_text(f"{server.key_id}:{server.secret}")

    def make() -> DriveSpec:
        return DriveSpec(f"s3://{server.make_bucket()}/a/prefix", REGION, server.url, f"file:{keys_file}")

    def break_it(spec: DriveSpec) -> None:
        drive = open_drive(spec, Path("/"))
        drive.delete(keys_of(drive))
        server.client().delete_bucket(Bucket=spec.bucket)

    return Place(make, break_it)


@pytest.fixture(params=["folder", "moto", "radosgw"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture(params=["moto", "radosgw"])
def server_place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture
def drive(place: Place) -> Drive:
    return place.make()


def keys_of(drive: Drive, prefix: str = "") -> list[str]:
    return sorted(stored.key for stored in drive.list(prefix))


@pytest.mark.parametrize("body", [b"", b"some bytes", bytes(range(256)) * 30_000])
def test_an_object_comes_back_as_it_went_in_from_bytes_and_from_a_file(drive: Drive, body: bytes, tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(body)
    assert drive.create("a/one", body)
    assert drive.create("a/two", tmp_path / "given")
    for key in ("a/one", "a/two"):
        assert drive.get(key) == body
        assert drive.fetch(key, tmp_path / "fetched") == hashlib.sha256(body).hexdigest()
        assert (tmp_path / "fetched").read_bytes() == body
        found = drive.head(key)
        assert found is not None
        assert (found.key, found.size) == (key, len(body))
        assert found.modified.utcoffset() == timedelta(0)
        assert abs(found.modified - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_key_that_is_taken_is_not_written_again(drive: Drive) -> None:
    assert drive.create("a/b", b"first")
    assert not drive.create("a/b", b"second")
    assert drive.get("a/b") == b"first"


def test_replace_writes_over_what_stands_there_and_where_nothing_does(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(b"third, longer than before")
    for body in (b"first", b"second"):
        drive.replace("a/b", body)
        assert drive.get("a/b") == body
    drive.replace("a/b", tmp_path / "given")
    assert drive.get("a/b") == b"third, longer than before"
    assert keys_of(drive) == ["a/b"]


def test_a_range_is_read_without_the_rest(drive: Drive) -> None:
    drive.create("a/b", b"0123456789")
    assert drive.get_range("a/b", 0, 1) == b"0"
    assert drive.get_range("a/b", 3, 4) == b"3456"
    assert drive.get_range("a/b", 8, 100) == b"89"
    with pytest.raises(SystemFault, match="a/b"):
        drive.get_range("a/b", 10, 1)


def test_what_is_missing_is_named_with_its_drive(drive: Drive, tmp_path: Path) -> None:
    assert drive.head("a/none") is None
    asks: list[Callable[[], object]] = [
        lambda: drive.get("a/none"),
        lambda: drive.get_range("a/none", 0, 5),
        lambda: drive.fetch("a/none", tmp_path / "fetched"),
        lambda: drive.copy("a/none", drive, "a/copy"),
    ]
    for ask in asks:
        with pytest.raises(ObjectGone, match="object a/none is not on drive") as caught:
            ask()
        assert (caught.value.key, caught.value.place) == ("a/none", drive.place)
    assert not (tmp_path / "fetched").exists()
    assert keys_of(drive) == []


def test_listings_go_over_pages_and_keep_to_whole_parts_of_keys(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("primer_resources.document_store.drive.LIST_PAGE", 3)
    for number in range(8):
        drive.create(f"ab/{number}", b"x" * number)
    drive.create("abc/d/e", b"")
    assert keys_of(drive) == [*(f"ab/{number}" for number in range(8)), "abc/d/e"]
    assert [(each.key, each.size) for each in sorted(drive.list("ab"), key=lambda each: each.key)] == [(f"ab/{n}", n) for n in range(8)]
    assert keys_of(drive, "a") == keys_of(drive, "zz") == []
    assert all(each.modified.utcoffset() == timedelta(0) for each in drive.list())


def test_deletes_pass_over_what_is_missing_whatever_their_number(drive: Drive) -> None:
    for number in range(5):
        drive.create(f"a/{number}", b"x")
    drive.delete(["a/none", "a/1", "b/c/d", "a/3", "a/1"])
    assert keys_of(drive) == ["a/0", "a/2", "a/4"]
    drive.delete([f"a/{number}" for number in range(2_300)])
    assert keys_of(drive) == []
    drive.delete([])
    assert drive.create("a/1", b"a key is free again")


def test_a_copy_takes_new_keys_only(place: Place) -> None:
    one, two = place.make(), place.make()
    one.create("a/b", b"the bytes")
    for to, key in ((one, "c/d"), (two, "a/b"), (two, "e")):
        assert one.copy("a/b", to, key)
        assert to.get(key) == b"the bytes"
    two.create("f", b"another")
    assert not one.copy("a/b", two, "f")
    assert not one.copy("a/b", one, "a/b")
    assert (two.get("f"), one.get("a/b")) == (b"another", b"the bytes")
    one.delete(["a/b"])
    one.create("a/b", b"other bytes under the old key")
    assert two.get("a/b") == b"the bytes"
    assert keys_of(one) == ["a/b", "c/d"]
    assert keys_of(two) == ["a/b", "e", "f"]


def test_a_copy_between_kinds_of_drives_is_streamed(place: Place, folder_place: Place, moto_place: Place) -> None:
    body = bytes(range(256)) * 10_000
    for other in (folder_place.make(), moto_place.make()):
        drive = place.make()
        drive.create("a", body)
        assert drive.copy("a", other, "b/c")
        assert other.copy("b/c", drive, "d")
        assert drive.get("d") == other.get("b/c") == body
        assert not other.copy("b/c", drive, "a")
        with pytest.raises(ObjectGone, match="gone"):
            drive.copy("gone", other, "e")


def test_of_eight_processes_one_wins_each_key(place: Place, pool: ProcessPoolExecutor) -> None:
    spec = place.make_spec()
    drive = set_up_drive(spec, Path("/"))
    keys = [f"race/{number:02}" for number in range(20)]
    won = race(pool, spec, keys)
    assert sorted(key for each in won.values() for key in each) == keys
    assert {key: drive.get(key) for key in keys} == {key: b"%d" % number for number, each in won.items() for key in each}
    assert len(won) == RACERS


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/./b", "a b", "a#1", "ü", "a\n"])
def test_what_is_no_key_is_refused_everywhere(drive: Drive, key: str, tmp_path: Path) -> None:
    drive.create("a/b", b"x")
    asks: list[Callable[[], object]] = [
        lambda: drive.create(key, b""),
        lambda: drive.replace(key, b""),
        lambda: drive.head(key),
        lambda: drive.get(key),
        lambda: drive.fetch(key, tmp_path / "f"),
        lambda: drive.delete([key]),
        lambda: drive.copy(key, drive, "c"),
        lambda: drive.copy("a/b", drive, key),
    ]
    for ask in asks:
        with pytest.raises(ValueError, match="no key"):
            ask()


def test_a_drive_that_is_gone_calls_no_object_missing(place: Place, tmp_path: Path) -> None:
    spec = place.make_spec()
    drive = set_up_drive(spec, Path("/"))
    drive.create("a/b", b"x")
    place.break_it(spec)
    asks: list[Callable[[], object]] = [
        lambda: drive.head("a/b"),
        lambda: drive.get("a/b"),
        lambda: drive.fetch("a/b", tmp_path / "f"),
        lambda: drive.create("a/b", b"y"),
        lambda: drive.replace("a/b", b"y"),
        lambda: drive.copy("a/b", drive, "c"),
        lambda: drive.delete(["a/b"]),
        lambda: list(drive.list()),
    ]
    for ask in asks:
        with pytest.raises(SystemFault) as caught:
            ask()
        assert not isinstance(caught.value, ObjectGone)
        assert drive.place in str(caught.value)
    assert not Path(spec.url).exists()


def test_no_room_for_what_is_fetched_is_told_of_the_target(drive: Drive, tmp_path: Path) -> None:
    drive.create("a", b"x")
    with pytest.raises(SystemFault, match=r"copying a of drive .* failed: No such file or directory"):
        drive.fetch("a", tmp_path / "no folder" / "f")


def test_a_folder_that_keeps_other_bytes_than_it_was_given_is_found_out(folder_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = folder_place.make()
    import obstore

    put = obstore.put
    monkeypatch.setattr("primer_resources.document_store.folder_drive.obstore.put", lambda store, key, _body: put(store, key, b"rotten"))
    with pytest.raises(SystemFault, match="keeps other bytes at a/b than it was given"):
        drive.replace("a/b", b"sound")


def test_folders_go_with_their_last_object_and_half_copies_are_not_listed(folder_place: Place) -> None:
    spec = folder_place.make_spec()
    drive = set_up_drive(spec, Path("/"))
    drive.create("a/b/c", b"x")
    (Path(spec.url) / "a" / "b" / f"half#{1:09}").write_bytes(b"of a process that was killed")
    assert keys_of(drive) == ["a/b/c"]
    (Path(spec.url) / "a" / "b" / f"half#{1:09}").unlink()
    drive.delete(["a/b/c"])
    assert list(Path(spec.url).iterdir()) == []


def test_a_copied_file_is_no_second_name_of_the_first(folder_place: Place) -> None:
    spec = folder_place.make_spec()
    drive = set_up_drive(spec, Path("/"))
    drive.create("a", b"the bytes")
    drive.copy("a", drive, "b")
    with (Path(spec.url) / "a").open("r+b") as file:
        file.write(b"X")
    assert drive.get("b") == b"the bytes"


def test_buckets_of_one_store_copy_between_themselves(
    server_place: Place, monkeypatch: pytest.MonkeyPatch, recorded: list[tuple[str, str]]
) -> None:
    one, two = server_place.make(), server_place.make()
    one.create("a", b"x" * 6_000_000)
    recorded.clear()
    assert one.copy("a", two, "b")
    assert not any(method in ("fetch", "create") for method, _ in recorded)
    monkeypatch.setattr("primer_resources.document_store.s3_drive.ONE_COPY", 5_500_000)
    monkeypatch.setattr("primer_resources.document_store.s3_drive.COPY_PART", 5_242_880)
    assert one.copy("a", two, "in-parts")
    assert two.get("in-parts") == two.get("b") == one.get("a")


def test_other_credentials_mean_that_bytes_pass_through_here(
    moto_place: Place, monkeypatch: pytest.MonkeyPatch, recorded: list[tuple[str, str]]
) -> None:
    monkeypatch.setenv("OTHER_KEYS", "OTHER:KEYS")
    one = moto_place.make()
    two = set_up_drive(replace(moto_place.make_spec(), credentials_ref="env:OTHER_KEYS"), Path("/"))
    one.create("a", b"x")
    recorded.clear()
    assert one.copy("a", two, "b")
    assert recorded == [("fetch", "a"), ("create", "b")]
    assert two.get("b") == b"x"


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The calls that move bytes through this process."""
    calls: list[tuple[str, str]] = []
    for name in ("fetch", "create"):
        plain = getattr(Drive, name)

        def noted(drive: Drive, key: str, *more: object, _plain: Callable[..., object] = plain, _name: str = name) -> object:
            calls.append((_name, key))
            return _plain(drive, key, *more)

        monkeypatch.setattr(Drive, name, noted)
    return calls


def test_a_store_that_overwrites_is_refused_and_nothing_of_the_probe_stays(drive: Drive, tmp_path: Path) -> None:
    assert not probe(drive)
    assert keys_of(drive) == []
    with changed_server(lambda environ: environ.pop("HTTP_IF_NONE_MATCH", None)) as url:
        spec = bucket_place(S3Endpoint(url, "KEYID", "SECRETKEY"), tmp_path / "deaf-keys").make_spec()
        with pytest.raises(PrimerError, match="overwrote an object that was to be created only where there is none"):
            set_up_drive(spec, Path("/"))
        assert keys_of(open_drive(spec, Path("/")), "probe") == []


def test_a_bucket_that_keeps_what_is_deleted_is_told(moto: S3Endpoint, moto_place: Place) -> None:
    spec = moto_place.make_spec()
    moto.client().put_bucket_versioning(Bucket=spec.bucket, VersioningConfiguration={"Status": "Enabled"})
    assert probe(open_drive(spec, Path("/")))
    moto.client().put_bucket_versioning(Bucket=spec.bucket, VersioningConfiguration={"Status": "Suspended"})
    assert not probe(open_drive(spec, Path("/")))


def test_what_is_put_goes_with_its_checksum_for_the_store_to_verify(tmp_path: Path) -> None:
    sent: list[str | None] = []

    def note(environ: dict[str, Any]) -> None:
        if environ["REQUEST_METHOD"] == "PUT" and environ["PATH_INFO"].count("/") > 2:
            sent.append(environ.get("HTTP_X_AMZ_CHECKSUM_SHA256"))

    (tmp_path / "given").write_bytes(b"x" * 6_000_000)
    with changed_server(note) as url:
        spec = bucket_place(S3Endpoint(url, "KEYID", "SECRETKEY", count(5_000)), tmp_path / "keys").make_spec()
        drive = open_drive(spec, Path("/"))
        drive.create("a", b"some bytes")
        drive.replace("a", tmp_path / "given")
    assert sent == [base64.b64encode(hashlib.sha256(body).digest()).decode() for body in (b"some bytes", b"x" * 6_000_000)]


@contextmanager
def changed_server(change: Callable[[dict[str, Any]], object]) -> Iterator[str]:
    """A played server, `change` done to each request before it answers: so it can be deaf to If-None-Match, as many gateways are."""
    whole = DomainDispatcherApplication(create_backend_app)

    def app(environ: dict[str, Any], start_response: Any) -> Any:
        change(environ)
        return whole(environ, start_response)

    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def dead_server(monkeypatch: pytest.MonkeyPatch, keys_file: Path) -> DriveSpec:
    """A drive whose server has gone."""
    monkeypatch.setattr("primer_resources.s3.RETRIES", 0)
    monkeypatch.setattr("primer_resources.document_store.s3_drive.RETRIES", 0)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    server.stop()
    return DriveSpec("s3://bucket/prefix", "us-east-1", f"http://{host}:{port}", f"file:{keys_file}")


def test_a_server_that_is_gone_is_the_systems_fault(dead_server: DriveSpec, tmp_path: Path) -> None:
    drive = open_drive(dead_server, Path("/"))
    asks: list[Callable[[], object]] = [
        lambda: drive.head("a"),
        lambda: drive.get("a"),
        lambda: drive.create("a", b"x"),
        lambda: drive.replace("a", b"x"),
        lambda: drive.fetch("a", tmp_path / "f"),
        lambda: drive.delete(["a", "b"]),
        lambda: drive.copy("a", drive, "b"),
        lambda: list(drive.list()),
    ]
    for ask in asks:
        with pytest.raises(SystemFault, match=r"drive s3://bucket/prefix at http.* failed at") as caught:
            ask()
        assert not isinstance(caught.value, ObjectGone)
        assert "SECRETKEY" not in str(caught.value)


def test_a_server_that_refuses_the_keys_calls_no_object_missing(radosgw_place: Place, keys_file: Path, tmp_path: Path) -> None:
    spec = radosgw_place.make_spec()
    set_up_drive(spec, Path("/")).create("a", b"x")
    drive = open_drive(replace(spec, credentials_ref=f"file:{keys_file}"), Path("/"))
    asks: list[Callable[[], object]] = [
        lambda: drive.head("b"),
        lambda: drive.get("a"),
        lambda: drive.create("a", b"x"),
        lambda: drive.replace("a", b"x"),
        lambda: drive.fetch("a", tmp_path / "f"),
        lambda: drive.delete(["a"]),
        lambda: drive.copy("a", drive, "b"),
        lambda: list(drive.list()),
        lambda: probe(drive),
    ]
    for ask in asks:
        with pytest.raises(SystemFault, match=rf"refused the credentials \(file:{keys_file}\)") as caught:
            ask()
        assert not isinstance(caught.value, ObjectGone)
        assert "SECRETKEY" not in str(caught.value)


def test_keys_that_are_refused_are_named_and_read_anew_once_they_are_rotated(keys_file: Path, tmp_path: Path) -> None:
    with s3_server() as bucket:
        bucket.key_id = "ROTATED"
        bucket.put("prefix/a", b"x")
        drive = open_drive(DriveSpec("s3://bucket/prefix", "", bucket.base, f"file:{keys_file}"), Path("/"))
        asks: list[Callable[[], object]] = [
            lambda: drive.head("a"),
            lambda: drive.get("a"),
            lambda: drive.fetch("a", tmp_path / "f"),
            lambda: list(drive.list()),
        ]
        for ask in asks:
            with pytest.raises(SystemFault, match=rf"refused the credentials \(file:{keys_file}\)") as caught:
                ask()
            assert "SECRETKEY" not in str(caught.value)
        for ask in asks:
            keys_file.write_text(KEYS)
            drive = open_drive(DriveSpec("s3://bucket/prefix", "", bucket.base, f"file:{keys_file}"), Path("/"))
            keys_file.write_text("ROTATED:KEY")
            assert ask()


def test_a_secret_that_is_no_pair_of_keys_is_not_shown(keys_file: Path) -> None:
    spec = DriveSpec("s3://bucket/prefix", credentials_ref=f"file:{keys_file}")
    keys_file.write_text("hunter2")
    with pytest.raises(PrimerError, match="no ACCESS_KEY_ID:SECRET_ACCESS_KEY") as caught:
        open_drive(spec, Path("/"))
    assert "hunter2" not in str(caught.value)
    keys_file.write_text("")
    with pytest.raises(PrimerError, match="keys are empty"):
        open_drive(spec, Path("/"))


def test_a_folder_that_is_not_there_is_not_made_by_opening_it(tmp_path: Path) -> None:
    with pytest.raises(SystemFault, match=r"folder of drive .*gone is not there; mount it"):
        open_drive(DriveSpec("gone"), tmp_path)
    assert not (tmp_path / "gone").exists()
