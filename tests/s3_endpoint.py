"""An S3 server as tests reach it, whichever it is: its address and keys, buckets, and clients that hold both."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import boto3
from botocore.config import Config
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

REGION = "us-east-1"
READ_SECONDS = 15
"""How long an answer may take; a busy machine took some."""


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """Where a server answers, and the keys of a user who may do everything there."""

    url: str
    key_id: str
    secret: str
    _numbers: Iterator[int] = field(default_factory=count)

    def client(self) -> Any:
        """A boto3 client: it makes buckets, and keys that obstore does not write."""
        config = Config(
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            retries={"total_max_attempts": 1},
            read_timeout=READ_SECONDS,
        )
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=self.key_id,
            aws_secret_access_key=self.secret,
            region_name=REGION,
            config=config,
        )

    def make_bucket(self) -> str:
        """The name of a new empty bucket."""
        name = f"bucket-{next(self._numbers)}"
        self.client().create_bucket(Bucket=name)
        return name

    def store(self, bucket: str) -> S3Store:
        """An obstore over a bucket."""
        return S3Store(
            bucket,
            endpoint=self.url,
            region=REGION,
            access_key_id=self.key_id,
            secret_access_key=self.secret,
            client_options={"allow_http": True},
        )

    def lance_options(self) -> dict[str, str]:
        """`storage_options` with which LanceDB opens s3:// addresses here."""
        return {
            "aws_access_key_id": self.key_id,
            "aws_secret_access_key": self.secret,
            "aws_endpoint": self.url,
            "aws_region": REGION,
            "aws_virtual_hosted_style_request": "false",
            "allow_http": "true",
        }


@contextmanager
def moto_server() -> Iterator[S3Endpoint]:
    """A server that only plays S3, in threads of this process. It takes any keys."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield S3Endpoint(f"http://{host}:{port}", "any", "thing")
    finally:
        server.stop()
