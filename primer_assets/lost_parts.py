"""Bodies that a stage needs and that are not on their drive any more: only the documents of that content are affected.

The manifest says that the part is lost, and the jobs go back to the stage that makes it; a document whose source bytes are lost is asked
for again at its source. A drive that fails or is not there raises another SystemFault, long before anything comes here.
"""

from collections.abc import Sequence

from primer_assets.stage_run import StageRun, Tally
from primer_core.failures import DocumentFault, Reason, SystemFault
from primer_core.reviews import output_version
from primer_core.stages import CHUNK, PARSE, WRITE, Operation, Stage
from primer_core.stored_states import DriveKind, pipeline_state
from primer_resources.catalog.contents import lock_contents
from primer_resources.catalog.generations import WriteState, lock_documents
from primer_resources.catalog.jobs import Job
from primer_resources.document_store.drive import Drive, ObjectGone
from primer_resources.document_store.store import PartGone

BODY_GONE = (ObjectGone, PartGone)
"""What a read raises where a body is not there: as was just found out, or as the manifest says already."""


def note_lost(run: StageRun, tenant_id: str, content_hash: str, accepted_pages: str, error: SystemFault) -> str:
    """Have the manifest say that a part of a content's parse output is lost. Returns the output's version. Raises SystemFault where the
    drive has lost all that it had."""
    output = output_version(run.version.recipe.parser.version, accepted_pages)
    if isinstance(error, ObjectGone):
        store, state = run.store.of(tenant_id).pipeline, pipeline_state(tenant_id, content_hash, output)
        _check_not_emptied(run, tenant_id, DriveKind.PIPELINE, store.drive)
        # All of the output is looked at: a part that nobody reads here would pass for kept when the others are made again.
        for entry in store.manifest(state).present():
            if entry.object_key is not None and store.drive.head(entry.object_key) is None:
                run.catalog.states.lose(state.node_id, entry.object_key)
    return output


def send_back(run: StageRun, stage: Stage, jobs: Sequence[Job], error: SystemFault, tally: Tally) -> None:
    """Jobs of one content of a tenant back to the stage that makes what `stage` did not find: chunk sets are made by the chunk stage, all
    that this reads by the parse."""
    first, to = jobs[0], PARSE if stage is CHUNK else CHUNK
    tenant_id, content = run.source_of(first.source_id).tenant_id, first.content_hash or ""
    output = note_lost(run, tenant_id, content, first.accepted_pages, error)
    with run.catalog.database.begin() as connection:
        if to is PARSE:  # or its documents would pass that stage as parsed, and find nothing after it
            lock_contents(connection, [(tenant_id, content)])
            run.catalog.parses.forget(connection, tenant_id, content, [output])
        run.catalog.jobs.step_back(connection, stage, jobs, run.owner, to)
    tally.counts["sent_back"] += len(jobs)


def send_write_back(run: StageRun, job: Job, state: WriteState, error: SystemFault, tally: Tally) -> None:
    """A write that found no chunk set: back to the chunk stage. A permission change has no content of its own to go back with: its document
    gets a job that has."""
    if job.operation is not Operation.ACL:
        send_back(run, WRITE, [job], error, tally)
        return
    content = state.content_hash or ""
    note_lost(run, run.source_of(job.source_id).tenant_id, content, state.accepted_pages, error)
    run.catalog.replays.rebuild(job, content, state.accepted_pages, run.owner)
    tally.counts["sent_back"] += 1


def ask_again(run: StageRun, tenant_id: str, content_hash: str, jobs: Sequence[Job], error: SystemFault, tally: Tally) -> None:
    """Jobs whose source bytes are lost: dead letters until their sources, which are due at once, have been asked for the documents."""
    if isinstance(error, ObjectGone):
        _check_not_emptied(run, tenant_id, DriveKind.INTAKE, run.store.of(tenant_id).intake)
        run.catalog.states.lose_source(tenant_id, content_hash, error.key)
    asked = [job for job in jobs if run.source_of(job.source_id).removed_at is None]
    with run.catalog.database.begin() as connection:
        lock_documents(connection, [job.doc_id for job in asked])
        run.catalog.replays.fetch_again(connection, [job.doc_id for job in asked])
        for source_id in sorted({job.source_id for job in asked}):
            run.catalog.sources.make_due(connection, source_id, in_full=True)
    fault = DocumentFault(Reason.BYTES_LOST, f"the source bytes of content {content_hash[:12]} are not on their drive any more")
    for job in jobs:
        run.catalog.jobs.fail(PARSE, job, run.owner, fault)
        tally.fail(fault)


def _check_not_emptied(run: StageRun, tenant_id: str, kind: DriveKind, drive: Drive) -> None:
    """Raise SystemFault for a drive without any object where the catalog knows several: an empty mount point, or another bucket."""
    if next(drive.list(), None) is None and len(next(run.catalog.object_owners.pages(tenant_id, kind), ())) > 1:
        raise SystemFault(
            f"drive {drive.place} has no object at all, though the catalog knows many; is it the right bucket, the right mount?"
        )
