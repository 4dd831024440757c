"""Who owns the objects of a drive: asked by key in batches, and told in the order of keys, page by page.

A source object is owned by the content that has its key. One of the pipeline drive is owned by the state whose node id is in its key, while
that state's manifest has it as PRESENT. There is no index over the keys in manifests, and none is needed.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, and_, func, select

from primer_core.coherence import Owner
from primer_core.stored_states import DriveKind, Manifest, Part
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema_bodies import contents, freed_objects, stored_states

PAGE = 500
"""Rows of a page: a manifest has some five objects."""
_NODE_ID = re.compile(r"[0-9a-f]{2}/([0-9a-f]{32})/")


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """An object that a live row owns."""

    key: str
    content_hash: str
    part: str
    sub_key: str


class ObjectOwners:
    """Finds the owners of objects."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, tenant_id: str, kind: DriveKind, keys: Collection[str]) -> dict[str, Owner]:
        """key → owner, of the keys that the catalog knows, as it stands at one moment."""
        wanted = sorted(keys)
        owners: dict[str, Owner] = {}
        with self._db.read() as connection:
            for part in slices(wanted):
                freed = and_(freed_objects.c.tenant_id == tenant_id, freed_objects.c.kind == kind, freed_objects.c.object_key.in_(part))
                owners |= dict.fromkeys(connection.execute(select(freed_objects.c.object_key).where(freed)).scalars(), Owner.FREED)
            if kind is DriveKind.INTAKE:
                for part in slices(wanted):
                    mine = and_(contents.c.tenant_id == tenant_id, contents.c.object.in_(part))
                    owners |= dict.fromkeys(connection.execute(select(contents.c.object).where(mine)).scalars(), Owner.LIVE)
            else:
                asked = set(wanted)
                for part in slices(sorted({match[1] for key in wanted if (match := _NODE_ID.match(key))})):
                    states = and_(stored_states.c.node_id.in_(part), stored_states.c.graph == _graph(tenant_id))
                    for row in connection.execute(_states().where(states)):
                        owners |= {each.key: Owner.LIVE for each in _of_state(row) if each.key in asked}
        return owners

    def pages(self, tenant_id: str, kind: DriveKind) -> Iterator[Sequence[OwnedObject]]:
        """All objects that live rows own on a drive, in pages, by the first two digits of their keys. Each page is read by itself: no
        transaction is open while the caller has it."""
        after = ""
        statement: Select[Any]
        while True:
            if kind is DriveKind.INTAKE:
                here = and_(contents.c.tenant_id == tenant_id, contents.c.object > after)
                statement = select(contents.c.object, contents.c.content_hash).where(here).order_by(contents.c.object)
            else:
                here = and_(stored_states.c.graph == _graph(tenant_id), stored_states.c.node_id > after)
                statement = _states().where(here).order_by(stored_states.c.node_id)
            with self._db.read() as connection:
                rows = connection.execute(statement.limit(PAGE)).all()
            if not rows:
                return
            if kind is DriveKind.INTAKE:
                yield [OwnedObject(row.object, row.content_hash, Part.BLOBS, "") for row in rows]
            else:
                yield [each for row in rows for each in _of_state(row)]
            after = rows[-1][0]

    def documents(self, tenant_id: str, content_hashes: Collection[str]) -> dict[str, str]:
        """content_hash → one of the documents that have it."""
        found: dict[str, str] = {}
        least = select(stored_states.c.content_hash, func.min(stored_states.c.doc_id).label("doc_id"))
        with self._db.read() as connection:
            for part in slices(sorted(set(content_hashes))):
                mine = and_(
                    stored_states.c.tenant_id == tenant_id,
                    stored_states.c.content_hash.in_(part),
                    stored_states.c.graph == f"{DriveKind.INTAKE}:{tenant_id}",
                )
                rows = connection.execute(least.where(mine).group_by(stored_states.c.content_hash))
                found |= {row.content_hash: row.doc_id for row in rows}
        return found


def _graph(tenant_id: str) -> str:
    return f"{DriveKind.PIPELINE}:{tenant_id}"


def _states() -> Select[Any]:
    return select(stored_states.c.node_id, stored_states.c.content_hash, stored_states.c.manifest)


def _of_state(row: Row[Any]) -> list[OwnedObject]:
    """The objects that a pipeline state owns."""
    present = Manifest.from_json(row.manifest).present()
    return [OwnedObject(each.object_key or "", row.content_hash, each.part, each.sub_key) for each in present]
