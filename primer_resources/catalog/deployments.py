"""Deployment facts, index versions and aliases."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import uuid4

from sqlalchemy import select

from primer_core.buckets import bucket_names
from primer_core.failures import PrimerError
from primer_core.recipe import Recipe
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import aliases, deployment, index_versions, lanes
from primer_resources.catalog.upsert import insert_if_absent

LIVE_ALIAS = "live"
_BUCKETS = "buckets"
_IDENTITY = "identity"


class VersionState(StrEnum):
    """Where an index version stands. Live sync writes to every version but the retired."""

    BUILDING = "building"
    LIVE = "live"
    RETIRING = "retiring"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """A sealed recipe under a name."""

    name: str
    recipe: Recipe
    state: VersionState
    created_at: datetime


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
        """Seal a recipe under a name and make its lanes. Raises PrimerError where the name stands for another recipe."""
        now = self._db.now()
        row = {"name": name, "recipe": recipe.to_json(), "state": state.value, "created_at": now}
        with self._db.begin() as connection:
            connection.execute(insert_if_absent(self._db, index_versions), row)
            connection.execute(
                insert_if_absent(self._db, lanes),
                [{"index_version": name, "bucket": bucket, "epoch": 0} for bucket in bucket_names(buckets)],
            )
            if state is VersionState.LIVE:
                connection.execute(insert_if_absent(self._db, aliases), {"alias": LIVE_ALIAS, "index_version": name})
        stored = self.version(name)
        if stored.recipe != recipe:
            raise PrimerError(
                f"index version {name} was made with another recipe ({stored.recipe}); a recipe never changes: "
                "set the settings back, or make a new index version"
            )

    def version(self, name: str) -> IndexVersion:
        """The index version of that name. Raises PrimerError where there is none."""
        found = {version.name: version for version in self.versions()}
        if name not in found:
            raise PrimerError(f"index version {name!r} is unknown; known are {', '.join(sorted(found)) or 'none'}")
        return found[name]

    def versions(self) -> list[IndexVersion]:
        """All index versions, oldest first."""
        with self._db.read() as connection:
            rows = connection.execute(select(index_versions).order_by(index_versions.c.created_at, index_versions.c.name)).all()
        return [IndexVersion(row.name, Recipe.from_json(row.recipe), VersionState(row.state), row.created_at) for row in rows]

    def open_versions(self) -> list[IndexVersion]:
        """The versions that live sync writes to."""
        return [version for version in self.versions() if version.state is not VersionState.RETIRED]

    def live(self) -> IndexVersion:
        """The version that searches are answered from. Raises PrimerError where none is live yet."""
        with self._db.read() as connection:
            name = connection.execute(select(aliases.c.index_version).where(aliases.c.alias == LIVE_ALIAS)).scalar_one_or_none()
        if name is None:
            raise PrimerError("no index version is live yet; run `primer init`")
        return self.version(name)
