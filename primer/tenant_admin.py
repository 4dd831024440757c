"""Adding tenants and changing their drives: what is wanted becomes two drives, set up and probed before the catalog learns of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from primer_core.drives import DriveSpec, check_spec
from primer_core.failures import PrimerError
from primer_core.stored_states import DriveKind
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.tenants import Tenant
from primer_resources.credentials import check_address, check_reference
from primer_resources.document_store.drive import Drive
from primer_resources.document_store.opening import open_drive, set_up_drive
from primer_resources.settings import Settings

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
STORE = "store"
LOOKED_AT = 50
"""Objects of a drive that are looked for at its new place, before it becomes that."""


@dataclass(frozen=True, slots=True)
class WantedDrives:
    """Drives as somebody asks for them; None is as it is, or as the deployment has it. Region, endpoint and credentials are of those that
    lie on S3."""

    intake: str | None = None
    pipeline: str | None = None
    region: str | None = None
    endpoint: str | None = None
    credentials_ref: str | None = None

    def url(self, kind: DriveKind) -> str | None:
        """The place asked for."""
        return self.intake if kind is DriveKind.INTAKE else self.pipeline


def settle_tenant(catalog: Catalog, settings: Settings) -> None:
    """Make the deployment's own tenant, or complete it. Raises PrimerError where the settings name other drives than it has."""
    wanted = WantedDrives(
        settings.intake_url or None,
        settings.pipeline_url or None,
        settings.drive_region,
        settings.drive_endpoint,
        settings.drive_credentials,
    )
    present = catalog.tenants.find(settings.tenant)
    if present is None or present.drives.keys() != set(DriveKind):
        add_tenant(catalog, settings, settings.tenant, wanted)
        return
    for kind, spec in _specs(settings, wanted, present.drives).items():
        has = present.drives[kind]
        if wanted.url(kind) is not None and spec != has:
            raise PrimerError(
                f"the settings put the {kind} drive of tenant {settings.tenant!r} at {_words(spec)}, but it is at {_words(has)}; "
                f"set them back, or move it with `primer tenant set {settings.tenant}`"
            )
        if not has.is_s3 and not Path(has.url).is_absolute():
            set_up_drive(has, settings.home)  # whoever removed all of the store means it


def add_tenant(catalog: Catalog, settings: Settings, tenant_id: str, wanted: WantedDrives) -> tuple[Tenant, bool]:
    """Add a tenant with both drives. Returns it, and whether it is new. Raises PrimerError for a name or a drive that cannot be."""
    present = catalog.tenants.find(tenant_id)
    is_own = tenant_id == settings.tenant
    if present is None and not is_own and not NAME.fullmatch(tenant_id):
        raise PrimerError(f"tenant name {tenant_id!r} is not valid; choose a name of lower-case letters, digits, '.', '_' and '-'")
    if present is None and not is_own and settings.intake_url and None in (wanted.intake, wanted.pipeline):
        raise PrimerError(f"say where the drives of tenant {tenant_id!r} are: --intake s3://BUCKET/PREFIX --pipeline s3://BUCKET/PREFIX")
    specs = _specs(settings, wanted, _bases(catalog, tenant_id))
    for spec in specs.values():
        set_up_drive(spec, settings.home)
    is_new = catalog.tenants.add(tenant_id, specs)
    return catalog.tenants.get(tenant_id), is_new


def change_drives(catalog: Catalog, settings: Settings, tenant_id: str, wanted: WantedDrives) -> Tenant:
    """Give a tenant other drives: those whose place is named, or, where none is, both. A drive with objects becomes another place only when
    those are there already, and only while the tenant is inactive.

    Raises PrimerError where one of these is not so, or a drive cannot be used.
    """
    present = catalog.tenants.get(tenant_id)
    named = [kind for kind in DriveKind if wanted.url(kind) is not None] or list(DriveKind)
    specs = {kind: spec for kind, spec in _specs(settings, wanted, _bases(catalog, tenant_id)).items() if kind in named}
    for kind, spec in specs.items():
        made = set_up_drive(spec, settings.home)
        if kind in present.drives and not spec.is_same_place(present.drives[kind]):
            _check_moved(settings, tenant_id, kind, present.drives[kind], made)
    catalog.tenants.set_drives(tenant_id, specs)
    return catalog.tenants.get(tenant_id)


def _check_moved(settings: Settings, tenant_id: str, kind: DriveKind, old: DriveSpec, made: Drive) -> None:
    """Raise PrimerError unless the first objects of the old place are at the new one, too. An old place that is gone cannot be asked: then
    something must stand at the new one."""
    try:
        stands = list(islice(open_drive(old, settings.home).list(), LOOKED_AT))
    except PrimerError as error:
        if next(made.list(), None) is None:
            raise PrimerError(
                f"the {kind} drive of tenant {tenant_id!r} cannot be looked at ({error}), and {made.place} is empty; "
                "copy its objects there first"
            ) from error
        return
    missing = [stored.key for stored in stands if (found := made.head(stored.key)) is None or found.size != stored.size]
    if missing:
        raise PrimerError(
            f"the {kind} drive of tenant {tenant_id!r} holds {missing[0]} and other objects that are not at {made.place}; "
            f"copy all of {old.url} there first, under the same keys"
        )


def _bases(catalog: Catalog, tenant_id: str) -> dict[DriveKind, DriveSpec]:
    """The drives that a tenant has where nobody says otherwise: its own, or folders below PRIMER_HOME/store. The first tenant has that
    folder to itself, since most deployments have no other."""
    every = {each.tenant_id: each.drives for each in catalog.tenants.all()}
    is_first = not any(drives for name, drives in every.items() if name != tenant_id)
    folder = STORE if is_first else f"{STORE}/tenants/{tenant_id}"
    return {kind: every.get(tenant_id, {}).get(kind) or DriveSpec(f"{folder}/{kind}") for kind in DriveKind}


def _specs(settings: Settings, wanted: WantedDrives, bases: Mapping[DriveKind, DriveSpec]) -> dict[DriveKind, DriveSpec]:
    """The two drives that are wanted, from what they are otherwise. Raises PrimerError for one that cannot be."""
    specs = {}
    for kind in DriveKind:
        url = wanted.url(kind)
        has = bases[kind]
        spec = has if url is None else replace(has, url=url if "://" in url else _folder(settings, url))
        if not spec.is_s3:
            spec = DriveSpec(spec.url)
        else:
            given = {"region": wanted.region, "endpoint": wanted.endpoint, "credentials_ref": wanted.credentials_ref}
            spec = replace(spec, url=spec.url.rstrip("/"), **{name: value for name, value in given.items() if value is not None})
            spec = replace(spec, credentials_ref=spec.credentials_ref or None)
            if spec.credentials_ref is not None:
                check_reference(spec.credentials_ref)
            check_address(spec.endpoint)
        specs[kind] = check_spec(spec)
    if not any(spec.is_s3 for spec in specs.values()) and any((wanted.region, wanted.endpoint, wanted.credentials_ref)):
        raise PrimerError("region, endpoint and credentials are of drives on S3, and both drives are folders; give s3://BUCKET/PREFIX, too")
    return specs


def _folder(settings: Settings, given: str) -> str:
    """A folder in its absolute form, since Dagster runs elsewhere; below PRIMER_HOME/store as the catalog keeps it. Raises PrimerError for
    one that would mix with what else Primer keeps."""
    folder, home = Path(given).expanduser().resolve(), settings.home.resolve()
    if home.is_relative_to(folder):
        raise PrimerError(f"a drive at {folder} would hold PRIMER_HOME = {settings.home}; choose another folder")
    if not folder.is_relative_to(home):
        return str(folder)
    if folder == home / STORE or not folder.is_relative_to(home / STORE):
        raise PrimerError(
            f"a drive at {folder} would mix with what else Primer keeps there; choose a folder in {home / STORE}, or elsewhere"
        )
    return folder.relative_to(home).as_posix()


def _words(spec: DriveSpec) -> str:
    """A drive with all that is set of it, for people."""
    more = [f"{name} {value}" for name, value in (("region", spec.region), ("endpoint", spec.endpoint)) if value]
    more += [f"credentials {spec.credentials_ref}"] if spec.credentials_ref else []
    return f"{spec.url} ({', '.join(more)})" if more else spec.url
