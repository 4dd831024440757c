"""Vectors of text that is to go: a freed chunk set is read before its bytes are deleted, and what only it says leaves the caches.

The mark on its row is committed before the bytes go. So an object that is not there any more either has the mark, and an earlier run dealt
with it, or it was lost, and nobody can tell which vectors were its own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from primer_assets.stage_run import Tally
from primer_assets.vectors import vector_key
from primer_core.failures import SystemFault
from primer_core.ids import content_hash
from primer_core.stored_states import DriveKind
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.stored_states import FreedObject
from primer_resources.document_store.drive import Drive, ObjectGone
from primer_resources.document_store.parts import BodyDamaged, to_chunks
from primer_resources.toolkit import Tools

PASSAGES_A_BATCH = 5_000
"""Passages after which the caches are asked: some megabytes of text in memory, and few commits of a cache."""

Texts = dict[str, str]
"""What was embedded → its SHA-256. Not the passage's own words: two passages that differ in a link's target are embedded as one."""


@dataclass(frozen=True, slots=True)
class VectorForgetter:
    """Takes vectors out of the caches of the models of all open index versions (`tools`, by the version's name)."""

    catalog: Catalog
    tools: Mapping[str, Tools]
    tally: Tally

    def forget(self, freed: Iterable[FreedObject], drives: Callable[[str], Mapping[DriveKind, Drive]]) -> None:
        """Deal with the chunk sets among these objects, purge by purge; `drives` are a tenant's, none where it is refused.

        The chunk sets of one purge are marked together, so that a vector which several of them have is counted once. Raises SystemFault
        where a cache still has what it was told to forget.
        """
        batch: dict[FreedObject, Texts] = {}
        waiting = (each for each in freed if each.is_chunk_set and each.forgotten_at is None)
        for each in sorted(waiting, key=lambda each: (each.purge_id or 0, each.tenant_id, each.object_key)):
            last = next(reversed(batch), None)
            is_between = last is not None and (last.purge_id is None or last.purge_id != each.purge_id)
            if is_between and sum(map(len, batch.values())) >= PASSAGES_A_BATCH:
                self._settle(batch)
                batch = {}
            drive = drives(each.tenant_id).get(DriveKind.PIPELINE)
            if drive is None:
                continue
            try:
                body = drive.get(each.object_key)
                batch[each] = {chunk.embed_text: content_hash(chunk.embed_text.encode()) for chunk in to_chunks(body)}
            except (ObjectGone, BodyDamaged):
                self.tally.counts["unread_chunk_sets"] += 1
        if batch:
            self._settle(batch)

    def _settle(self, batch: Mapping[FreedObject, Texts]) -> None:
        """Forget what only these say; words that a living document has, too, keep their vectors."""
        living = self.catalog.purges.living_texts({text_hash for texts in batch.values() for text_hash in texts.values()})
        counted: dict[int | None, set[str]] = {}
        marks: dict[FreedObject, int] = {}
        every: dict[str, set[str]] = {name: set() for name in self.tools}
        for each, texts in batch.items():
            keys: set[str] = set()
            for name, tools in self.tools.items():
                theirs = {vector_key(tools, text) for text, text_hash in texts.items() if text_hash not in living}
                every[name] |= theirs
                keys |= theirs
            before = counted.setdefault(each.purge_id, set())
            marks[each] = len(keys - before)
            before |= keys
        for name, theirs in every.items():
            self._forget(name, theirs)
        self.catalog.states.forgotten(marks)
        self.tally.counts["vectors"] += len(set().union(*every.values()))

    def _forget(self, name: str, keys: set[str]) -> None:
        cache = self.tools[name].cache
        cache.delete(keys)
        if there := cache.known(keys):
            raise SystemFault(
                f"{len(there)} vectors of deleted text are still in the cache of index version {name}; the next run tries again"
            )
