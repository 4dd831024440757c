"""The drives of tenants: who is refused, and for how long what was found is kept."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from primer_core.drives import DriveSpec
from primer_core.failures import Deferred, PrimerError
from primer_core.stored_states import DriveKind
from primer_resources.catalog.tenants import Tenant
from primer_resources.document_store.drives import ACTIVE_FOR, REFUSED_FOR, TenantDrives, TenantRefused
from primer_resources.document_store.opening import open_drive
from tests.primer_resources.catalog.world import HandClock

MOMENT = timedelta(milliseconds=1)


@dataclass
class Accounts:
    """Tenants that a test changes, and how often they were looked up and a drive was opened."""

    folder: Path
    clock: HandClock = field(default_factory=HandClock)
    known: dict[str, Tenant] = field(default_factory=dict)
    looked: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def find(self, tenant_id: str) -> Tenant | None:
        self.looked.append(tenant_id)
        return self.known.get(tenant_id)

    def open(self, spec: DriveSpec) -> Any:
        self.opened.append(spec.url)
        return open_drive(spec, self.folder)

    def put(self, name: str, active: bool = True, kinds: tuple[DriveKind, ...] = tuple(DriveKind), root: str = "") -> None:
        specs: Mapping[DriveKind, DriveSpec] = {kind: DriveSpec(f"{root}{name}/{kind}") for kind in kinds}
        for spec in specs.values():
            (self.folder / spec.url).mkdir(parents=True, exist_ok=True)
        self.known[name] = Tenant(name, active, specs)


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    return Accounts(tmp_path)


@pytest.fixture
def drives(accounts: Accounts) -> TenantDrives:
    return TenantDrives(accounts.find, accounts.clock, accounts.open)


def test_each_tenant_has_its_own_two_drives(accounts: Accounts, drives: TenantDrives) -> None:
    accounts.put("acme")
    accounts.put("rival")
    for name in ("acme", "rival"):
        for kind in DriveKind:
            drives.of(name, kind).create("a", f"{name} {kind}".encode())
    for name in ("acme", "rival"):
        for kind in DriveKind:
            assert drives.of(name, kind).get("a") == f"{name} {kind}".encode()
    assert accounts.looked == ["acme", "rival"]
    assert len(accounts.opened) == 4


def test_tenants_without_drives_are_refused_with_what_to_do(accounts: Accounts, drives: TenantDrives) -> None:
    accounts.put("idle", active=False)
    accounts.put("bare", kinds=())
    accounts.put("half", kinds=(DriveKind.INTAKE,))
    for name, told in (
        ("nobody", r"tenant 'nobody' is unknown; .*primer tenant add nobody"),
        ("idle", "tenant 'idle' is inactive; `primer tenant activate idle`"),
        ("bare", "tenant 'bare' has no intake and no pipeline drive; `primer tenant add bare`"),
        ("half", "tenant 'half' has no pipeline drive"),
    ):
        for kind in DriveKind:
            with pytest.raises(TenantRefused, match=told) as caught:
                drives.of(name, kind)
            assert caught.value.tenant_id == name
    assert issubclass(TenantRefused, Deferred), "work that waits spends no attempt"
    assert accounts.opened == []


def test_what_was_found_lasts_five_minutes_and_a_refusal_five_seconds(accounts: Accounts, drives: TenantDrives) -> None:
    accounts.put("acme")
    drives.of("acme", DriveKind.INTAKE)
    accounts.put("acme", active=False)
    accounts.clock.moment += ACTIVE_FOR - MOMENT
    drives.of("acme", DriveKind.PIPELINE)
    accounts.clock.moment += MOMENT
    with pytest.raises(TenantRefused):
        drives.of("acme", DriveKind.INTAKE)
    accounts.put("acme")
    accounts.clock.moment += REFUSED_FOR - MOMENT
    with pytest.raises(TenantRefused):
        drives.of("acme", DriveKind.INTAKE)
    accounts.clock.moment += MOMENT
    drives.of("acme", DriveKind.INTAKE)
    assert accounts.looked == ["acme"] * 3
    assert (timedelta(minutes=5), timedelta(seconds=5)) == (ACTIVE_FOR, REFUSED_FOR)


def test_a_clock_that_was_set_back_keeps_nothing_for_longer(accounts: Accounts, drives: TenantDrives) -> None:
    accounts.put("acme")
    drives.of("acme", DriveKind.INTAKE)
    accounts.put("acme", active=False)
    accounts.clock.moment -= timedelta(hours=1)
    with pytest.raises(TenantRefused):
        drives.of("acme", DriveKind.INTAKE)


def test_a_tenant_that_is_forgotten_is_looked_up_anew_and_others_are_not(accounts: Accounts, drives: TenantDrives) -> None:
    accounts.put("acme")
    accounts.put("rival")
    old = drives.of("acme", DriveKind.INTAKE)
    drives.of("rival", DriveKind.INTAKE)
    accounts.put("acme", root="moved/")
    drives.forget("acme")
    drives.forget("nobody")
    assert drives.of("acme", DriveKind.INTAKE).place != old.place
    drives.of("rival", DriveKind.INTAKE)
    assert accounts.looked == ["acme", "rival", "acme"]


def test_what_was_looked_up_before_an_account_changed_does_not_outlive_the_change(accounts: Accounts) -> None:
    accounts.put("acme")

    def find(tenant_id: str) -> Tenant | None:
        found = accounts.find(tenant_id)
        if len(accounts.looked) == 1:  # the account changes while the first look-up is on its way
            accounts.put("acme", active=False)
            drives.forget("acme")
        return found

    drives = TenantDrives(find, accounts.clock, accounts.open)
    drives.of("acme", DriveKind.INTAKE)
    with pytest.raises(TenantRefused):
        drives.of("acme", DriveKind.INTAKE)


def test_threads_share_one_drive_and_none_waits_for_the_look_up_of_another_tenant(accounts: Accounts) -> None:
    accounts.put("acme")
    accounts.put("slow")
    go = threading.Event()

    def find(tenant_id: str) -> Tenant | None:
        if tenant_id == "slow":
            assert go.wait(30)
        return accounts.find(tenant_id)

    drives = TenantDrives(find, accounts.clock, accounts.open)
    with ThreadPoolExecutor(9) as pool:
        waiting = pool.submit(drives.of, "slow", DriveKind.INTAKE)
        found = [each.result(30) for each in [pool.submit(drives.of, "acme", DriveKind.INTAKE) for _ in range(8)]]
        go.set()
        waiting.result(30)
    assert all(drives.of("acme", DriveKind.INTAKE).place == each.place for each in found)
    assert drives.of("acme", DriveKind.INTAKE) is drives.of("acme", DriveKind.INTAKE)


def test_a_drive_that_cannot_be_opened_stops_only_what_needs_it(accounts: Accounts, drives: TenantDrives) -> None:
    accounts.put("acme")
    (accounts.folder / "acme" / "intake").rmdir()
    with pytest.raises(PrimerError, match=r"folder of drive .*acme/intake is not there"):
        drives.of("acme", DriveKind.INTAKE)
    drives.of("acme", DriveKind.PIPELINE)
    (accounts.folder / "acme" / "intake").mkdir()
    drives.of("acme", DriveKind.INTAKE)
