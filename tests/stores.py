"""Document stores over a test's catalog, on drives that the test says, whatever the catalog says of them."""

from collections.abc import Mapping
from pathlib import Path
from random import Random, SystemRandom

from primer_core.drives import DriveSpec
from primer_core.stored_states import DriveKind
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.tenants import Tenant
from primer_resources.document_store import DocumentStore
from primer_resources.document_store.drives import TenantDrives
from primer_resources.document_store.opening import open_drive, set_up_drive


def folder_store(catalog: Catalog, folder: Path) -> DocumentStore:
    """Every tenant has its drives below the folder."""

    def find(tenant_id: str) -> Tenant:
        return Tenant(tenant_id, True, {kind: DriveSpec(str(folder.absolute() / tenant_id / kind)) for kind in DriveKind})

    clock = catalog.database.clock
    drives = TenantDrives(find, clock, lambda spec: set_up_drive(spec, folder))
    return DocumentStore(catalog.contents, catalog.states, drives, clock, Random())


def store_on(catalog: Catalog, specs: Mapping[DriveKind, DriveSpec]) -> DocumentStore:
    """Whoever asks gets these drives, which are set up."""
    clock = catalog.database.clock
    drives = TenantDrives(lambda tenant_id: Tenant(tenant_id, True, specs), clock, lambda spec: open_drive(spec, Path("/")))
    return DocumentStore(catalog.contents, catalog.states, drives, clock, SystemRandom())
