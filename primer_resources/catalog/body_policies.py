"""What the policies of bodies delete: source bytes that every open index version has taken in, and parse outputs that none uses any more.

Each page is one transaction that locks its contents first, like a sync or a person's decision does, and decides on what then holds. Keys
go into `freed_objects` in the same transaction; the bytes themselves are removed by whoever drains that.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select, tuple_, update

from primer_core.body_policies import Claim, may_go, outputs_in_use
from primer_core.ids import recipe_key
from primer_core.index_versions import VersionState
from primer_core.outcomes import SUCCESSES
from primer_core.recipe import Recipe
from primer_core.reviews import ReviewState
from primer_core.stored_states import DeletedReason, DriveKind, Part
from primer_resources.catalog.contents import HANDLING, is_content, lock_contents
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.job_order import LIVE
from primer_resources.catalog.ledger import Ledger
from primer_resources.catalog.parses import Parses
from primer_resources.catalog.reviews import Reviews
from primer_resources.catalog.schema import documents, in_states, index_state, index_versions, jobs
from primer_resources.catalog.schema_bodies import LIVE as LIVE_STATE
from primer_resources.catalog.schema_bodies import contents, parsed, reviews, stored_states
from primer_resources.catalog.stored_states import StoredState, StoredStates, state_of

LOOKED_AT = 1000
"""Rows that one page passes over."""
CHANGED_AT_ONCE = 100
"""Contents that one transaction locks and changes."""
MOST_CLAIMS = 1000
"""Documents with one content, above which its source bytes stay: their manifests would have to change in one transaction."""

Content = tuple[str, str]
"""(tenant, content hash)."""


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """One page's work: where the next one begins (None after the last), and what was deleted: objects, and their bytes."""

    after: Any
    objects: int
    size: int


class BodyPolicies:
    """Deletes bodies as the policies say."""

    def __init__(self, database: Database, states: StoredStates, ledger: Ledger, reviews_: Reviews, parses: Parses) -> None:
        self._db = database
        self._states, self._ledger, self._reviews, self._parses = states, ledger, reviews_, parses

    def settle(self, after: Content = ("", "")) -> PolicyPage:
        """Delete the source bytes of contents behind `after` whose documents are all indexed in every open index version."""
        key = tuple_(contents.c.tenant_id, contents.c.content_hash)
        page = select(contents.c.tenant_id, contents.c.content_hash, contents.c.object).where(key > tuple_(*after)).limit(LOOKED_AT)
        with self._db.read() as connection:
            rows = connection.execute(page.order_by(contents.c.tenant_id, contents.c.content_hash)).all()
        objects = size = 0
        for part in slices([(row.tenant_id, row.content_hash) for row in rows if row.object is not None], CHANGED_AT_ONCE):
            gone = self._settle_all(part)
            objects, size = objects + len(gone), size + sum(gone)
        return PolicyPage((rows[-1].tenant_id, rows[-1].content_hash) if len(rows) == LOOKED_AT else None, objects, size)

    def _settle_all(self, wanted: Sequence[Content]) -> list[int]:
        """The sizes of what was deleted."""
        sizes = []
        by_tenant: dict[str, list[str]] = defaultdict(list)
        for tenant_id, content_hash in wanted:
            by_tenant[tenant_id].append(content_hash)
        for tenant_id, hashes in by_tenant.items():
            with self._db.begin() as connection:
                lock_contents(connection, ((tenant_id, content_hash) for content_hash in hashes))
                versions = [name for name, _ in _open_versions(connection)]
                claims = self._claims(connection, tenant_id, self._not_crowded(connection, tenant_id, hashes))
                judged = self._judge(connection, tenant_id, claims, versions)
                sizes += [self._settle_one(connection, row, claims[row.content_hash]) for row in judged]
        return sizes

    def _not_crowded(self, connection: Connection, tenant_id: str, hashes: Collection[str]) -> list[str]:
        """Those of the contents that not too many documents have."""
        mine = and_(stored_states.c.tenant_id == tenant_id, stored_states.c.content_hash.in_(sorted(hashes)))
        theirs = and_(mine, stored_states.c.graph == f"{DriveKind.INTAKE}:{tenant_id}")
        counted = select(stored_states.c.content_hash).where(theirs).group_by(stored_states.c.content_hash)
        return list(connection.execute(counted.having(func.count() <= MOST_CLAIMS)).scalars())

    def _claims(self, connection: Connection, tenant_id: str, hashes: Collection[str]) -> dict[str, list[StoredState]]:
        found: dict[str, list[StoredState]] = defaultdict(list)
        for state in self._states.claims(connection, tenant_id, hashes):
            found[state.content_hash].append(state)
        return found

    def _judge(
        self, connection: Connection, tenant_id: str, claims: dict[str, list[StoredState]], versions: Sequence[str]
    ) -> list[Row[Any]]:
        """The rows of contents whose bytes may go."""
        doc_ids = sorted({state.doc_id for states in claims.values() for state in states})
        known, under_way, indexed = self._documents(connection, doc_ids, versions)
        is_open = in_states(reviews.c.state, [ReviewState.OPEN])
        mine = and_(reviews.c.tenant_id == tenant_id, reviews.c.content_hash.in_(sorted(claims)), is_open)
        waiting = set(connection.execute(select(reviews.c.content_hash).where(mine)).scalars())

        def claim(state: StoredState) -> Claim:
            row = known.get(state.doc_id)
            is_present = state.state == LIVE_STATE and row is not None and row.deleted_at is None
            is_same = is_present and row is not None and row.content_hash == state.content_hash
            holds = indexed.get((state.doc_id, state.content_hash), frozenset()) if is_same else frozenset()
            return Claim(is_same, state.doc_id in under_way, holds)

        ready = [
            content_hash
            for content_hash, states in claims.items()
            if may_go([claim(state) for state in states], versions, content_hash in waiting)
        ]
        # A sync that has just stored the bytes is about to give them to a document.
        settled = or_(contents.c.unowned_at.is_(None), contents.c.unowned_at <= self._db.now() - HANDLING)
        here = and_(contents.c.tenant_id == tenant_id, contents.c.content_hash.in_(ready), contents.c.object.is_not(None), settled)
        return list(connection.execute(select(contents).where(here)).all())

    def _documents(
        self, connection: Connection, doc_ids: Sequence[str], versions: Sequence[str]
    ) -> tuple[dict[str, Row[Any]], set[str], dict[tuple[str, str], frozenset[str]]]:
        """Documents by id; those with a job that is not finished; (document, content) → index versions that hold the document's present
        version, with that content."""
        known: dict[str, Row[Any]] = {}
        under_way: set[str] = set()
        indexed: dict[tuple[str, str], frozenset[str]] = {}
        for part in slices(doc_ids):
            known |= {row.doc_id: row for row in connection.execute(select(documents).where(documents.c.doc_id.in_(part)))}
            under_way |= set(connection.execute(select(jobs.c.doc_id).where(jobs.c.doc_id.in_(part), LIVE)).scalars())
        for version in versions:
            for entry in self._ledger.entries(connection, doc_ids, version).values():
                row = known.get(entry.doc_id)
                is_newest = row is not None and entry.indexed_version == row.source_version == entry.source_version
                if is_newest and entry.outcome in SUCCESSES and entry.content_hash is not None:
                    key = entry.doc_id, entry.content_hash
                    indexed[key] = indexed.get(key, frozenset()) | {version}
        return known, under_way, indexed

    def _settle_one(self, connection: Connection, row: Row[Any], claims: Iterable[StoredState]) -> int:
        now = self._db.now()
        connection.execute(update(contents).where(is_content(row.tenant_id, row.content_hash)).values(object=None))
        for state in claims:
            gone = state.manifest.without_bodies([Part.BLOBS], DeletedReason.POST_PARSE_POLICY, now)
            if gone != state.manifest:
                self._states.change(connection, state, gone)
        self._states.free(connection, row.tenant_id, DriveKind.INTAKE, [row.object])
        return int(row.size)

    def retain(self, retention: timedelta, after: str = "") -> PolicyPage:
        """Delete the bodies of pipeline states behind `after` that were last changed a `retention` ago or longer, and that no open index
        version's recipe uses any more."""
        columns = (stored_states.c[name] for name in ("node_id", "node", "tenant_id", "graph", "content_hash", "updated_at"))
        page = select(*columns).where(stored_states.c.node_id > after).order_by(stored_states.c.node_id).limit(LOOKED_AT)
        old = self._db.now() - retention
        with self._db.read() as connection:
            in_use = outputs_in_use([recipe.parser.version for _, recipe in _open_versions(connection)], ())
            rows = connection.execute(page).all()
        chosen = [
            row for row in rows if row.graph == f"{DriveKind.PIPELINE}:{row.tenant_id}" and row.updated_at <= old and row.node not in in_use
        ]
        objects = size = 0
        for part in slices(chosen, CHANGED_AT_ONCE):
            gone = self._retain_all(part, retention)
            objects, size = objects + len(gone), size + sum(gone)
        return PolicyPage(rows[-1].node_id if len(rows) == LOOKED_AT else None, objects, size)

    def _retain_all(self, wanted: Sequence[Row[Any]], retention: timedelta) -> list[int]:
        sizes: list[int] = []
        node_ids = [row.node_id for row in wanted]
        with self._db.begin() as connection:
            lock_contents(connection, ((row.tenant_id, row.content_hash) for row in wanted))
            # A version that is opened after this look parses only after this transaction, and finds what it lacks.
            parsers = {recipe.parser.version for _, recipe in _open_versions(connection)}
            old = self._db.now() - retention
            if not parsers:
                return sizes
            held = select(stored_states).where(stored_states.c.node_id.in_(node_ids), stored_states.c.updated_at <= old)
            states = [state_of(row) for row in connection.execute(held.order_by(stored_states.c.node_id).with_for_update())]
            for tenant_id in sorted({state.tenant_id for state in states}):
                mine = [state for state in states if state.tenant_id == tenant_id]
                hashes = {state.content_hash for state in mine}
                labels = self._labels(connection, tenant_id, hashes)
                pictures = self._pictures(connection, tenant_id, hashes)
                for state in mine:
                    if state.node not in outputs_in_use(parsers, labels[state.content_hash]):
                        sizes += self._retain_one(connection, state, pictures)
        return sizes

    def _labels(self, connection: Connection, tenant_id: str, hashes: Collection[str]) -> dict[str, set[str]]:
        """content → labels of the pages with which it may be read: as people decided, as the indexes hold it now and held it before, and as
        the jobs under way were parsed."""
        labels = {content: {label} for content, label in self._reviews.let_through(connection, tenant_id, hashes).items()}
        of = (stored_states.c.tenant_id == tenant_id, stored_states.c.content_hash.in_(sorted(hashes)))
        theirs = and_(*of, stored_states.c.graph == f"{DriveKind.INTAKE}:{tenant_id}")
        claimed = select(stored_states.c.content_hash).where(theirs).distinct()
        held = claimed.join(index_state, index_state.c.doc_id == stored_states.c.doc_id)
        for content, label in (
            (index_state.c.content_hash, index_state.c.accepted_pages),
            (index_state.c.previous_content_hash, index_state.c.previous_accepted_pages),
        ):
            for row in connection.execute(held.add_columns(label.label("label")).where(content == stored_states.c.content_hash)):
                labels[row.content_hash].add(row.label)
        busy = claimed.join(jobs, jobs.c.doc_id == stored_states.c.doc_id).add_columns(jobs.c.accepted_pages.label("label"))
        for row in connection.execute(busy.where(LIVE)):
            labels[row.content_hash].add(row.label)
        return labels

    def _pictures(self, connection: Connection, tenant_id: str, hashes: Collection[str]) -> set[str]:
        """Keys of the pictures that people are shown: they stay for as long as their pages are listed."""
        mine = and_(reviews.c.tenant_id == tenant_id, reviews.c.content_hash.in_(sorted(hashes)))
        return set(connection.execute(select(reviews.c.object).where(mine)).scalars())

    def _retain_one(self, connection: Connection, state: StoredState, pictures: Collection[str]) -> list[int]:
        """The sizes of what was deleted. What is not kept counts as parsed no longer."""
        now = self._db.now()
        gone = [entry for entry in state.manifest.present() if entry.object_key not in pictures]
        if not gone:
            return []
        left = state.manifest.merged(entry.deleted(DeletedReason.POST_PARSE_POLICY, now) for entry in gone)
        self._states.change(connection, state, left)
        self._states.free(connection, state.tenant_id, DriveKind.PIPELINE, [entry.object_key or "" for entry in gone])
        mine = and_(parsed.c.tenant_id == state.tenant_id, parsed.c.content_hash == state.content_hash)
        versions = connection.execute(select(parsed.c.parser_version).where(mine)).scalars()
        outputs = [version for version in versions if recipe_key(version) == state.node]
        self._parses.forget(connection, state.tenant_id, state.content_hash, outputs)
        return [entry.size for entry in gone]


def _open_versions(connection: Connection) -> list[tuple[str, Recipe]]:
    """The index versions that are written to, with their recipes."""
    open_ = index_versions.c.state != VersionState.RETIRED
    rows = connection.execute(select(index_versions.c.name, index_versions.c.recipe).where(open_))
    return [(row.name, Recipe.from_json(row.recipe)) for row in rows]
