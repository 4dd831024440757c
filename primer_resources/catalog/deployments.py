"""Deployment facts, index versions and aliases."""

from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, exists, func, insert, select

from primer_core.buckets import bucket_names
from primer_core.failures import PrimerError
from primer_core.index_versions import VersionState, check_name
from primer_core.recipe import Recipe
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import aliases, deployment, index_versions, lanes
from primer_resources.catalog.upsert import insert_if_absent

LIVE_ALIAS = "live"
_BUCKETS = "buckets"
_IDENTITY = "identity"
_VERSIONS_LOCK = 7_462_837_002
"""Any number that no other program on the server locks."""


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """A sealed recipe under a name. `retire_at` is from when a version that was live may be dropped."""

    name: str
    recipe: Recipe
    state: VersionState
    created_at: datetime
    retire_at: datetime | None = None


class Deployments:
    """What was fixed when the deployment was created, and the index versions that stand in it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def create(self, buckets: int) -> None:
        """Record the number of buckets and an identity, once. Raises PrimerError where the catalog holds another number."""
        with self._db.begin() as connection:
            connection.execute(insert_if_absent(self._db, deployment), {"key": _BUCKETS, "value": str(buckets)})
            connection.execute(insert_if_absent(self._db, deployment), {"key": _IDENTITY, "value": uuid4().hex})
        self.require_buckets(buckets)

    def require_buckets(self, buckets: int) -> None:
        """Raise PrimerError unless the deployment was created with `buckets` buckets."""
        with self._db.read() as connection:
            stored = connection.execute(select(deployment.c.value).where(deployment.c.key == _BUCKETS)).scalar_one_or_none()
        if stored is None:
            raise PrimerError("the catalog holds no deployment yet; run `primer init`")
        if int(stored) != buckets:
            raise PrimerError(
                f"PRIMER_BUCKETS = {buckets}, but this deployment was created with {stored}; set it back to {stored}, "
                "or make a new deployment in another PRIMER_HOME"
            )

    def identity(self) -> str:
        """A name that no other deployment has. Raises PrimerError where `primer init` has not given one yet."""
        with self._db.read() as connection:
            stored: str | None = connection.execute(select(deployment.c.value).where(deployment.c.key == _IDENTITY)).scalar_one_or_none()
        if stored is None:
            raise PrimerError("the deployment has no identity yet; run `primer init`")
        return stored

    def add_version(self, name: str, recipe: Recipe, state: VersionState, buckets: int) -> None:
        """Seal a recipe under a name and make its lanes: from this commit on, every change is written to it, too.

        Raises PrimerError for a name that no version may have, or that stands for another recipe, and where another open version has the
        recipe already: it would be the same index twice.
        """
        check_name(name)
        with self._db.begin() as connection:
            self.lock_versions(connection)
            known = {version.name: version for version in self.versions_in(connection)}
            stored = known.get(name)
            if stored is not None and stored.recipe != recipe:
                raise PrimerError(
                    f"index version {name} was made with another recipe ({stored.recipe}); a recipe never changes: "
                    "set the settings back, or make a new index version"
                )
            if stored is not None:
                return
            for other in known.values():
                if other.recipe.digest == recipe.digest and other.state is not VersionState.RETIRED:
                    raise PrimerError(
                        f"index version {other.name} has this very recipe ({recipe.digest}), so {name} would be the same index twice; "
                        "change a part of the recipe: --chunker, --max-tokens, --overlap or --model"
                    )
            row = {"name": name, "recipe": recipe.to_json(), "state": state.value, "created_at": self._db.now()}
            connection.execute(insert(index_versions).values(row))
            connection.execute(insert(lanes), [{"index_version": name, "bucket": bucket, "epoch": 0} for bucket in bucket_names(buckets)])
            if state is VersionState.LIVE:
                connection.execute(insert_if_absent(self._db, aliases), {"alias": LIVE_ALIAS, "index_version": name})

    def lock_versions(self, connection: Connection) -> None:
        """Inside a transaction that opens or closes a version, before anything else: wait for the changes that are being written to the
        versions as they were, and hold up new ones. SQLite has one writer at a time."""
        if not self._db.is_sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(_VERSIONS_LOCK)))

    def written_to(self, connection: Connection) -> list[str]:
        """Inside a transaction that records a change, before it locks a document: the versions that the change is written to.

        None is opened or closed until the transaction ends. So a version's snapshot, which is taken after it was opened, sees every change
        that was not written to it.
        """
        if not self._db.is_sqlite:
            connection.execute(select(func.pg_advisory_xact_lock_shared(_VERSIONS_LOCK)))
        return [version.name for version in self.versions_in(connection) if version.state is not VersionState.RETIRED]

    def version(self, name: str) -> IndexVersion:
        """The index version of that name. Raises PrimerError where there is none."""
        found = {version.name: version for version in self.versions()}
        if name not in found:
            raise PrimerError(
                f"index version {name!r} is unknown; known are {', '.join(sorted(found)) or 'none'}; "
                f"`primer backfill start --target {name}` makes a new one, and so does the job backfill_start in Dagster's UI"
            )
        return found[name]

    def versions(self) -> list[IndexVersion]:
        """All index versions, oldest first."""
        with self._db.read() as connection:
            return self.versions_in(connection)

    def versions_in(self, connection: Connection) -> list[IndexVersion]:
        """The same inside a transaction."""
        rows = connection.execute(select(index_versions).order_by(index_versions.c.created_at, index_versions.c.name)).all()
        return [
            IndexVersion(row.name, Recipe.from_json(row.recipe), VersionState(row.state), row.created_at, row.retire_at) for row in rows
        ]

    def open_versions(self) -> list[IndexVersion]:
        """The versions that live sync writes to."""
        return [version for version in self.versions() if version.state is not VersionState.RETIRED]

    def live(self) -> IndexVersion:
        """The version that searches are answered from. Raises PrimerError where none is live yet."""
        with self._db.read() as connection:
            name = connection.execute(LIVE_VERSION).scalar_one_or_none()
        if name is None:
            raise PrimerError("no index version is live yet; run `primer init`")
        return self.version(name)


LIVE_VERSION = select(aliases.c.index_version).where(aliases.c.alias == LIVE_ALIAS)
"""The name of the live version."""


def is_live(index_version: str) -> ColumnElement[bool]:
    """Whether a version is the live one, whose outcomes are what a document's row shows."""
    return exists().where(aliases.c.alias == LIVE_ALIAS, aliases.c.index_version == index_version)
