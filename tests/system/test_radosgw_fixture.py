"""The S3 server that other tests stand on."""

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import obstore
import psutil
import pytest
from obstore.exceptions import AlreadyExistsError

from tests import radosgw as module
from tests.conftest import PROJECT
from tests.radosgw import BootFailed, RadosGateway
from tests.radosgw import radosgw as start_radosgw
from tests.s3_endpoint import S3Endpoint

HOLD_A_SERVER = """
import sys
from tests.radosgw import radosgw

with radosgw() as gateway:
    print(gateway.folder, *(daemon.pid for daemon in gateway.daemons.values()), flush=True)
    sys.stdin.read()
"""
CREATE = """
import sys
import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

bucket, url, key_id, secret, who = sys.argv[1:]
keys = {"access_key_id": key_id, "secret_access_key": secret}
store = S3Store(bucket, endpoint=url, region="us-east-1", client_options={"allow_http": True}, **keys)
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    try:
        obstore.put(store, f"key-{number}", who.encode(), mode="create")
        print(number)
    except AlreadyExistsError:
        pass
"""


def test_a_second_create_of_a_key_is_refused_and_changes_nothing(s3: S3Endpoint) -> None:
    bucket = s3.make_bucket()
    store = s3.store(bucket)
    obstore.put(store, "key", b"first", mode="create")
    with pytest.raises(AlreadyExistsError, match="412"):
        obstore.put(store, "key", b"second", mode="create")
    assert bytes(obstore.get(store, "key").bytes()) == b"first"
    assert list(obstore.list(s3.store(s3.make_bucket()))) == []


@pytest.mark.system
def test_of_eight_processes_that_create_the_same_keys_one_wins_each(radosgw: RadosGateway) -> None:
    s3 = radosgw.s3
    bucket = s3.make_bucket()
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", CREATE, bucket, s3.url, s3.key_id, s3.secret, str(who)],
            cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for who in range(8)
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    wins = {number: str(who) for who, racer in enumerate(racers) for number in racer.communicate(timeout=60)[0].split()}
    assert [racer.returncode for racer in racers] == [0] * 8
    assert sorted(wins, key=int) == [str(number) for number in range(20)]
    held = {number: bytes(obstore.get(s3.store(bucket), f"key-{number}").bytes()).decode() for number in wins}
    assert held == wins


@pytest.mark.system
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_daemon_outlives_the_process_that_started_it(how: signal.Signals) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD_A_SERVER], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder, holder.stdin:
        folder, *ids = holder.stdout.readline().split()
        daemons = [psutil.Process(int(number)) for number in ids]
        assert [daemon.name() for daemon in daemons] == ["ceph-mon", "ceph-osd", "radosgw"]
        holder.send_signal(how)
        assert psutil.wait_procs(daemons, timeout=30)[1] == []
    shutil.rmtree(folder)


def test_a_boot_that_meets_a_taken_port_is_tried_again_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    free = module._free_ports
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ports = iter([(free()[0], taken.getsockname()[1]), free()])
        monkeypatch.setattr(module, "_free_ports", lambda: next(ports))
        with start_radosgw() as gateway:
            assert gateway.s3.make_bucket()


def test_a_boot_that_never_succeeds_says_what_the_daemons_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(module, "_free_ports", lambda: (taken.getsockname()[1], 1))
        with pytest.raises(BootFailed, match=r"(?s)--- ceph-mon.log.*unable to bind"), start_radosgw():
            pass
    assert list(tmp_path.iterdir()) == []


def test_missing_binaries_name_the_packages_and_the_make_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"radosgw.*make test.*apt-get install -y ceph-mon"), start_radosgw():
        pass
