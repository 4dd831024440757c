"""Saving and reading the parts of a state: only what changed is written, only what is asked for is read, and the manifest in the catalog
says which objects there are. No catalog transaction is open across a call to a drive.

An object is written under a key that nobody used before and never changed, so a reader of an older manifest reads the body that it names,
or finds it gone and looks at the manifest again.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from primer_core.coherence import MIN_AGE
from primer_core.failures import SystemFault, Transient
from primer_core.stored_states import Manifest, Part, PartEntry, PartKey, PartState, StateIdentity, WrittenBy, plan_save
from primer_resources.catalog.stored_states import StoredStates
from primer_resources.clock import Clock
from primer_resources.document_store.drive import Drive, ObjectGone
from primer_resources.document_store.parts import suffix

READS_AT_ONCE = 8
"""Objects of one read that are fetched at once."""
LOOKS = 3
"""Looks at a manifest whose object is gone, before the object counts as lost: another save may have taken its place."""
SAVE_TIME = MIN_AGE / 2
"""How long a save may take before its objects could pass for orphans."""


class CopySourceGone(SystemFault):
    """A part that a save wanted to carry over from another state has no object to copy; the part is to be saved whole."""


@dataclass(frozen=True, slots=True)
class StateStore:
    """The states of one graph on one drive."""

    drive: Drive
    states: StoredStates
    clock: Clock
    random: Random

    def manifest(self, identity: StateIdentity) -> Manifest:
        """What the state has, without reading one byte of it; an empty manifest where there is no state."""
        found = self.states.find([identity.node_id]).get(identity.node_id)
        return Manifest() if found is None else found.manifest

    def save(
        self,
        identity: StateIdentity,
        content_hash: str,
        bodies: Mapping[PartKey, bytes],
        by: WrittenBy,
        base: StateIdentity | None = None,
    ) -> Manifest:
        """Save bodies, b"" for an empty part, and leave the state's other parts as they are. Returns the manifest that then holds.

        A body that the state has already is not written. One that the state `base` has is copied on the server's side. Raises Transient
        where the content is gone.
        """
        hashes = {key: hashlib.sha256(body).hexdigest() if body else "" for key, body in bodies.items()}
        began = self.clock.now()
        while True:
            plan = plan_save(self.manifest(identity), hashes)
            carried = Manifest() if base is None or not plan.write else self.manifest(base)
            written = [self._write(identity, key, bodies[key], hashes[key], by, carried) for key in plan.write]
            try:
                manifest = self.states.save(identity, content_hash, written)
            except Transient:
                self._take_back(written, Manifest())
                raise
            self._take_back(written, manifest)
            if self.clock.now() - began > SAVE_TIME:
                self._keep_standing(identity, written, manifest, bodies)
            # A state that was purged and made anew meanwhile lacks what was planned to be kept.
            if not plan_save(manifest, hashes).write:
                return manifest

    def _keep_standing(
        self, identity: StateIdentity, written: Sequence[PartEntry], manifest: Manifest, bodies: Mapping[PartKey, bytes]
    ) -> None:
        named = {entry.object_key for entry in manifest.present()}
        for entry in written:
            if entry.object_key is not None and entry.object_key in named:
                keep_standing(self.drive, entry.object_key, bodies[entry.key], partial(self._names, identity, entry))

    def _names(self, identity: StateIdentity, entry: PartEntry) -> bool:
        there = self.manifest(identity).find(*entry.key)
        return there is not None and there.object_key == entry.object_key

    def _take_back(self, written: Sequence[PartEntry], manifest: Manifest) -> None:
        """Delete the objects that were written and that the manifest does not name: another save was first."""
        named = {entry.object_key for entry in manifest.present()}
        lost = [entry.object_key for entry in written if entry.object_key is not None and entry.object_key not in named]
        if lost:
            self.drive.delete(lost)

    def _write(self, identity: StateIdentity, key: PartKey, body: bytes, sha256: str, by: WrittenBy, carried: Manifest) -> PartEntry:
        now = self.clock.now()
        if not body:
            return PartEntry(*key, PartState.EMPTY, 0, None, now, None, by)
        object_key = new_key(identity.node_id, key, self.random)
        there = carried.entries.get(key)
        is_carried = False
        if there is not None and there.sha256 == sha256:
            with suppress(CopySourceGone):
                self.carry(there, object_key)
                is_carried = True
        if not is_carried:
            self.drive.create(object_key, body)
        return PartEntry(*key, PartState.PRESENT, len(body), sha256, now, object_key, by)

    def carry(self, entry: PartEntry, object_key: str, to: Drive | None = None) -> None:
        """Copy the object of an entry of this drive under another key, on this drive or on `to`, without its bytes passing through here
        where the drives can do that. Raises CopySourceGone where there is nothing to copy."""
        if entry.state is not PartState.PRESENT or entry.object_key is None:
            raise CopySourceGone(f"part {entry.part}/{entry.sub_key} is {entry.state} without an object, so it cannot be copied")
        try:
            self.drive.copy(entry.object_key, to or self.drive, object_key)
        except ObjectGone as error:
            raise CopySourceGone(f"part {entry.part}/{entry.sub_key}: object {entry.object_key} in {self.drive.place} is gone") from error

    def read(self, identity: StateIdentity, wanted: Collection[Part] | Collection[PartKey]) -> dict[PartKey, bytes]:
        """The bodies of these parts, or of these objects, b"" for an empty one; several are fetched at once. What the state does not have,
        or has no more, is left out. Raises ObjectGone where an object that the manifest names is not there, SystemFault where it holds
        other bytes than were saved."""
        for look in range(LOOKS):
            entries = [entry for entry in self.manifest(identity).masked(wanted) if entry.state is not PartState.DELETED]
            try:
                return self._fetch(entries)
            except ObjectGone:
                if look == LOOKS - 1:
                    raise
        raise AssertionError("unreachable")

    def _fetch(self, entries: Sequence[PartEntry]) -> dict[PartKey, bytes]:
        if len(entries) < 2:
            return {entry.key: self._body(entry) for entry in entries}
        with ThreadPoolExecutor(min(READS_AT_ONCE, len(entries)), thread_name_prefix="read") as threads:
            return dict(zip([entry.key for entry in entries], threads.map(self._body, entries), strict=True))

    def _body(self, entry: PartEntry) -> bytes:
        if entry.state is PartState.EMPTY:
            return b""
        if entry.object_key is None:
            raise SystemFault(f"part {entry.part}/{entry.sub_key} is {entry.state} without an object; restore the catalog from a backup")
        body = self.drive.get(entry.object_key)
        if hashlib.sha256(body).hexdigest() != entry.sha256:
            raise SystemFault(
                f"object {entry.object_key} on drive {self.drive.place} holds other bytes than were saved; restore it from a backup"
            )
        return body


def keep_standing(drive: Drive, object_key: str, body: bytes | Path, is_owned: Callable[[], bool]) -> None:
    """Put an object again where it is not there any more: its save took so long that the reconciler may have taken it for an orphan. Now it
    has an owner, so nobody does; unless it was purged, and then it must not come back."""
    if drive.head(object_key) is not None:
        return
    drive.create(object_key, body)
    if not is_owned():
        drive.delete([object_key])


def new_key(node_id: str, key: PartKey, random: Random) -> str:
    """A key for an object of a state that nobody used before: part and sub-key for people, and a nonce that tells repeated runs apart."""
    part, sub_key = key
    name = f"{sub_key}." if sub_key else ""
    return f"{node_id[:2]}/{node_id}/{part}/{name}{random.getrandbits(64):016x}.{suffix(key)}"
