"""A real S3 server for a test process: Ceph's object gateway from Debian's binaries, over a cluster that lives in memory.

One monitor, one storage daemon that keeps everything in memory, and the gateway; all on the loopback, with files in a temporary folder.
They are children of the test process: each is stopped by its own process id, and the kernel stops it too when the test process is killed.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from tests.s3_endpoint import S3Endpoint

PROGRAMS = ("ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")
MISSING = (
    "no Ceph object gateway: {} not on PATH. "
    "`make test` installs them, or by hand: apt-get update && apt-get install -y ceph-mon ceph-osd radosgw ceph-common"
)
BOOTS = 3
"""A boot fails where another process takes a port between its choice and its use; the next one chooses others."""
STEP_SECONDS = 60.0
"""A whole boot takes about a second; a machine with twice as much to do as cores took twelve."""
STOP_SECONDS = 20.0
LOG_LINES = 15
SETTINGS = """\
[global]
fsid = {fsid}
keyring = {folder}/keyring
mon host = [v2:127.0.0.1:{monitor_port}/0]
public network = 127.0.0.0/8
run dir = {folder}
crash dir = {folder}
admin socket =
# A taken port is given up at once: the next boot has another.
ms bind retry count = 1
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}
rgw frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
rgw thread pool size = 64
osd objectstore = memstore
# Of one storage daemon there is one copy.
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
mon allow pool size one = true
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
# A monitor waits this long for more to decide at once, and a boot is some thirty decisions: with its usual second they take ten.
paxos propose interval = 0.02
paxos min wait = 0.01
"""


class BootFailed(RuntimeError):
    """A step of the boot failed; the message has what the programs wrote."""


def check_binaries() -> None:
    """Raises FileNotFoundError with what is missing and what to install."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise FileNotFoundError(MISSING.format(", ".join(missing)))


@dataclass(slots=True)
class RadosGateway:
    """A cluster and its gateway. `folder` holds their settings, keys and logs; `daemons` are the processes themselves, by program."""

    folder: Path
    s3: S3Endpoint
    daemons: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def run(self, program: str, *arguments: str | Path) -> None:
        """Runs a program to its end. Raises BootFailed when it fails or hangs, and once a daemon has ended, for which it would wait."""
        deadline = monotonic() + STEP_SECONDS
        process = self._spawn(self.folder / f"{program}.log", program, *arguments)
        try:
            while process.poll() is None:
                self._check_daemons()
                if monotonic() > deadline:
                    raise self._failed(f"{program} did not end within {STEP_SECONDS:.0f} s")
                _wait_a_little(process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(STOP_SECONDS)
        if process.returncode != 0:
            raise self._failed(f"{program} {arguments} failed with code {process.returncode}")

    def start(self, program: str, *arguments: str) -> None:
        """Starts a daemon, which logs to a file of its name."""
        log = self.folder / f"{program}.log"
        self.daemons[program] = self._spawn(log, program, "-f", *arguments, f"--log-file={log}")

    def _spawn(self, log: Path, program: str, *arguments: str | Path) -> "subprocess.Popen[bytes]":
        # setpriv replaces itself with the program, so the child's id is the program's.
        command = ["setpriv", "--pdeathsig=KILL", program, "-c", self.folder / "ceph.conf", *arguments]
        # Nothing of a developer's own cluster, and no Python settings: `ceph` is a script of the system's Python.
        environment = {"PATH": os.environ["PATH"]}
        with log.open("ab") as output:
            return subprocess.Popen(command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def wait_until_ready(self) -> None:
        """Until a bucket can be made and an object put. Raises BootFailed when a daemon ends or time runs out."""
        deadline = monotonic() + STEP_SECONDS
        client = self.s3.client()
        while True:
            self._check_daemons()
            try:
                client.create_bucket(Bucket="ready")
                client.put_object(Bucket="ready", Key="ready", Body=b"ready")
            except (BotoCoreError, ClientError) as error:
                if monotonic() > deadline:
                    raise self._failed(f"no object could be put within {STEP_SECONDS:.0f} s: {error}") from error
            else:
                return
            _wait_a_little(self.daemons["radosgw"])

    def _check_daemons(self) -> None:
        for program, daemon in self.daemons.items():
            if daemon.poll() is not None:
                raise self._failed(f"{program} ended with code {daemon.returncode}")

    def _failed(self, what: str) -> BootFailed:
        return BootFailed(f"{what}\n{self.logs()}")

    def logs(self) -> str:
        """The last lines that each program wrote."""
        files = sorted(self.folder.glob("*.log"))
        tails = {file.name: file.read_text(errors="replace").splitlines()[-LOG_LINES:] for file in files}
        return "\n".join(f"--- {name}\n" + "\n".join(lines) for name, lines in tails.items())

    def stop(self) -> None:
        """Kills the daemons: what they hold is in memory, and a storage daemon that is asked to end writes it all to disk first."""
        for daemon in reversed(self.daemons.values()):
            daemon.kill()
            daemon.wait(STOP_SECONDS)


def _wait_a_little(process: "subprocess.Popen[bytes]") -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.02)


@contextmanager
def radosgw() -> Iterator[RadosGateway]:
    """A gateway with no buckets but the one that showed it ready.

    Raises FileNotFoundError without binaries, BootFailed when it did not start in BOOTS attempts.
    """
    check_binaries()
    with ExitStack() as running:
        yield _boot(running)


def _boot(running: ExitStack) -> RadosGateway:
    for attempt in range(1, BOOTS + 1):
        with ExitStack() as attempted:
            folder = Path(tempfile.mkdtemp(prefix="primer-radosgw-"))
            attempted.callback(shutil.rmtree, folder)
            monitor_port, port = _free_ports()
            gateway = RadosGateway(folder, S3Endpoint(f"http://127.0.0.1:{port}", "primer", "primer-secret"))
            attempted.callback(gateway.stop)
            try:
                _make_cluster(gateway, monitor_port, port)
            except BootFailed:
                if attempt == BOOTS:
                    raise
            else:
                running.push(attempted.pop_all())
                return gateway
    raise AssertionError("the last attempt returns or raises")


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _make_cluster(gateway: RadosGateway, monitor_port: int, port: int) -> None:
    folder, fsid, osd = gateway.folder, str(uuid4()), str(uuid4())
    keyring, monmap = folder / "keyring", folder / "monmap"
    (folder / "ceph.conf").write_text(SETTINGS.format(fsid=fsid, folder=folder, monitor_port=monitor_port, port=port))
    (folder / "osd").mkdir()
    # Ceph without authentication is no way out: the gateway does not start then.
    everything = ("--cap", "mon", "allow *", "--cap", "osd", "allow *")
    gateway.run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    for name in ("client.admin", "osd.0"):
        gateway.run("ceph-authtool", keyring, "--gen-key", "-n", name, *everything)
    gateway.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{monitor_port}]", monmap)
    gateway.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", keyring)
    gateway.start("ceph-mon", "-i", "a")
    gateway.run("ceph", f"--connect-timeout={STEP_SECONDS:.0f}", "osd", "new", osd)
    gateway.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
    gateway.start("ceph-osd", "-i", "0")
    s3 = gateway.s3
    gateway.run(
        "radosgw-admin", "user", "create", "--uid=primer", "--display-name=Primer", "--max-buckets=0",
        f"--access-key={s3.key_id}", f"--secret-key={s3.secret}",
    )  # fmt: skip
    gateway.start("radosgw")
    gateway.wait_until_ready()
