"""The object_store connector against an S3 server: listing, streaming, refusals, notifications."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store

from primer_core.failures import DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_core.ids import content_hash
from primer_core.stages import Operation
from primer_resources.connectors.base import Fetched, ListedItem
from primer_resources.connectors.object_store import ObjectStoreConnector, ObjectStoreSettings
from tests.primer_resources.catalog.world import World
from tests.radosgw import RadosGateway
from tests.s3_endpoint import S3Endpoint
from tests.source_bench import Bench


@pytest.fixture
def bucket(s3: S3Endpoint) -> S3Store:
    """A store to fill a bucket of its own."""
    return s3.store(s3.make_bucket())


@pytest.fixture
def open_bucket(s3: S3Endpoint, bucket: S3Store, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("BUCKET_KEYS", f"{s3.key_id}:{s3.secret}")

    def opened(prefix: str = "", **settings: Any) -> ObjectStoreConnector:
        url = f"s3://{bucket.config['bucket']}/{prefix}"
        values = {"url": url, "endpoint": s3.url, "groups": ["everyone"], **settings}
        return ObjectStoreConnector(ObjectStoreSettings.model_validate(values), "env:BUCKET_KEYS", Path())

    return opened


def test_objects_below_the_prefix_are_listed_over_pages_and_fetched(
    bucket: S3Store, open_bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("primer_resources.connectors.object_store.LIST_PAGE", 3)
    for number in range(8):
        obstore.put(bucket, f"docs/{number} über.txt", b"text %d" % number)
    obstore.put(bucket, "docs-old/x.txt", b"another prefix")
    connector = open_bucket("docs/")
    listing = connector.list()
    items = list(listing)
    assert [item.path for item in items] == [f"{number} über.txt" for number in range(8)]
    assert (listing.problems, listing.cursor) == ((), None)
    assert items[3].uri == f"s3://{bucket.config['bucket']}/docs/3%20%C3%BCber.txt"
    fetched = connector.fetch(items[3], tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"text 3"
    assert (fetched.fingerprint, fetched.modified_ns) == (items[3].fingerprint, items[3].modified_ns)


def test_a_sync_settles_edits_and_deletes(bucket: S3Store, open_bucket: Any, tmp_path: Path) -> None:
    world = World(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    world.make()
    bench = Bench(world, tmp_path)
    for name in ("a", "b", "c"):
        obstore.put(bucket, f"{name}.txt", name.encode())
    bench.sync(open_bucket())
    obstore.put(bucket, "a.txt", b"A longer text.")
    obstore.delete(bucket, "b.txt")
    assert bench.sync(open_bucket()).why_listed == "it has no cursor of a change feed"
    assert bench.living() == {"a.txt": content_hash(b"A longer text."), "c.txt": content_hash(b"c")}


def test_a_sync_of_an_unchanged_bucket_reads_nothing_again(
    bucket: S3Store, open_bucket: Any, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    fetch = ObjectStoreConnector.fetch

    def count(connector: ObjectStoreConnector, item: ListedItem, target: Path) -> Fetched:
        read.append(item.path)
        return fetch(connector, item, target)

    monkeypatch.setattr(ObjectStoreConnector, "fetch", count)
    for name in ("a.txt", "b.txt"):
        obstore.put(bucket, name, name.encode())
    for _ in range(2):
        bench.sync(open_bucket())
    assert sorted(read) == ["a.txt", "b.txt"]


def test_an_object_over_the_limit_is_refused_before_it_is_read_and_one_that_is_gone_is_transient(
    bucket: S3Store, open_bucket: Any, tmp_path: Path
) -> None:
    obstore.put(bucket, "big.bin", b"\0" * (1 << 20) + b"\0")
    connector = open_bucket(max_file_mb=1)
    item = next(iter(connector.list()))
    with pytest.raises(DocumentFault, match="over the limit") as caught:
        connector.fetch(item, tmp_path / "copy")
    assert caught.value.reason is Reason.TOO_LARGE
    obstore.delete(bucket, "big.bin")
    with pytest.raises(Transient, match="is gone"):
        connector.fetch(item, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_bucket_that_is_not_there_and_a_store_that_does_not_answer_say_so(open_bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemFault, match="no such bucket"):
        list(open_bucket(url="s3://nowhere-at-all").list())
    monkeypatch.setattr("primer_resources.s3.RETRIES", 0)
    with pytest.raises(Transient, match="does not answer"):
        list(open_bucket(endpoint="http://127.0.0.1:9").list())


def test_a_key_that_cannot_be_listed_is_named_with_the_fix(s3: S3Endpoint, bucket: S3Store, open_bucket: Any) -> None:
    obstore.put(bucket, "a.txt", b"text")
    s3.client().put_object(Bucket=bucket.config["bucket"], Key="b//c.txt", Body=b"text")
    with pytest.raises(SystemFault, match=r"b//c.txt.*rename that object"):
        list(open_bucket().list())


def test_a_key_that_only_stands_for_a_folder_is_no_document(s3: S3Endpoint, bucket: S3Store, open_bucket: Any) -> None:
    obstore.put(bucket, "a/page.txt", b"text")
    obstore.put(bucket, "empty.txt", b"")
    s3.client().put_object(Bucket=bucket.config["bucket"], Key="a/", Body=b"")
    listing = open_bucket().list()
    assert [item.path for item in listing] == ["a/page.txt", "empty.txt"]
    assert (listing.problems, dict(listing.skipped)) == ((), {"folder marker": 1})


def test_a_secret_that_is_no_pair_is_not_shown(open_bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUCKET_KEYS", "only-one-part")
    with pytest.raises(PrimerError, match="no ACCESS_KEY_ID:SECRET_ACCESS_KEY") as caught:
        open_bucket()
    assert "only-one-part" not in str(caught.value)


@pytest.mark.parametrize("pair", ["primer:wrong-secret", "nobody:primer-secret"])
def test_a_real_server_refuses_wrong_keys_and_they_are_named_not_shown(
    radosgw: RadosGateway, monkeypatch: pytest.MonkeyPatch, pair: str
) -> None:
    monkeypatch.setenv("BUCKET_KEYS", pair)
    settings = ObjectStoreSettings(url=f"s3://{radosgw.s3.make_bucket()}", endpoint=radosgw.s3.url, groups=("everyone",))
    connector = ObjectStoreConnector(settings, "env:BUCKET_KEYS", Path())
    with pytest.raises(PrimerError, match=r"refused the credentials \(env:BUCKET_KEYS\)") as caught:
        list(connector.list())
    assert pair.split(":")[1] not in str(caught.value)
    with pytest.raises(PrimerError, match="refused the credentials"):
        connector.look("a.txt")


LISTED = b"""<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>kept</Name><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated>
<Contents><Key>a.txt</Key><LastModified>2026-06-01T12:00:00.000Z</LastModified><ETag>"abc"</ETag><Size>4</Size></Contents>
</ListBucketResult>"""


@pytest.fixture
def guarded() -> Iterator[str]:
    """A store that lists one object for those who sign with the key GOOD."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_good = "Credential=GOOD/" in self.headers.get("Authorization", "")
            body = LISTED if is_good else b"<Error><Code>InvalidAccessKeyId</Code></Error>"
            self.send_response_only(200 if is_good else 403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            is_good = "Credential=GOOD/" in self.headers.get("Authorization", "") and "closed" not in self.path
            self.send_response_only(200 if is_good else 403)
            for name, value in {"Last-Modified": "Mon, 01 Jun 2026 12:00:00 GMT", "ETag": '"abc"', "Content-Length": "4"}.items():
                self.send_header(name, value)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_keys_that_ran_out_are_read_anew_once_and_then_named_not_shown(
    guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("OLD:secret-one")
    settings = ObjectStoreSettings(url="s3://kept", endpoint=guarded, groups=("everyone",))
    connector = ObjectStoreConnector(settings, f"file:{keys}", Path())
    with pytest.raises(PrimerError, match=rf"refused the credentials \(file:{keys}\)") as caught:
        list(connector.list())
    assert "secret-one" not in str(caught.value)
    keys.write_text("GOOD:secret-two")
    assert [item.path for item in connector.list()] == ["a.txt"]


def test_a_look_shows_the_object_that_a_listing_shows(bucket: S3Store, open_bucket: Any) -> None:
    for key in ("docs/a b+c.txt", "docs/f/x.txt", "docs-old/x.txt", "docs", "docs/empty/"):
        obstore.put(bucket, key, b"text")
    connector = open_bucket("docs")
    items = {item.path: item for item in connector.list()}
    assert set(items) == {"a b+c.txt", "f/x.txt", "empty"}
    assert {path: connector.look(path) for path in items} == items
    for path in ("", "f", "f/", "x.txt", "a b+c.txt/", "../docs-old/x.txt", "f//x.txt", "/f/x.txt"):
        assert connector.look(path) is None, path


def test_an_object_in_a_bucket_that_is_gone_is_not_called_gone(open_bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemFault, match="no such bucket"):
        open_bucket(url="s3://nowhere-at-all").look("a.txt")
    monkeypatch.setattr("primer_resources.s3.RETRIES", 0)
    with pytest.raises(Transient, match="does not answer"):
        open_bucket(endpoint="http://127.0.0.1:9").look("a.txt")


def test_a_look_reads_keys_that_ran_out_anew(guarded: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("OLD:secret-one")
    connector = ObjectStoreConnector(ObjectStoreSettings(url="s3://kept", endpoint=guarded, groups=("everyone",)), f"file:{keys}", Path())
    with pytest.raises(PrimerError, match="refused the credentials"):
        connector.look("a.txt")
    keys.write_text("GOOD:secret-two")
    assert connector.look("a.txt") == next(iter(connector.list()))
    with pytest.raises(Transient, match=r"closed.txt may not be looked at; grant s3:GetObject"):
        connector.look("closed.txt")


def test_events_of_this_prefix_become_changes_and_the_others_are_left_out_with_a_reason(open_bucket: Any, bucket: S3Store) -> None:
    connector = open_bucket("docs")
    name = bucket.config["bucket"]

    def record(event: str, key: str, bucket_name: str | None = name, time: str = "2026-06-01T12:00:00.500Z") -> dict[str, Any]:
        thing = {"key": key, "eTag": "abc", "sequencer": "0055AED6DCD90281E5"}
        return {"eventName": event, "eventTime": time, "s3": {"bucket": {"name": bucket_name}, "object": thing}}

    records = [
        record("ObjectCreated:Put", "docs/a+b%C3%BC.txt"),
        record("s3:ObjectRemoved:Delete", "docs/x.txt"),
        record("ObjectCreated:Put", "docs-old/x.txt"),
        record("ObjectCreated:Put", "docs/x.txt", "another"),
        record("ObjectRestore:Post", "docs/y.txt"),
        record("ObjectCreated:Put", "docs/folder/"),
    ]
    told = connector.decode({}, json.dumps({"Records": records}).encode())
    assert [(change.operation, change.path) for change in told] == [(Operation.UPSERT, "a bü.txt"), (Operation.DELETE, "x.txt")]
    assert told[0].event_time == datetime(2026, 6, 1, 12, 0, 0, 500_000, UTC)
    assert told.ignored == (
        "docs-old/x.txt does not lie below docs/, which this source reads",
        f"bucket another is not {name}, which this source reads",
        "ObjectRestore:Post changes no content",
        "docs/folder/ stands for a folder",
    )
    for body in (b"{}", json.dumps({"Records": [record("ObjectCreated:Put", "docs/x", time="2026-06-01T12:00:00")]}).encode()):
        with pytest.raises(PrimerError, match="not that of S3"):
            connector.decode({}, body)
