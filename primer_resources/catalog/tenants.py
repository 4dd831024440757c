"""Tenants: their accounts, and the drives where their objects are."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, select, update

from primer_core.drives import DriveSpec, find_overlap
from primer_core.failures import PrimerError
from primer_core.stored_states import DriveKind
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import accounts, deployment, drives, sources
from primer_resources.catalog.upsert import insert_if_absent, insert_or_update

Drives = Mapping[DriveKind, DriveSpec]


@dataclass(frozen=True, slots=True)
class Tenant:
    """An account and its drives. One that was never completed lacks some."""

    tenant_id: str
    active: bool
    drives: Drives = field(default_factory=dict)


class Tenants:
    """Adds tenants, changes their drives, and says who is active."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, tenant_id: str, wanted: Drives) -> bool:
        """Add a tenant with both drives, or complete one that lacks drives, in one transaction. Returns False where it is there already,
        with these very drives. Raises PrimerError where it has others, or where a drive would lie in another one."""
        with self._db.begin() as connection:
            every = self._locked(connection)
            present = every.get(tenant_id)
            if present is not None and present.drives.keys() == set(DriveKind):
                if present.drives == dict(wanted):
                    return False
                raise PrimerError(f"tenant {tenant_id!r} exists already with other drives; `primer tenant set {tenant_id}` changes them")
            self._check(tenant_id, wanted, every)
            connection.execute(insert_if_absent(self._db, accounts), {"tenant_id": tenant_id, "active": True})
            self._write(connection, tenant_id, wanted)
        return True

    def set_drives(self, tenant_id: str, wanted: Drives) -> None:
        """Give a tenant other drives, of the kinds named. Raises PrimerError where the tenant is unknown, where a drive would lie in
        another one, or where a drive would be another place while the tenant is active."""
        with self._db.begin() as connection:
            every = self._locked(connection)
            present = _known(tenant_id, every)
            self._check(tenant_id, {**present.drives, **wanted}, every)
            for kind, spec in wanted.items():
                if present.active and kind in present.drives and not spec.is_same_place(present.drives[kind]):
                    raise PrimerError(
                        f"tenant {tenant_id!r} is active, and its work may be writing to {present.drives[kind].url}; "
                        f"`primer tenant deactivate {tenant_id}` before its {kind} drive becomes another place"
                    )
            self._write(connection, tenant_id, wanted)

    def set_active(self, tenant_id: str, active: bool) -> bool:
        """Activate or deactivate a tenant. Returns False where it was so already. One that is activated has its sources listed in full at
        the next sync, since events were refused meanwhile. Raises PrimerError where it is unknown."""
        change = update(accounts).where(accounts.c.tenant_id == tenant_id, accounts.c.active.is_not(active)).values(active=active)
        with self._db.begin() as connection:
            _known(tenant_id, self._locked(connection))
            changed = connection.execute(change).rowcount == 1
            if changed and active:
                due = {"asked_at": self._db.moment(), "last_reconciled_at": None}
                connection.execute(update(sources).where(sources.c.tenant_id == tenant_id, sources.c.removed_at.is_(None)).values(**due))
        return changed

    def find(self, tenant_id: str) -> Tenant | None:
        """The tenant; None where there is none of that name."""
        with self._db.read() as connection:
            return self._read(connection, tenant_id).get(tenant_id)

    def get(self, tenant_id: str) -> Tenant:
        """The tenant. Raises PrimerError where there is none of that name."""
        return _known(tenant_id, {each.tenant_id: each for each in self.all()})

    def require_active(self, tenant_id: str) -> None:
        """Raise PrimerError unless the tenant is there and active."""
        if not self.get(tenant_id).active:
            raise PrimerError(f"tenant {tenant_id!r} is inactive; `primer tenant activate {tenant_id}` lets its work go on")

    def is_active(self, tenant_id: str) -> bool:
        """Whether the tenant is there and active."""
        with self._db.read() as connection:
            found = connection.execute(select(accounts.c.active).where(accounts.c.tenant_id == tenant_id)).scalar_one_or_none()
        return bool(found)

    def inactive(self) -> frozenset[str]:
        """The tenants whose sources are not read."""
        with self._db.read() as connection:
            return frozenset(connection.execute(select(accounts.c.tenant_id).where(accounts.c.active.is_(False))).scalars())

    def all(self) -> list[Tenant]:
        """All tenants, by name."""
        with self._db.read() as connection:
            return list(self._read(connection).values())

    def _locked(self, connection: Connection) -> dict[str, Tenant]:
        """All tenants, which nobody else changes until the transaction ends: two added at once must not get places that overlap."""
        connection.execute(select(deployment.c.key).order_by(deployment.c.key).with_for_update()).all()
        return self._read(connection)

    def _read(self, connection: Connection, tenant_id: str | None = None) -> dict[str, Tenant]:
        statement = (
            select(accounts.c.tenant_id, accounts.c.active, drives.c.kind, drives.c.url, drives.c.region, drives.c.endpoint)
            .add_columns(drives.c.credentials_ref)
            .outerjoin_from(accounts, drives)
            .order_by(accounts.c.tenant_id, drives.c.kind)
        )
        if tenant_id is not None:
            statement = statement.where(accounts.c.tenant_id == tenant_id)
        active: dict[str, bool] = {}
        found: dict[str, dict[DriveKind, DriveSpec]] = {}
        for row in connection.execute(statement):
            active[row.tenant_id] = row.active
            of = found.setdefault(row.tenant_id, {})
            if row.kind is not None:
                of[DriveKind(row.kind)] = DriveSpec(row.url, row.region, row.endpoint, row.credentials_ref)
        return {name: Tenant(name, active[name], of) for name, of in found.items()}

    def _check(self, tenant_id: str, wanted: Drives, every: Mapping[str, Tenant]) -> None:
        taken = [(name, kind, spec) for name, each in every.items() if name != tenant_id for kind, spec in each.drives.items()]
        overlap = find_overlap(wanted, taken, tenant_id)
        if overlap is not None:
            raise PrimerError(overlap)

    def _write(self, connection: Connection, tenant_id: str, wanted: Drives) -> None:
        rows = [
            {
                "tenant_id": tenant_id,
                "kind": kind.value,
                "url": spec.url,
                "region": spec.region,
                "endpoint": spec.endpoint,
                "credentials_ref": spec.credentials_ref,
            }
            for kind, spec in wanted.items()
        ]
        connection.execute(insert_or_update(self._db, drives, ("url", "region", "endpoint", "credentials_ref")), rows)


def _known(tenant_id: str, every: Mapping[str, Tenant]) -> Tenant:
    if tenant_id not in every:
        known = ", ".join(every) or "none"
        raise PrimerError(f"tenant {tenant_id!r} is unknown; known tenants: {known}. `primer tenant add {tenant_id}` adds it")
    return every[tenant_id]
