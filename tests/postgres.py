"""A real Postgres server for a test process, from Debian's binaries, and fresh databases in it.

The server listens on a Unix socket in its own temporary folder, so there is no port to race for. It is a child of the test process: it is
stopped by its own process id, and the kernel stops it too when the test process is killed.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import monotonic

import psycopg
from psycopg import sql

Command = list[str | Path]

DEBIAN_BINARIES = Path("/usr/lib/postgresql")
MISSING = (
    "no Postgres server binaries: no /usr/lib/postgresql/*/bin/initdb and no initdb on PATH. "
    "`make test` installs them, or by hand: apt-get update && apt-get install -y postgresql"
)
START_SECONDS = 60.0
"""A start takes about a second; a machine with every core busy took several."""
STOP_SECONDS = 20.0
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "32MB",
    # A server that dies with its test process has no crash to recover from, so nothing is synced to disk.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


def find_binaries(debian: Path = DEBIAN_BINARIES) -> Path:
    """Folder of initdb and postgres, the newest version that Debian's packages laid down. Raises FileNotFoundError with what to install."""
    versions = sorted((path.parent for path in debian.glob("*/bin/initdb")), key=lambda path: int(path.parent.name), reverse=True)
    if versions:
        return versions[0]
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    raise FileNotFoundError(MISSING)


@dataclass(slots=True)
class PostgresServer:
    """A running server. `folder` holds its socket and log; `process` is the postmaster itself."""

    folder: Path
    process: subprocess.Popen[bytes]
    _numbers: Iterator[int] = field(default_factory=count)

    def url(self, database: str) -> str:
        """SQLAlchemy URL of a database of this server."""
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """A new empty database: its SQLAlchemy URL. Dropped at the end, whatever is still connected to it."""
        name = sql.Identifier(database := f"test_{next(self._numbers)}")
        with self._connect() as admin:
            admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(name))
        try:
            yield self.url(database)
        finally:
            with self._connect() as admin:
                admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(host=str(self.folder), user="postgres", dbname="postgres", autocommit=True)

    def is_ready(self) -> bool:
        """Whether it takes connections. Raises RuntimeError with the server's log when it has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"Postgres ended with code {self.process.returncode}:\n{self.log()}")
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def log(self) -> str:
        """The last lines that the server wrote."""
        return "\n".join((self.folder / "server.log").read_text(errors="replace").splitlines()[-20:])

    def stop(self) -> None:
        """Ends the server: fast shutdown first (connections are cut), immediate when that takes too long."""
        for wanted in (signal.SIGINT, signal.SIGQUIT):
            if self.process.poll() is None:
                self.process.send_signal(wanted)
                try:
                    self.process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server with an empty cluster. Raises FileNotFoundError without binaries, RuntimeError when it does not start."""
    binaries = find_binaries()
    # Not below pytest's own temporary folder: that is closed to the user `postgres`.
    folder = Path(tempfile.mkdtemp(prefix="primer-postgres-"))
    as_postgres: Command = ["setpriv"]
    if os.geteuid() == 0:
        # Postgres refuses to run as root.
        shutil.chown(folder, "postgres", "postgres")
        as_postgres += ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = folder / "data"
    initdb: Command = [
        binaries / "initdb",
        "--pgdata",
        data,
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
    ]
    serve: Command = [binaries / "postgres", "-D", data, "-k", folder, *(f"--{name}={value}" for name, value in SETTINGS.items())]
    try:
        made = subprocess.run([*as_postgres, *initdb], cwd=folder, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed with code {made.returncode}:\n{made.stderr}")
        with (folder / "server.log").open("wb") as log:
            # setpriv replaces itself with postgres, so the child's id is the postmaster's.
            process = subprocess.Popen(
                [*as_postgres, "--pdeathsig=INT", *serve], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        server = PostgresServer(folder, process)
        try:
            _wait_until_ready(server)
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _wait_until_ready(server: PostgresServer) -> None:
    deadline = monotonic() + START_SECONDS
    while not server.is_ready():
        if monotonic() > deadline:
            raise RuntimeError(f"Postgres took no connection within {START_SECONDS:.0f} s:\n{server.log()}")
        try:
            server.process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
