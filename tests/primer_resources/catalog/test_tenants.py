"""Tenants and their drives in the catalog."""

import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from primer_core.drives import DriveSpec
from primer_core.failures import PrimerError
from primer_core.stored_states import DriveKind
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.schema import accounts, drives
from primer_resources.catalog.tenants import Tenant
from primer_resources.clock import SystemClock
from tests.primer_resources.catalog.world import SOURCE, TENANT, World, drives_of, source

S3 = {
    DriveKind.INTAKE: DriveSpec("s3://in/acme", "eu-central-1", "http://h:1", "env:KEYS"),
    DriveKind.PIPELINE: DriveSpec("s3://out/acme", "eu-central-1", "http://h:1", "file:/keys"),
}


def test_a_tenant_comes_back_with_both_drives(world: World) -> None:
    assert world.catalog.tenants.add("rival", S3)
    assert world.catalog.tenants.find("rival") == world.catalog.tenants.get("rival") == Tenant("rival", True, S3)
    assert world.catalog.tenants.all() == [Tenant(TENANT, True, drives_of(TENANT)), Tenant("rival", True, S3)]
    assert world.catalog.tenants.find("nobody") is None
    with pytest.raises(PrimerError, match="tenant 'nobody' is unknown; known tenants: acme, rival"):
        world.catalog.tenants.get("nobody")


def test_the_same_tenant_again_changes_nothing_and_another_is_refused(world: World) -> None:
    assert not world.catalog.tenants.add(TENANT, drives_of(TENANT))
    before = world.snapshot()
    with pytest.raises(PrimerError, match="'acme' exists already with other drives; `primer tenant set acme`"):
        world.catalog.tenants.add(TENANT, S3)
    assert world.snapshot() == before


def test_a_tenant_without_drives_is_completed_and_keeps_its_state(world: World) -> None:
    with world.catalog.database.begin() as connection:
        connection.execute(accounts.insert(), {"tenant_id": "old", "active": False})
        connection.execute(drives.insert(), {"tenant_id": "old", "kind": "intake", "url": "/wrong"})
    assert world.catalog.tenants.get("old") == Tenant("old", False, {DriveKind.INTAKE: DriveSpec("/wrong")})
    assert world.catalog.tenants.add("old", drives_of("old"))
    assert world.catalog.tenants.get("old") == Tenant("old", False, drives_of("old"))


def test_drives_that_overlap_leave_no_tenant_behind(world: World) -> None:
    world.catalog.tenants.add("rival", S3)
    before = world.snapshot()
    for wanted in (
        S3,
        {**drives_of("third"), DriveKind.INTAKE: DriveSpec("s3://in", endpoint="http://h:1")},
        {**drives_of("third"), DriveKind.INTAKE: DriveSpec("/drives/acme/pipeline/below")},
        {kind: DriveSpec("/one/folder") for kind in DriveKind},
    ):
        with pytest.raises(PrimerError, match="would share objects with drive"):
            world.catalog.tenants.add("third", wanted)
    with pytest.raises(PrimerError, match="would share objects with drive rival:intake"):
        world.catalog.tenants.set_drives(TENANT, {DriveKind.PIPELINE: S3[DriveKind.INTAKE]})
    assert world.snapshot() == before


def test_two_that_ask_for_one_place_at_once_do_not_both_get_it(world_url: str) -> None:
    start = threading.Barrier(4)

    def add(name: str) -> bool:
        catalog = Catalog(world_url, SystemClock(), Random(1))
        try:
            start.wait(30)
            wanted = {kind: DriveSpec(f"/shared/{'' if name < 'c' else name}/{kind}") for kind in DriveKind}
            return catalog.tenants.add(name, wanted)
        except PrimerError as error:
            return "would share objects" not in str(error)
        finally:
            catalog.close()

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(add, ["a", "b", "c", "d"]))
    assert (sum(won[:2]), won[2:]) == (1, [True, True])


def test_an_active_tenants_drive_keeps_its_place(world: World) -> None:
    tenants = world.catalog.tenants
    tenants.add("rival", S3)
    rotated = DriveSpec("s3://in/acme/", "us-east-1", "http://h:1/", "env:NEW")
    tenants.set_drives("rival", {DriveKind.INTAKE: rotated})
    assert tenants.get("rival").drives == {**S3, DriveKind.INTAKE: rotated}
    moved = DriveSpec("s3://elsewhere/acme")
    with pytest.raises(PrimerError, match=r"'rival' is active, .*`primer tenant deactivate rival` before its intake drive becomes another"):
        tenants.set_drives("rival", {DriveKind.INTAKE: moved})
    tenants.set_active("rival", False)
    tenants.set_drives("rival", {DriveKind.INTAKE: moved})
    assert tenants.get("rival") == Tenant("rival", False, {**S3, DriveKind.INTAKE: moved})
    with pytest.raises(PrimerError, match="'nobody' is unknown"):
        tenants.set_drives("nobody", S3)


def test_sources_of_an_inactive_tenant_are_not_read_and_are_listed_in_full_afterwards(world: World) -> None:
    tenants, sources = world.catalog.tenants, world.catalog.sources
    tenants.add("rival", S3)
    sources.add(source("rivals", tenant_id="rival"))
    assert tenants.set_active(TENANT, False)
    assert not tenants.set_active(TENANT, False)
    assert (tenants.inactive(), tenants.is_active(TENANT), tenants.is_active("nobody")) == (frozenset({TENANT}), False, False)
    assert [each.source_id for each in sources.active()] == ["rivals"]
    with pytest.raises(PrimerError, match="tenant 'acme' is inactive; `primer tenant activate acme`"):
        tenants.require_active(TENANT)
    tenants.require_active("rival")
    scan = sources.acquire(SOURCE, "run", world.catalog.now() - world.catalog.now())
    assert scan is not None
    sources.finish(SOURCE, scan[1], world.catalog.now(), None)
    assert sources.get(SOURCE).asked_at is None
    assert tenants.set_active(TENANT, True)
    assert [each.source_id for each in sources.active()] == [SOURCE, "rivals"]
    assert sources.get(SOURCE).asked_at is not None
    assert sources.get(SOURCE).last_reconciled_at is None
    assert sources.get("rivals").asked_at is None
    with pytest.raises(PrimerError, match="'nobody' is unknown"):
        tenants.set_active("nobody", True)
