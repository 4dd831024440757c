"""The suite for source bytes: kept once a content, whatever happens meanwhile."""

import hashlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from primer_core.drives import DriveSpec
from primer_core.failures import SystemFault
from primer_core.ids import EMPTY_CONTENT, content_hash
from primer_core.lanes import Lane
from primer_core.stored_states import DriveKind
from primer_resources.catalog.contents import Contents
from primer_resources.catalog.schema_bodies import contents
from primer_resources.document_store import Arrived
from tests.conftest import CORPUS
from tests.counting_proxy import Traffic, counting_proxy
from tests.drive_racers import RACERS
from tests.primer_resources.catalog.world import TENANT
from tests.radosgw import RadosGateway
from tests.store_racers import race_to_keep
from tests.store_stand import BYTES, HASH, Stand, Stands


def some_files() -> list[Path]:
    """The corpus's files where there is a corpus, the project's own samples else."""
    root = CORPUS / "files" if (CORPUS / "manifest.csv").is_file() else Path(__file__).parents[2] / "samples"
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_every_file_comes_back_with_its_sha256(make_stand: Stands, tmp_path: Path) -> None:
    every = some_files()
    assert len(every) > 10
    for kind, files in (("folder-sqlite", every), ("radosgw-sqlite", every[::40])):
        stand, hashes = make_stand(kind, None), []
        for path in files:
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            stand.tenant.keep(Arrived(path, sha256, path.stat().st_size, "any", Lane.FAST))
            hashes.append(sha256)
        for sha256 in hashes:
            assert hashlib.sha256(stand.fetched(sha256)).hexdigest() == sha256
        filled = set(hashes) - {EMPTY_CONTENT}
        assert len(stand.intake_keys()) == len(filled), "files of one content are one object"


@pytest.mark.parametrize("body", [BYTES, bytes(range(256)) * 50_000])
def test_source_bytes_come_back_as_they_went_in(empty: Stand, body: bytes) -> None:
    key = empty.keep(body)
    assert empty.fetched(content_hash(body)) == body
    assert empty.intake_keys() == [key]


def test_an_empty_file_writes_no_object_and_is_there_all_the_same(empty: Stand) -> None:
    for _ in range(2):
        empty.tenant.keep(empty.file(b""))
    assert empty.intake_keys() == []
    assert empty.fetched(EMPTY_CONTENT) == b""
    (row,) = empty.world.rows(contents)
    assert (row.content_hash, row.size, row.object) == (EMPTY_CONTENT, 0, None)


def test_bytes_are_kept_once_whatever_their_number(empty: Stand) -> None:
    keys = {empty.keep(BYTES) for _ in range(3)}
    assert empty.intake_keys() == sorted(keys)
    assert len(keys) == 1


def test_bytes_that_vanished_are_stored_again_under_their_key(stand: Stand) -> None:
    key = stand.object_of(HASH)
    stand.tenant.intake.delete([key])
    assert stand.keep(BYTES) == key
    assert stand.intake_keys() == [key]
    assert stand.fetched(HASH) == BYTES


def test_force_writes_what_stands_there_again(stand: Stand) -> None:
    key = stand.object_of(HASH)
    stand.tenant.intake.replace(key, b"rotten")
    stand.keep(BYTES)
    assert stand.tenant.intake.get(key) == b"rotten", "without force only whether it is there is looked at"
    assert stand.keep(BYTES, force=True) == key
    assert stand.fetched(HASH) == BYTES
    assert stand.intake_keys() == [key]


def test_a_store_that_got_other_bytes_than_were_sent_does_not_take_them(make_stand: Stands, radosgw: RadosGateway) -> None:
    with counting_proxy(radosgw.s3.url, Traffic(), (b"the bytes", b"THE BYTES")) as endpoint:
        stand = make_stand("radosgw-sqlite", endpoint)
        with pytest.raises(SystemFault, match="failed at"):
            stand.keep(BYTES)
        assert stand.intake_keys() == []
        assert stand.world.rows(contents) == []
        key = stand.keep(b"other bytes")
        stand.world.catalog.contents.object_of(TENANT, content_hash(b"other bytes"))
        with pytest.raises(SystemFault, match="failed at"):
            stand.tenant.intake.replace(key, BYTES)
        assert stand.tenant.intake.get(key) == b"other bytes"


def test_a_content_that_is_freed_while_it_is_looked_at_is_stored_anew_and_nothing_is_left_behind(stand: Stand) -> None:
    class Freeing(Contents):
        is_done = False

        def object_of(self, tenant_id: str, content_hash: str) -> str | None:
            found = super().object_of(tenant_id, content_hash)
            if not self.is_done:
                self.is_done = True
                stand.forget_content()
            return found

    before = stand.object_of(HASH)
    replace(stand.tenant, contents=Freeing(stand.world.catalog.database)).keep(stand.file(BYTES))
    assert stand.object_of(HASH) != before
    assert stand.intake_keys() == [stand.object_of(HASH)]
    assert stand.fetched(HASH) == BYTES


def test_two_tenants_with_equal_bytes_have_two_contents(stand: Stand) -> None:
    stand.world.catalog.tenants.add("umbrella", {kind: DriveSpec(f"/drives/umbrella/{kind}") for kind in DriveKind})
    other = replace(stand.tenant, tenant_id="umbrella")
    other.keep(stand.file(BYTES))
    assert len(stand.intake_keys()) == 2
    assert stand.world.catalog.contents.object_of("umbrella", HASH) != stand.object_of(HASH)


def test_of_eight_processes_that_keep_the_same_contents_one_wins_each(empty: Stand, pool: ProcessPoolExecutor) -> None:
    bodies = [b"content %d" % number for number in range(20)]
    won = race_to_keep(pool, empty.world.catalog.database.url.render_as_string(hide_password=False), empty.specs, bodies)
    assert len(won) == RACERS
    assert sorted(each for theirs in won for each in theirs) == sorted(content_hash(body) for body in bodies)
    rows = empty.world.rows(contents)
    assert len(rows) == len(bodies)
    assert empty.intake_keys() == sorted(row.object for row in rows), "what the losers wrote is gone"
    for body in bodies:
        assert empty.fetched(content_hash(body)) == body
