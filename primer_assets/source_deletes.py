"""Deletes: documents become tombstones, jobs take their rows out of the indexes or over to a copy, and their bodies wait to be purged."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sqlalchemy import Connection

from primer_core.lanes import Lane
from primer_core.stages import Operation
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.documents import Deletion, KnownDocument
from primer_resources.catalog.jobs import NewJob
from primer_resources.catalog.sources import Source


def delete_documents(
    catalog: Catalog,
    connection: Connection,
    source: Source,
    gone: Sequence[KnownDocument],
    if_missing: bool = False,
) -> int:
    """Tombstone documents and make the jobs that take their rows out of the indexes, or over to a copy. Returns how many went.

    With `if_missing` only those go whose delete is still held.
    """
    versions = catalog.deployments.written_to(connection)
    doc_ids = [document.doc_id for document in gone]
    locked = catalog.copies.lock(connection, (source.tenant_id, source.library), doc_ids, doc_ids)
    went = tombstone_documents(catalog, connection, source, gone, versions, if_missing=if_missing)
    catalog.copies.settle(connection, locked, versions)
    return went


def tombstone_documents(
    catalog: Catalog,
    connection: Connection,
    source: Source,
    gone: Sequence[KnownDocument],
    versions: Sequence[str],
    told: Mapping[str, Deletion] = MappingProxyType({}),
    if_missing: bool = False,
) -> int:
    """The same inside a transaction that has locked the documents and their contents, and settles the contents at its end: one of them may
    be that of a document which it has yet to add.

    `told` is doc_id → the delete that the source told of; without it the document went now, after the version that is known.
    """
    now = catalog.database.clock.now()
    went = set(catalog.documents.tombstone(connection, gone, now, told, if_missing))
    catalog.states.doom(connection, went)
    for document in gone:
        if document.doc_id in went:
            at = told[document.doc_id].event_time if document.doc_id in told else now
            label, bucket = document.source_version, document.bucket or ""
            job = NewJob(document.doc_id, source.source_id, label, None, bucket, Lane.FAST, Operation.DELETE, at)
            if document.bucket is None:
                catalog.jobs.supersede(connection, document.doc_id, now)
            else:
                catalog.jobs.add(connection, [job], versions)
    return len(went)
