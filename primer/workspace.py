"""A deployment opened by a person or a script: settings, catalog, store, toolkit and Dagster's instance, each made when first used."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from primer.tenant_admin import settle_tenant
from primer_core.failures import PrimerError
from primer_core.index_versions import VersionState
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.database import Database
from primer_resources.clock import SystemClock
from primer_resources.directory.base import Directory
from primer_resources.directory.file import FileDirectory
from primer_resources.document_store import DocumentStore
from primer_resources.document_store.drives import TenantDrives
from primer_resources.document_store.opening import open_drive
from primer_resources.document_store.reconciler import Reconciler
from primer_resources.reader import Reader
from primer_resources.settings import BUNDLED_MODEL, Settings, load_settings
from primer_resources.toolkit import Toolkit

if TYPE_CHECKING:
    import dagster as dg

FIRST_VERSION = "v1"
INSTANCE_FILE = "dagster.yaml"


def open_catalog(settings: Settings) -> Catalog:
    """The catalog of these settings. Raises PrimerError unless `primer init` has made it and its buckets are the settings'."""
    catalog = Catalog(settings.catalog_url, SystemClock(), SystemRandom())
    catalog.database.require_migrated()
    catalog.deployments.require_buckets(settings.buckets)
    return catalog


def open_drives(settings: Settings, catalog: Catalog) -> TenantDrives:
    """The drives of all tenants of a catalog."""
    return TenantDrives(catalog.tenants.find, SystemClock(), lambda spec: open_drive(spec, settings.home))


def make_store(catalog: Catalog, drives: TenantDrives) -> DocumentStore:
    """The document store on these drives."""
    return DocumentStore(catalog.contents, catalog.states, drives, catalog.database.clock, SystemRandom())


def open_reconciler(catalog: Catalog, drives: TenantDrives) -> Reconciler:
    """What holds these drives against the catalog."""
    return Reconciler(catalog.object_owners, drives, catalog.database.clock)


class Workspace:
    """What the commands work on."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog. Raises PrimerError unless `primer init` has made it."""
        return open_catalog(self.settings)

    @cached_property
    def store(self) -> DocumentStore:
        """The document store."""
        return make_store(self.catalog, self.drives)

    @cached_property
    def drives(self) -> TenantDrives:
        """The drives of the tenants."""
        return open_drives(self.settings, self.catalog)

    @cached_property
    def toolkit(self) -> Toolkit:
        """Parser, chunker, embedder and indexes of the index versions."""
        return Toolkit(self.settings)

    @cached_property
    def instance(self) -> "dg.DagsterInstance":
        """Dagster's instance in the home. Raises PrimerError unless `primer init` has made it."""
        import dagster as dg
        from dagster._core.instance.ref import InstanceRef

        home = self.settings.dagster_home
        if not (home / INSTANCE_FILE).is_file():
            raise PrimerError(f"there is no {INSTANCE_FILE} in {home}; run `primer init`")
        os.environ["DAGSTER_HOME"] = str(home)
        # Steps in this process print nothing that matters, and capturing it would cost four more processes a step.
        quiet: Any = {"compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}}
        return dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=quiet))

    @cached_property
    def directory(self) -> Directory:
        """The directory of people. Raises PrimerError where none is set."""
        if self.settings.directory_file is None:
            raise PrimerError(
                "there is no directory to find people in; set PRIMER_DIRECTORY_FILE to a file of people and groups, or give --groups"
            )
        return FileDirectory(self.settings.directory_file)

    @property
    def reader(self) -> Reader:
        """The reader of the live index version."""
        version = self.catalog.deployments.live()
        return Reader(self.catalog, self.store, version, self.toolkit.of(version))

    def create(self) -> None:
        """Make or complete the deployment; repeating it changes nothing. Raises PrimerError where the settings do not fit what is there."""
        recipe = self.toolkit.recipe
        home = self.settings.dagster_home
        try:
            home.mkdir(parents=True, exist_ok=True)
            if not (home / INSTANCE_FILE).exists():
                (home / INSTANCE_FILE).write_bytes((files("primer") / INSTANCE_FILE).read_bytes())
        except OSError as error:
            raise PrimerError(f"PRIMER_HOME = {self.settings.home}: {error.strerror}; choose a folder that can be written") from error
        catalog = Catalog(self.settings.catalog_url, SystemClock(), SystemRandom())
        catalog.database.migrate()
        catalog.deployments.create(self.settings.buckets)
        settle_tenant(catalog, self.settings)
        if not catalog.deployments.versions():
            catalog.deployments.add_version(FIRST_VERSION, recipe, VersionState.LIVE, self.settings.buckets)
        tools = self.toolkit.of(catalog.deployments.live())
        if self.settings.embedding_model != BUNDLED_MODEL:
            tools.embedder.embed_query("Does the model answer?")  # one that is named and does not load stops the start here
        catalog.close()
        self.add_partitions()

    def add_partitions(self) -> None:
        """Make Dagster know the sources and index versions of the catalog; an instance that was lost gets them back."""
        from sqlalchemy.exc import IntegrityError

        from primer_assets.partitions import INDEX_VERSION, SOURCE

        sources = [source.source_id for source in self.catalog.sources.all()]
        versions = [version.name for version in self.catalog.deployments.open_versions()]
        for name, keys in ((SOURCE, sources), (INDEX_VERSION, versions)):
            try:
                self.instance.add_dynamic_partitions(name, keys)
            except IntegrityError:  # Dagster looks and then inserts: another process added a key in between
                self.instance.add_dynamic_partitions(name, keys)

    def has_opened(self, name: str) -> bool:
        """Whether "catalog", "instance" or "toolkit" was used, and so made."""
        return name in self.__dict__

    def close(self) -> None:
        """End child processes, writers and connections."""
        for name in ("toolkit", "catalog"):
            if self.has_opened(name):
                getattr(self, name).close()
        if self.has_opened("instance"):
            self.instance.dispose()


@contextmanager
def open_workspace() -> Iterator[Workspace]:
    """The workspace that the settings of this process name, closed at the end."""
    workspace = Workspace(load_settings())
    try:
        yield workspace
    finally:
        workspace.close()


def drives_elsewhere(settings: Settings) -> list[str]:
    """The places of drives that `erase` leaves: those that are not below the home."""
    catalog = Catalog(settings.catalog_url, SystemClock(), SystemRandom())
    try:
        catalog.database.require_migrated()
        specs = [spec for tenant in catalog.tenants.all() for spec in tenant.drives.values()]
    except PrimerError:
        return []  # a catalog that cannot be read says of none
    finally:
        catalog.close()
    return sorted(spec.url for spec in specs if spec.is_s3 or Path(spec.url).is_absolute())


def erase(settings: Settings) -> None:
    """Remove everything that a deployment keeps: the catalog's tables, and what stands in its home but the settings file."""
    database = Database(settings.catalog_url, SystemClock())
    database.drop_all()
    database.close()
    for name in ("store", "vectors", "keywords", "embeddings", "dagster", "sources"):
        shutil.rmtree(settings.home / name, ignore_errors=True)
    for path in settings.home.glob("catalog.sqlite*"):
        path.unlink()
