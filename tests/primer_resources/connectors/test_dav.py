"""The drive connector over WebDAV against a real server: only what was told wholly counts, and no credentials go astray."""

import os
import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.failures import Deferred, DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_resources.connectors import dav_walk
from primer_resources.connectors.dav import DavConnector, DavSettings
from primer_resources.connectors.dav_paths import Elsewhere, encode, name_in, shown
from primer_resources.connectors.dav_xml import NotWhole, read_multistatus
from primer_resources.connectors.drive import DriveSettings
from primer_resources.connectors.registry import check_source
from tests.dav_server import MOUNT, DavServer, Environ, dav_server
from tests.source_bench import Bench

OLD = 1_700_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "share"
    made.mkdir()
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[DavServer]:
    with dav_server(folder) as made:
        yield made


def put(server: DavServer, path: str, text: str) -> None:
    place = server.folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    os.utime(place, (OLD, OLD))


def open_drive(server: DavServer, credentials: str | None = None, waited: list[float] | None = None, **settings: Any) -> DavConnector:
    sleep = waited.append if waited is not None else (lambda _: None)
    values = {"root": server.root, "groups": ["staff"], **settings}
    return DavConnector(DavSettings.model_validate(values), credentials, Path(), sleep)


def listed(connector: DavConnector) -> list[str]:
    listing = connector.list()
    paths = [item.path for item in listing]
    assert listing.problems == ()
    return paths


def on_answer(server: DavServer, method: str, path: str, old: bytes, new: bytes) -> None:
    """Replace bytes in the answers to one path."""

    def edit(environ: Environ, body: bytes) -> bytes:
        is_it = environ["REQUEST_METHOD"] == method and environ["PATH_INFO"].rstrip("/") == f"{MOUNT}/{path}".rstrip("/")
        assert not is_it or old in body
        return body.replace(old, new) if is_it else body

    server.edit = edit


def fill(server: DavServer) -> None:
    for path in ("a/one.txt", "b/two.txt", "c/three.txt", "d/four.txt", "top.txt"):
        put(server, path, f"Text of {path}.")


@pytest.mark.parametrize(
    ("status", "told"), [(500, "HTTP 500"), (404, "answered 404"), (403, "answered 403"), (200, "not 207"), (301, "another service")]
)
def test_a_collection_that_is_not_told_deletes_nothing(server: DavServer, bench: Bench, status: int, told: str) -> None:
    fill(server)
    bench.sync(open_drive(server))
    before = bench.living()
    assert len(before) == 5
    (server.folder / "d/four.txt").unlink()
    server.refused = {f"{MOUNT}/c/": status}
    if status == 301:
        server.refused, server.redirects = {}, {f"{MOUNT}/c/": "http://127.0.0.2:1/c/"}
    bench.world.pass_time(timedelta(days=1))
    turn = bench.sync(open_drive(server))
    assert turn.listed is not None
    assert not turn.listed.is_complete
    assert bench.living() == before
    assert told in (bench.world.catalog.sources.get("handbook").last_error or "")
    server.refused, server.redirects = {}, {}
    bench.sync(open_drive(server))
    assert set(bench.living()) == set(before) - {"d/four.txt"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b"</D:multistatus>", b"", "no whole XML"),
        (b"multistatus", b"status", "no multistatus"),
        (b"HTTP/1.1 200 OK", b"HTTP/1.1 507 Insufficient Storage", "507"),
        (b"/three.txt", b"/%2e%2e", "leads elsewhere"),
        (b"/three.txt", b"/deep/three.txt", "not directly inside"),
    ],
)
def test_a_multistatus_that_is_not_whole_is_no_evidence(server: DavServer, old: bytes, new: bytes, told: str) -> None:
    fill(server)
    on_answer(server, "PROPFIND", "c", old, new)
    listing = open_drive(server).list()
    paths = [item.path for item in listing]
    assert {"a/one.txt", "b/two.txt", "d/four.txt", "top.txt"} <= set(paths)
    assert told in " ".join(listing.problems)


def test_a_resource_whose_properties_could_not_be_told_is_a_problem_and_one_without_them_is_not() -> None:
    def answer(status: str) -> bytes:
        good = '<D:propstat><D:prop><D:resourcetype/><D:getetag>"1"</D:getetag></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>'
        bad = f"<D:propstat><D:prop><D:getlastmodified/></D:prop><D:status>{status}</D:status></D:propstat>"
        return f'<D:multistatus xmlns:D="DAV:"><D:response><D:href>/x</D:href>{good}{bad}</D:response></D:multistatus>'.encode()

    assert read_multistatus([answer("HTTP/1.1 404 Not Found")])[0].fingerprint == '"1"'
    assert read_multistatus([answer("HTTP/1.1 403 Forbidden")])[0].error == "HTTP/1.1 403 Forbidden"
    with pytest.raises(NotWhole, match="document type"):
        read_multistatus([b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + answer("HTTP/1.1 404 &e;")])


@pytest.mark.parametrize(
    ("properties", "fingerprint"),
    [
        ('<getetag>"abc"</getetag><getcontentlength>5</getcontentlength>', '"abc"'),
        ("<getetag>abc</getetag>", '"abc"'),
        ("<getcontentlength>5</getcontentlength><getlastmodified>Tue, 14 Nov 2023 22:13:20 GMT</getlastmodified>", f"5:{OLD}000000000"),
        ("<getcontentlength>5</getcontentlength><getlastmodified>2023-11-14T22:13:20Z</getlastmodified>", f"5:{OLD}000000000"),
        ('<getetag>W/"a"</getetag><getcontentlength>5</getcontentlength>', 'W/"a"5:0'),
        ("<getcontentlength>5</getcontentlength>", ""),
    ],
)
def test_a_fingerprint_is_what_changes_with_the_bytes(properties: str, fingerprint: str) -> None:
    xml = (
        '<multistatus xmlns="DAV:"><response><href>/x</href><propstat><prop><resourcetype/>'
        f"{properties}</prop><status>HTTP/1.1 200 OK</status></propstat></response></multistatus>"
    )
    assert read_multistatus([xml[:50].encode(), xml[50:].encode()])[0].fingerprint == fingerprint


def test_a_file_without_time_and_entity_tag_is_listed_with_a_fault(server: DavServer) -> None:
    fill(server)
    server.edit = lambda environ, body: body.replace(b"getetag", b"x").replace(b"getlastmodified", b"y")
    items = list(open_drive(server).list())
    assert {item.fault for item in items} == {Reason.UNREADABLE}


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("/files/caf%C3%A9/a%20b.txt", "a%20b.txt"),
        ("http://proxy-outside:80/files/caf%C3%A9/a", None),
        ("http://dav.example:8080/files/caf%c3%a9/a/", "a"),
        ("https://dav.example/files/cafe%CC%81/a", "a"),
        ("a(1).txt", "a%281%29.txt"),
        ("/files/caf%C3%A9", ""),
        ("/files/caf%C3%A9/", ""),
        ("/files/caf%C3%A9/a%2Fb", "a%2Fb"),
        ("/files", None),
        ("/files/other/a", None),
        ("/files/caf%C3%A9/x/a", None),
        ("/files/caf%C3%A9/../../etc", None),
        ("/files/caf%C3%A9/%2e%2e", None),
        ("http://[bad", None),
    ],
)
def test_an_address_means_what_is_directly_inside_or_nothing(href: str, name: str | None) -> None:
    collection = urlsplit("http://dav.example:8080/files/caf%C3%A9/")
    if name is None:
        with pytest.raises(Elsewhere):
            name_in(collection, href)
    else:
        assert name_in(collection, href) == name


@given(st.text(min_size=1).filter(lambda name: "/" not in name and name.isprintable() and name not in (".", "..")))
def test_every_name_survives_its_address(name: str) -> None:
    found = name_in(urlsplit("http://dav.example/files/"), f"/files/{encode(name.replace('%', '%25'))}")
    assert shown(found) == unicodedata.normalize("NFC", name.replace("\\", r"\x5c"))


def test_names_that_differ_in_normal_form_alone_are_two_documents_and_one_is_shown_in_nfc(server: DavServer) -> None:
    nfd = unicodedata.normalize("NFD", "café.txt")
    put(server, nfd, "Decomposed.")
    assert listed(open_drive(server)) == ["café.txt"]
    assert open_drive(server).look("café.txt") is not None
    put(server, "café.txt", "Composed.")
    assert set(listed(open_drive(server))) == {"café.txt", nfd}


def test_a_root_that_is_no_collection_or_tells_nothing_stops_the_sync(server: DavServer, bench: Bench) -> None:
    fill(server)
    bench.sync(open_drive(server))
    before = bench.living()
    with pytest.raises(SystemFault, match="does not say that it is a folder"):
        listed(open_drive(server, root=f"{server.root}/top.txt"))
    server.edit = lambda environ, body: b'<multistatus xmlns="DAV:"/>'
    bench.world.pass_time(timedelta(days=1))
    with pytest.raises(SystemFault, match="does not say that it is a folder"):
        bench.sync(open_drive(server))
    assert bench.living() == before


def test_a_removed_child_is_found_whatever_its_parents_time_says(server: DavServer) -> None:
    fill(server)
    os.utime(server.folder / "a", (OLD, OLD))
    assert "a/one.txt" in listed(open_drive(server))
    (server.folder / "a/one.txt").unlink()
    os.utime(server.folder / "a", (OLD, OLD))
    assert "a/one.txt" not in listed(open_drive(server))


def test_a_folder_inside_itself_ends(server: DavServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dav_walk, "DEEPEST", 6)
    put(server, "a/one.txt", "One.")
    (server.folder / "a" / "again").symlink_to(server.folder / "a")
    listing = open_drive(server).list()
    assert "a/one.txt" in [item.path for item in listing]
    assert "more than 6 levels deep" in listing.problems[0]


def test_junk_and_hidden_names_are_left_out_and_counted(server: DavServer) -> None:
    for path in ("plan.txt", ".env", ".git/config", "Thumbs.db", "~$plan.docx"):
        put(server, path, "x")
    listing = open_drive(server).list()
    assert [item.path for item in listing] == ["plan.txt"]
    assert listing.skipped == {"hidden": 1, "junk": 3}
    assert listed(open_drive(server, include_hidden=True)) == [".env", "plan.txt"]
    assert open_drive(server).look(".env") is None


def test_a_renamed_file_stays_the_same_document(server: DavServer, bench: Bench) -> None:
    fill(server)
    bench.sync(open_drive(server))
    doc_id = bench.row("a/one.txt").doc_id
    (server.folder / "a/one.txt").rename(server.folder / "b/uno.txt")
    bench.world.pass_time(timedelta(days=1))
    bench.sync(open_drive(server))
    assert bench.row("b/uno.txt").doc_id == doc_id
    assert bench.sync_report.renamed == 1


def test_one_file_that_is_forbidden_stops_no_other(server: DavServer, bench: Bench) -> None:
    fill(server)
    server.before = lambda environ: server.refused.update({f"{MOUNT}/b/two": 403}) if environ["REQUEST_METHOD"] == "GET" else None
    bench.sync(open_drive(server))
    assert bench.row("b/two.txt").reason == Reason.UNREADABLE
    assert sorted(path for path, content in bench.living().items() if content is not None) == [
        "a/one.txt",
        "c/three.txt",
        "d/four.txt",
        "top.txt",
    ]


def test_a_file_that_changed_since_it_was_listed_is_read_as_it_is_now(server: DavServer, tmp_path: Path) -> None:
    put(server, "plan.txt", "The old plan.")
    connector = open_drive(server)
    item = next(iter(connector.list()))
    put(server, "plan.txt", "The new and longer plan.")
    fetched = connector.fetch(item, tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "The new and longer plan."
    now = next(iter(connector.list()))
    assert (fetched.fingerprint, fetched.modified_ns, fetched.size) == (now.fingerprint, now.modified_ns, now.size)


def test_a_file_that_keeps_changing_while_it_is_read_is_tried_again(server: DavServer, tmp_path: Path) -> None:
    put(server, "plan.txt", "The plan.")
    connector = open_drive(server)
    item = next(iter(connector.list()))

    def grow(environ: Environ, body: bytes) -> bytes:
        if environ["REQUEST_METHOD"] == "GET":
            put(server, "plan.txt", "x" * (100 + len(server.requests)))
        return body

    server.edit = grow
    with pytest.raises(Transient, match=r"plan\.txt changed while it was read"):
        connector.fetch(item, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_an_answer_that_breaks_off_is_never_a_document(server: DavServer, tmp_path: Path) -> None:
    put(server, "plan.txt", "The plan, in full.")
    connector = open_drive(server)
    item = next(iter(connector.list()))
    server.edit = lambda environ, body: body[:8] if environ["REQUEST_METHOD"] == "GET" else body
    with pytest.raises(Transient, match="changed while it was read"):
        connector.fetch(item, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_file_that_grew_over_the_limit_is_refused_while_it_is_read(server: DavServer, tmp_path: Path) -> None:
    put(server, "plan.txt", "The plan.")
    connector = open_drive(server, max_file_mb=1)
    item = next(iter(connector.list()))
    server.edit = lambda environ, body: b"x" * ((1 << 20) + 1) if environ["REQUEST_METHOD"] == "GET" else body
    with pytest.raises(DocumentFault, match=r"plan\.txt: it has more than 1048576 bytes") as caught:
        connector.fetch(item, tmp_path / "copy")
    assert caught.value.reason is Reason.TOO_LARGE
    assert not (tmp_path / "copy").exists()


def test_a_server_that_does_not_know_the_entity_tag_it_told_is_read_all_the_same(server: DavServer, tmp_path: Path) -> None:
    put(server, "plan.txt", "The plan.")
    connector = open_drive(server)
    item = next(iter(connector.list()))
    server.before = lambda environ: environ.update(HTTP_IF_MATCH='"what a proxy made of it"') if "HTTP_IF_MATCH" in environ else None
    connector.fetch(item, tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "The plan."


@pytest.mark.parametrize("digest", [False, True])
def test_a_user_and_password_are_given_as_the_server_asks(folder: Path, digest: bool, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("me:pass:word\n")
    with dav_server(folder, users={"me": "pass:word"}, digest=digest) as server:
        put(server, "plan.txt", "The plan.")
        connector = open_drive(server, f"file:{secret}")
        connector.fetch(next(iter(connector.list())), tmp_path / "copy")
        assert (tmp_path / "copy").read_text() == "The plan."
        assert {given.partition(" ")[0] for given in server.authorisations if given} == {"Digest" if digest else "Basic"}
        secret.write_text("me:wrong")
        with pytest.raises(PrimerError, match=rf"refused the credentials file:{secret}; renew") as caught:
            listed(open_drive(server, f"file:{secret}"))
        assert "wrong" not in str(caught.value)


def test_a_redirect_within_the_server_is_followed_and_one_to_another_gets_no_credentials(
    server: DavServer, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("token-1")
    server.token = "token-1"
    put(server, "plan.txt", "The plan.")
    server.redirects = {"/dav/": f"{MOUNT}/"}
    assert listed(open_drive(server, f"file:{secret}", root=f"{server.base}/dav")) == ["plan.txt"]
    connector = open_drive(server, f"file:{secret}")
    item = next(iter(connector.list()))
    with dav_server(folder) as other:
        server.redirects = {f"{MOUNT}/plan.txt": f"{other.root}/plan.txt", "/round": "/round", "/round/": "/round/"}
        with pytest.raises(DocumentFault, match="leads to another service"):
            connector.fetch(item, tmp_path / "copy")
        assert other.requests == []
    with pytest.raises(SystemFault, match="leads from one address to the next"):
        listed(open_drive(server, f"file:{secret}", root=f"{server.base}/round"))


def test_a_time_to_wait_counts_for_files_too_and_the_walk_ends_where_the_quota_does(server: DavServer, tmp_path: Path) -> None:
    fill(server)
    waited: list[float] = []
    connector = open_drive(server, waited=waited, throttle_quota="30s")
    items = list(connector.list())
    server.answers = [(429, {"Retry-After": "20"})]
    connector.fetch(items[0], tmp_path / "copy")
    assert waited == [20.0]
    server.answers = [(503, {"Retry-After": "11"})]
    with pytest.raises(Deferred, match=r"10 s are left of the 30 s"):
        connector.fetch(items[0], tmp_path / "copy")
    server.refused = {f"{MOUNT}/b/": 429}
    listing = open_drive(server, throttle_quota="1s").list()
    assert [item.path for item in listing] == ["a/one.txt"]
    assert "asks to wait" in listing.problems[0]


def test_the_access_file_opens_folders_and_names_those_that_are_not_there(server: DavServer, tmp_path: Path) -> None:
    fill(server)
    rules = tmp_path / "rules.yaml"
    rules.write_text("groups: [everyone]\nfolders: {a: [hr], nowhere: [board]}\n")
    listing = open_drive(server, access_file=rules).list()
    groups = {item.path: item.access.groups for item in listing}
    assert groups.pop("a/one.txt") == ("hr",)
    assert set(groups.values()) == {("everyone",)}
    assert listing.notices == ("the access file names folder 'nowhere', which is not on the drive: misspelt, or gone",)


def test_the_location_says_whether_a_drive_is_a_folder_or_on_a_server() -> None:
    assert isinstance(check_source("drive", {"root": "/srv/docs"}, None), DriveSettings)
    assert isinstance(check_source("drive", {"root": "https://dav.example/files"}, "env:DAV"), DavSettings)
    with pytest.raises(PrimerError, match="takes no credentials at /srv/docs"):
        check_source("drive", {"root": "/srv/docs"}, "env:DAV")
    with pytest.raises(PrimerError, match="include_hiden"):
        check_source("drive", {"root": "https://dav.example/files", "include_hiden": True}, None)
