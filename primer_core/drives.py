"""Drives: where a tenant's objects are kept, as it is written down, and when two drives would be in each other's way."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from primer_core.failures import PrimerError
from primer_core.stored_states import DriveKind

S3 = "s3://"
DEFAULT_REGION = "us-east-1"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True)
class DriveSpec:
    """A drive as the catalog keeps it. `url` is s3://BUCKET/PREFIX, or a folder: an absolute path, or one below PRIMER_HOME, so that a home
    can be moved. `endpoint` is the address of a store that is not Amazon's, `credentials_ref` where the keys are, never the keys; without
    it the machine's own role is asked for. Folders have none of the three."""

    url: str
    region: str = ""
    endpoint: str = ""
    credentials_ref: str | None = None

    @property
    def is_s3(self) -> bool:
        """Whether it is a prefix of a bucket."""
        return self.url.startswith(S3)

    @property
    def bucket(self) -> str:
        """The bucket's name; "" for a folder."""
        return self.url.removeprefix(S3).partition("/")[0] if self.is_s3 else ""

    @property
    def prefix(self) -> str:
        """What the keys begin with, without slashes at its ends; "" is the whole bucket."""
        return self.url.removeprefix(S3).partition("/")[2].strip("/") if self.is_s3 else ""

    @property
    def folder(self) -> PurePosixPath | None:
        """The folder; None for S3."""
        return None if self.is_s3 else PurePosixPath(self.url)

    def overlaps(self, other: "DriveSpec") -> bool:
        """Whether one lies in the other, or is the other: each would take the other's objects for its own."""
        stores = {(each.is_s3, each.endpoint.rstrip("/"), each.bucket) for each in (self, other)}
        mine, theirs = (each.folder or PurePosixPath(each.prefix) for each in (self, other))
        return len(stores) == 1 and (mine.is_relative_to(theirs) or theirs.is_relative_to(mine))

    def is_same_place(self, other: "DriveSpec") -> bool:
        """Whether both hold the same objects, whatever region and credentials say. Another endpoint may be another store."""
        mine, theirs = ((each.is_s3, each.endpoint.rstrip("/"), each.bucket, each.prefix, each.folder) for each in (self, other))
        return mine == theirs


def check_spec(spec: DriveSpec) -> DriveSpec:
    """The drive, if it can be one. Raises PrimerError that names what is wrong with it."""
    if not spec.url:
        raise PrimerError("a drive needs a place: s3://BUCKET/PREFIX, or the absolute path of a folder")
    if spec.is_s3:
        if not _BUCKET.fullmatch(spec.bucket):
            raise PrimerError(f"drive {spec.url}: {spec.bucket!r} is no name of a bucket; write s3://BUCKET/PREFIX")
        if any(part in ("", ".", "..") for part in spec.prefix.split("/")) and spec.prefix:
            raise PrimerError(f"drive {spec.url}: the prefix has an empty part, '.' or '..'; take it out")
        if spec.endpoint and not spec.endpoint.startswith(("http://", "https://")):
            raise PrimerError(f"drive {spec.url}: endpoint {spec.endpoint!r} is no address; write http://HOST:PORT or https://HOST")
        return spec
    if "://" in spec.url:
        raise PrimerError(f"drive {spec.url}: that kind of place is unknown; write s3://BUCKET/PREFIX, or the absolute path of a folder")
    if spec.region or spec.endpoint or spec.credentials_ref:
        raise PrimerError(f"drive {spec.url} is a folder, which has no region, endpoint or credentials; leave them out, or write s3://…")
    return spec


def find_overlap(wanted: Mapping[DriveKind, DriveSpec], taken: Iterable[tuple[str, DriveKind, DriveSpec]], tenant_id: str) -> str | None:
    """Why the drives that a tenant is to have cannot stand beside each other or beside those that there are; None where they can.
    `taken` are the drives that stay, as (tenant_id, kind, drive)."""
    others = [(f"{name}:{kind}", spec) for name, kind, spec in taken]
    for kind, spec in wanted.items():
        for name, other in others:
            if spec.overlaps(other):
                return f"drive {tenant_id}:{kind} at {spec.url} would share objects with drive {name} at {other.url}; choose another place"
        others.append((f"{tenant_id}:{kind}", spec))
    return None
