"""Opening a drive from what the catalog keeps of it, and setting one up: made where it is a folder, and probed."""

from pathlib import Path
from uuid import uuid4

from primer_core.drives import DriveSpec, check_spec
from primer_core.failures import PrimerError, SystemFault
from primer_resources.document_store.drive import Drive
from primer_resources.document_store.folder_drive import FolderDrive
from primer_resources.document_store.s3_drive import S3Drive

_FIRST, _SECOND = b"first", b"second"


def open_drive(spec: DriveSpec, home: Path) -> Drive:
    """The drive. `home` is PRIMER_HOME, below which a folder that is not absolute lies. A bucket is not asked for anything yet.

    Raises SystemFault for a folder that is not there, PrimerError for credentials that cannot be read.
    """
    check_spec(spec)
    return S3Drive(spec) if spec.is_s3 else FolderDrive(home.resolve() / spec.url)


def set_up_drive(spec: DriveSpec, home: Path) -> Drive:
    """Make the drive's folder where it is one, open the drive and probe it. Raises PrimerError where it cannot be used."""
    check_spec(spec)
    if not spec.is_s3:
        folder = home.resolve() / spec.url
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PrimerError(f"drive {folder} cannot be made ({error.strerror}); choose a folder that can be written") from error
    drive = open_drive(spec, home)
    probe(drive)
    return drive


def probe(drive: Drive) -> bool:
    """Do with an object of the probe's own what Primer does with others, and take it away again. Returns whether the drive keeps what is
    deleted, so that no purge is one. Raises PrimerError where it lets a second create of one key succeed, or does not show or give back
    what was put; SystemFault where it cannot be reached."""
    key = f"probe/{uuid4().hex}"
    drive.create(key, _FIRST)
    try:
        if drive.create(key, _SECOND):
            raise PrimerError(
                f"drive {drive.place} overwrote an object that was to be created only where there is none. Primer and LanceDB rest on "
                "that: without it two writers destroy each other's work unseen. Use a store that heeds If-None-Match, such as Amazon S3 "
                "or Ceph; many gateways and small servers do not"
            )
        found = drive.head(key)
        keeps_deleted = drive.keeps_deleted(key)
        listed = [stored.key for stored in drive.list("probe")]
        if found is None or drive.get(key) != _FIRST or key not in listed:
            raise PrimerError(f"drive {drive.place} does not give back at once what was put there; use a store that is consistent")
    finally:
        drive.delete([key])
    if drive.head(key) is not None:
        raise SystemFault(f"drive {drive.place} still shows {key} after it was deleted; turn off what keeps deleted objects there")
    return keeps_deleted
