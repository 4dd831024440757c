"""A drive below a prefix of an S3 bucket, on Amazon's servers or any that refuse a second create (see probe.py)."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError

from primer_core.drives import DEFAULT_REGION, DriveSpec
from primer_core.failures import SystemFault
from primer_resources.credentials import read_secret
from primer_resources.document_store.drive import Drive, ObjectGone, check_key
from primer_resources.s3 import LIST_PAGE, NO_BUCKET, RETRIES, first_line, is_refused, open_bucket, read_keys

if TYPE_CHECKING:
    from obstore.store import ObjectStore

ONE_COPY = 5 << 30
"""Largest object that S3 copies in one request; larger ones are copied in parts."""
COPY_PART = 512 << 20
CONNECT_S, ANSWER_S = 10, 300
"""How long a copy waits for a connection, and for its answer, which comes when a large object has been copied."""
_TAKEN = frozenset({"PreconditionFailed", "412"})
_MISSING = frozenset({"NoSuchKey", "404"})
EMPTY_SEGMENT = "empty path segment"
"""How obstore names a key such as a//b, which it does not read."""


class S3Drive(Drive):
    """Objects of a bucket. What is put is verified by the store against its SHA-256; a put is one request, so a body is held in memory
    while it is sent, and none is larger than 5 GiB. Keys are read anew from their reference when they are refused."""

    def __init__(self, spec: DriveSpec) -> None:
        self._spec = spec
        self._secret = read_secret(spec.credentials_ref)
        place = f"{spec.url} at {spec.endpoint}" if spec.endpoint else spec.url
        super().__init__(self._open(), place)
        self._lock = Lock()
        self._copier: Any = None

    def replace(self, key: str, body: bytes | Path) -> None:
        """Put an object over what may stand there; the store takes it only with the right checksum."""
        self._put(key, lambda store: obstore.put(store, key, body, use_multipart=False))

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, 1,000 a request; those that are missing are passed over."""
        for key in keys:
            check_key(key)
        for start in range(0, len(keys), LIST_PAGE):
            batch = list(keys[start : start + LIST_PAGE])
            shown = batch[0] if len(batch) == 1 else f"the delete of {len(batch)} objects from {batch[0]} on"
            try:
                self._run(lambda store, batch=batch: obstore.delete(store, batch))  # type: ignore[misc] # bound now
            except (BaseError, OSError) as error:
                self._check_stands(batch[0])
                raise self._fault(shown, error) from error

    def _copy_within(self, key: str, to: Drive, to_key: str) -> bool | None:
        """A copy by the store itself. The look before it is for stores that do not heed If-None-Match on copies; on those, two that copy to
        one new key at the same moment both copy, and the later one stands."""
        if not isinstance(to, S3Drive) or (self._spec.endpoint, self._secret) != (to._spec.endpoint, to._secret):
            return None
        found = self.head(key)
        if found is None:
            raise ObjectGone(key, self.place)
        if to.head(to_key) is not None:
            return False
        from boto3.s3.transfer import TransferConfig
        from botocore.exceptions import BotoCoreError, ClientError

        source = {"Bucket": self._spec.bucket, "Key": self._full(key)}
        target = {"Bucket": to._spec.bucket, "Key": to._full(to_key)}
        try:
            if found.size > ONE_COPY:
                parts = TransferConfig(multipart_threshold=ONE_COPY, multipart_chunksize=COPY_PART)
                to._client().copy(CopySource=source, **target, Config=parts)
            else:
                to._client().copy_object(CopySource=source, **target, IfNoneMatch="*")
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in _TAKEN:
                return False
            if code in _MISSING:
                raise ObjectGone(key, self.place) from error
            raise to._fault(to_key, error) from error
        except BotoCoreError as error:
            raise to._fault(to_key, error) from error
        return True

    def _full(self, key: str) -> str:
        return f"{self._spec.prefix}/{key}" if self._spec.prefix else key

    def _open(self) -> "ObjectStore":
        spec = self._spec
        keys = read_keys(self._secret, spec.url)
        return open_bucket(spec.bucket, spec.prefix, spec.region or DEFAULT_REGION, spec.endpoint, keys, sends_checksums=True)

    def _client(self) -> Any:
        """boto3, for what obstore cannot do: it copies only inside one bucket."""
        with self._lock:
            if self._copier is None:
                from boto3.session import Session
                from botocore.config import Config

                keys = read_keys(self._secret, self._spec.url)
                style = "path" if self._spec.endpoint else "auto"
                self._copier = Session(
                    aws_access_key_id=keys and keys.access_key_id,
                    aws_secret_access_key=keys and keys.secret_access_key,
                    aws_session_token=keys and keys.session_token,
                    region_name=self._spec.region or DEFAULT_REGION,
                ).client(
                    "s3",
                    endpoint_url=self._spec.endpoint or None,
                    config=Config(
                        connect_timeout=CONNECT_S,
                        read_timeout=ANSWER_S,
                        retries={"total_max_attempts": RETRIES + 1, "mode": "standard"},
                        s3={"addressing_style": style},
                    ),
                )
            return self._copier

    def _renew(self) -> bool:
        secret = read_secret(self._spec.credentials_ref)
        with self._lock:
            if secret == self._secret:
                return False
            self._secret, self._copier = secret, None
            self._store = self._open()
        return True

    def _check_stands(self, key: str) -> None:
        """A store says "not found" of an object in a bucket that is gone, too: so the bucket is asked for what lies below the key."""
        try:
            next(iter(obstore.list(self._store, prefix=key)), None)
        except (BaseError, OSError) as error:
            raise self._fault(key, error) from error

    def _fault(self, key: str, error: Exception) -> SystemFault:
        if is_refused(error):
            by = self._spec.credentials_ref or "the machine's own role"
            return SystemFault(
                f"drive {self.place} refused the credentials ({by}) at {key}; renew them, and grant s3:ListBucket, s3:GetObject, "
                "s3:PutObject and s3:DeleteObject"
            )
        if NO_BUCKET in str(error):
            return SystemFault(f"drive {self.place} failed at {key}: there is no such bucket; make it, or correct the drive's url")
        if EMPTY_SEGMENT in str(error):
            return SystemFault(
                f"drive {self.place} holds a key that cannot be read ({first_line(error)}); it is none of Primer's: rename or remove it"
            )
        return SystemFault(f"drive {self.place} failed at {key}: {first_line(error)}; see that it can be reached")
