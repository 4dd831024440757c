"""The drives of tenants. One that is unknown, inactive or without drives is refused, never given another's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from primer_core.drives import DriveSpec
from primer_core.failures import Deferred
from primer_core.stored_states import DriveKind
from primer_resources.catalog.tenants import Tenant
from primer_resources.clock import Clock
from primer_resources.document_store.drive import Drive

ACTIVE_FOR = timedelta(minutes=5)
"""How long an active tenant's drives are taken from memory: so long another process may go on after an account changed."""
REFUSED_FOR = timedelta(seconds=5)
"""How long a refusal is: a tenant that was just set right is served soon, and one that is refused costs one look-up in so long."""


class TenantRefused(Deferred):
    """A tenant that has no drives to work on now. Its work waits and no attempt is spent."""

    def __init__(self, tenant_id: str, reason: str) -> None:
        super().__init__(reason)
        self.tenant_id = tenant_id


@dataclass(slots=True)
class _Entry:
    """What was found of a tenant at `at`; `refusal` is why it has no drives to work on, None where it has."""

    at: datetime
    specs: dict[DriveKind, DriveSpec]
    refusal: str | None
    opened: dict[DriveKind, Drive] = field(default_factory=dict)


class TenantDrives:
    """Opens the drives of tenants and keeps them open. Threads may share it; no lock is held while the catalog or a store is asked."""

    def __init__(self, find: Callable[[str], Tenant | None], clock: Clock, open_drive: Callable[[DriveSpec], Drive]) -> None:
        self._find, self._clock, self._open = find, clock, open_drive
        self._entries: dict[str, _Entry] = {}
        self._forgotten = 0
        self._lock = Lock()

    def of(self, tenant_id: str, kind: DriveKind) -> Drive:
        """A tenant's drive. Raises TenantRefused for a tenant that is unknown, inactive or without drives, SystemFault or PrimerError for a
        drive that cannot be opened."""
        entry = self._entry(tenant_id)
        if entry.refusal is not None:
            raise TenantRefused(tenant_id, entry.refusal)
        with self._lock:
            drive = entry.opened.get(kind)
        if drive is not None:
            return drive
        made = self._open(entry.specs[kind])
        with self._lock:
            return entry.opened.setdefault(kind, made)

    def forget(self, tenant_id: str) -> None:
        """Look the tenant up anew the next time: its account or its drives changed."""
        with self._lock:
            self._forgotten += 1
            self._entries.pop(tenant_id, None)

    def _entry(self, tenant_id: str) -> _Entry:
        now = self._clock.now()
        with self._lock:
            entry, forgotten = self._entries.get(tenant_id), self._forgotten
        if entry is not None:
            lasts = ACTIVE_FOR if entry.refusal is None else REFUSED_FOR
            if timedelta(0) <= now - entry.at < lasts:
                return entry
        tenant = self._find(tenant_id)
        entry = _Entry(now, {} if tenant is None else dict(tenant.drives), _refusal(tenant_id, tenant))
        with self._lock:
            # What was looked up before an account changed must not outlive the change.
            if forgotten == self._forgotten:
                self._entries[tenant_id] = entry
        return entry


def _refusal(tenant_id: str, tenant: Tenant | None) -> str | None:
    if tenant is None:
        return f"tenant {tenant_id!r} is unknown; `primer tenant list` has those there are, `primer tenant add {tenant_id}` adds one"
    if not tenant.active:
        return f"tenant {tenant_id!r} is inactive; `primer tenant activate {tenant_id}` lets its work go on"
    missing = [kind.value for kind in DriveKind if kind not in tenant.drives]
    if missing:
        return f"tenant {tenant_id!r} has no {' and no '.join(missing)} drive; `primer tenant add {tenant_id}` completes it"
    return None
