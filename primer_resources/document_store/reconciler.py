"""The reconciler: a drive held against the catalog, both ways. Objects that nobody owns are orphans; objects that a row owns and that are
not there are missing. It looks, and takes orphans away only where it is told to.

Neither side fits in memory. The listing streams by in pages, and the catalog is asked once a page who owns its keys; what was listed goes
to a spool on disk. Then the catalog's owned objects stream by in the order of that spool's segments. Catalog and drive change meanwhile, so
whatever looks wrong is looked at once more, on the drive and then in the catalog, before it is called so.

A save puts its objects first and commits their owner after, so an object under way is told from an orphan by its age alone
(primer_core/coherence.py). A save that takes longer than half of that sees to it that its objects stand (states.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from hashlib import blake2b
from itertools import islice
from string import hexdigits

from primer_core.coherence import SAMPLE, DriveCoherence, MissingObject, Owner, Standing, Tally, is_of_age, judge_object
from primer_core.failures import PrimerError
from primer_core.stored_states import DriveKind
from primer_resources.catalog.object_owners import ObjectOwners, OwnedObject
from primer_resources.clock import Clock
from primer_resources.document_store.drive import Drive, Stored, check_key
from primer_resources.document_store.drives import TenantDrives
from primer_resources.id_spool import ID_BYTES, IdSpool
from primer_resources.s3 import LIST_PAGE
from primer_resources.scratch import Scratch

_Heads = Callable[[Iterable[str]], Iterable[Stored | None]]
HEADS_AT_ONCE = 8
"""Objects looked at once more at the same moment."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Holds drives against the catalog. `clock` is to agree with the stores' within minutes, as signed requests need anyway."""

    owners: ObjectOwners
    drives: TenantDrives
    clock: Clock

    def run(self, tenant_ids: Iterable[str], takes_orphans: bool = False) -> Iterator[DriveCoherence]:
        """A look at both drives of each tenant. One that fails, or that the tenant does not have, is told as a look with a fault, and the
        others are looked at all the same."""
        for tenant_id in tenant_ids:
            for kind in DriveKind:
                place, began = "", self.clock.now()
                try:
                    drive = self.drives.of(tenant_id, kind)
                    place = drive.place
                    yield self.look(drive, tenant_id, kind, takes_orphans)
                except PrimerError as error:
                    yield DriveCoherence(tenant_id, kind, place, began, fault=str(error))

    def look(self, drive: Drive, tenant_id: str, kind: DriveKind, takes_orphans: bool = False) -> DriveCoherence:
        """One look at a drive, to its end. With `takes_orphans` each orphan is deleted once it was seen to be one a second time. Raises
        SystemFault where the drive fails."""
        with ThreadPoolExecutor(HEADS_AT_ONCE, thread_name_prefix="head") as threads, Scratch() as folder:
            heads = partial(threads.map, drive.head)
            listing = _Listing(drive, heads, tenant_id, kind, self.owners, self.clock.now(), IdSpool(folder / "listed"))
            objects = drive.list()
            while page := list(islice(objects, LIST_PAGE)):
                listing.take(page, takes_orphans)
            return self._find_missing(listing)

    def _find_missing(self, listing: "_Listing") -> DriveCoherence:
        """What live rows own, and what of it the listing did not show."""
        tenant_id, kind = listing.tenant_id, listing.kind
        checked, missing, sample = 0, 0, list[OwnedObject]()
        for page in self.owners.pages(tenant_id, kind):
            checked += len(page)
            gone = self._still_missing(listing, [each for each in page if not each.key or _spool_id(each.key) not in listing.spool])
            missing += len(gone)
            sample += gone[: SAMPLE - len(sample)]
        documents = self.owners.documents(tenant_id, {each.content_hash for each in sample})
        named = (MissingObject(each.key, each.content_hash, each.part, each.sub_key, documents.get(each.content_hash)) for each in sample)
        return replace(listing.told(), checked=checked, missing=missing, missing_sample=tuple(named))

    def _still_missing(self, listing: "_Listing", unseen: Sequence[OwnedObject]) -> list[OwnedObject]:
        """Those that are not on the drive now either, and are owned all the same. One without a key has no object at all."""
        keys = [each.key for each in unseen if each.key]
        gone = [key for key, found in zip(keys, listing.heads(keys), strict=True) if found is None]
        owned = self.owners.of(listing.tenant_id, listing.kind, gone) if gone else {}
        return [each for each in unseen if not each.key or owned.get(each.key) is Owner.LIVE]


@dataclass(slots=True)
class _Listing:
    """A listing as it goes by. `began` is when it did: ages are counted to then."""

    drive: Drive
    heads: _Heads
    tenant_id: str
    kind: DriveKind
    owners: ObjectOwners
    began: datetime
    spool: IdSpool
    all: Tally = field(default_factory=Tally)
    foreign: Tally = field(default_factory=Tally)
    reclaimed: Tally = field(default_factory=Tally)
    tallies: dict[Standing, Tally] = field(default_factory=lambda: {standing: Tally() for standing in Standing})

    def take(self, page: Sequence[Stored], takes_orphans: bool) -> None:
        """The next page: who owns its objects, and which are orphans."""
        self.all = self.all.plus(_facts(page))
        foreign = [each for each in page if not _is_key(each.key)]
        self.foreign = self.foreign.plus(_facts(foreign))
        ours = [each for each in page if _is_key(each.key)] if foreign else page
        found = self._judge(ours)
        orphans = self._settle(found[Standing.ORPHAN])
        self._count(Standing.ORPHAN, orphans)
        for standing in (Standing.FREED, Standing.TOO_YOUNG):
            self._count(standing, found[standing])
        if takes_orphans and orphans:
            self.drive.delete([each.key for each in orphans])
            self.reclaimed = self.reclaimed.plus(_facts(orphans))
        taken = {each.key for each in orphans} if takes_orphans else frozenset()
        self.spool.add(_spool_id(each.key) for each in ours if each.key not in taken)

    def _judge(self, page: Sequence[Stored]) -> dict[Standing, list[Stored]]:
        owners = self.owners.of(self.tenant_id, self.kind, [each.key for each in page])
        found: dict[Standing, list[Stored]] = {standing: [] for standing in Standing}
        for each in page:
            found[judge_object(each.key, each.modified, owners.get(each.key), self.began)].append(each)
        return found

    def _settle(self, suspects: Sequence[Stored]) -> list[Stored]:
        """Those that stand there now as they did, and have no owner now either: the drive is asked first, so that an object whose owner was
        just committed, or which the purge has just removed, is no orphan."""
        found = self.heads([each.key for each in suspects])
        old = [now for now in found if now is not None and is_of_age(now.modified, self.began)]
        return self._judge(old)[Standing.ORPHAN] if old else []

    def _count(self, standing: Standing, objects: Sequence[Stored]) -> None:
        self.tallies[standing] = self.tallies[standing].plus(_facts(objects))

    def told(self) -> DriveCoherence:
        """What the listing came to."""
        return DriveCoherence(
            self.tenant_id,
            self.kind,
            self.drive.place,
            self.began,
            objects=self.all.count,
            bytes=self.all.bytes,
            orphans=self.tallies[Standing.ORPHAN],
            too_young=self.tallies[Standing.TOO_YOUNG],
            freed=self.tallies[Standing.FREED],
            foreign=self.foreign,
            reclaimed=self.reclaimed,
        )


def _facts(objects: Iterable[Stored]) -> list[tuple[str, int]]:
    return [(each.key, each.size) for each in objects]


def _is_key(key: str) -> bool:
    """Whether Primer could have made the object; what it could not have made it cannot take away either."""
    try:
        check_key(key)
    except ValueError:
        return False
    return True


def _spool_id(key: str) -> bytes:
    """An id of a key for the spool: its segment is that of the two hex digits with which keys begin, since the catalog streams in that
    order; one that begins otherwise is of no row."""
    digest = blake2b(key.encode(), digest_size=ID_BYTES).digest()
    return bytes.fromhex(key[:2]) + digest[1:] if len(key) > 1 and key[0] in hexdigits and key[1] in hexdigits else digest
