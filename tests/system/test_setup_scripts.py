"""The Makefile's helpers: they install what is missing, only that, and only once. Run against stand-ins for apt-get, sudo and pip."""

import os
import shutil
import subprocess
from importlib.metadata import metadata, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.conftest import PROJECT

SETUP = Path("deploy/setup")
TOOLS = ("bash", "cat", "dirname", "env", "flock", "grep", "mkdir", "mktemp", "rm", "sha256sum", "tail")
CEPH = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin")
DEBIANS_PYTHON = "3.11.2"
"""Of Debian 12, the system that the README names."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the helpers need of a checkout, at a path with a space in it."""
    checkout = tmp_path / "a checkout"
    shutil.copytree(PROJECT / SETUP, checkout / SETUP)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(PROJECT / name, checkout)
    return checkout


class Machine:
    """A machine of which only the programs of TOOLS and those given to `program` exist. `calls` has the programs' command lines."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "calls"
        self.log.touch()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)

    def program(self, name: str, says: str = "", logs: bool = True, folder: Path | None = None) -> None:
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        note = f'echo "{name} $*" >>"{self.log}"\n' if logs else ""
        path.write_text(f"#!/bin/bash\n{note}{says}\n")
        path.chmod(0o755)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()

    def run(self, checkout: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(self.bin), "TMPDIR": str(self.bin.parent)}
        command = [str(checkout / SETUP / script), *arguments]
        return subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_missing_system_packages_are_installed_after_one_update(checkout: Path, machine: Machine) -> None:
    machine.program("id", "echo 0", logs=False)
    machine.program("apt-get")
    result = machine.run(checkout, "system.sh", "ocr")
    assert result.returncode == 0, result.stderr
    update, install = machine.calls()
    assert update.endswith(" update")
    assert install.endswith(" install -y --no-install-recommends tesseract-ocr tesseract-ocr-eng tesseract-ocr-osd")


def test_a_missing_ocr_language_alone_is_installed(checkout: Path, machine: Machine) -> None:
    machine.program("id", "echo 0", logs=False)
    machine.program("apt-get")
    machine.program("tesseract", "echo 'List of available languages (1):'; echo eng", logs=False)
    assert machine.run(checkout, "system.sh", "ocr").returncode == 0
    assert machine.calls()[-1].endswith(" tesseract-ocr-osd")


def test_a_machine_that_has_everything_asks_apt_for_nothing(checkout: Path, machine: Machine) -> None:
    machine.program("tesseract", "echo eng; echo osd", logs=False)
    for name in ("initdb", "python3.11", *CEPH):
        machine.program(name, logs=False)
    result = machine.run(checkout, "system.sh", "python", "ocr", "postgres", "s3")
    assert (result.returncode, result.stdout, result.stderr, machine.calls()) == (0, "", "", [])


@pytest.mark.parametrize("gone", CEPH)
def test_an_s3_server_is_installed_where_a_part_of_it_is_missing(checkout: Path, machine: Machine, gone: str) -> None:
    machine.program("id", "echo 0", logs=False)
    machine.program("apt-get")
    for name in CEPH:
        if name != gone:
            machine.program(name, logs=False)
    assert machine.run(checkout, "system.sh", "s3").returncode == 0
    assert machine.calls()[-1].endswith(" ceph-mon ceph-osd radosgw ceph-common")


def test_services_that_came_with_the_packages_are_switched_off_and_those_that_were_on_stay(checkout: Path, machine: Machine) -> None:
    machine.program("id", "echo 1000", logs=False)
    machine.program("sudo", '"$@"', logs=False)
    machine.program("apt-get")
    on_before = 'if [ "$1" = is-enabled ]; then [ "$3" = smartmontools.service ]; exit; fi'
    machine.program("systemctl", f'{on_before}\necho "off ${{*:3}}" >>"{machine.log}"; exit 1', logs=False)
    result = machine.run(checkout, "system.sh", "s3")
    assert (result.returncode, result.stderr) == (0, "")
    assert machine.calls()[-1] == "off ceph-crash.service"
    assert len(machine.calls()) == 3


def test_sudo_is_used_by_somebody_who_is_not_root(checkout: Path, machine: Machine) -> None:
    machine.program("id", "echo 1000", logs=False)
    machine.program("sudo", '"$@"')
    machine.program("apt-get")
    assert machine.run(checkout, "system.sh", "ocr").returncode == 0
    assert [call.split()[0] for call in machine.calls()] == ["sudo", "apt-get", "sudo", "apt-get"]


def test_without_root_and_sudo_the_message_names_packages_and_command(checkout: Path, machine: Machine) -> None:
    machine.program("id", "echo 1000", logs=False)
    machine.program("apt-get")
    result = machine.run(checkout, "system.sh", "ocr")
    assert result.returncode == 1
    assert "apt-get update && apt-get install -y tesseract-ocr tesseract-ocr-eng tesseract-ocr-osd" in result.stderr
    assert machine.calls() == []


def test_a_failed_install_shows_what_apt_said(checkout: Path, machine: Machine) -> None:
    machine.program("id", "echo 0", logs=False)
    machine.program("apt-get", "echo 'E: Unable to locate package' >&2; exit 100")
    result = machine.run(checkout, "system.sh", "ocr")
    assert result.returncode == 1
    assert "E: Unable to locate package" in result.stderr


def environment(machine: Machine, checkout: Path, pip: str = "") -> Path:
    """A stand-in for a Python 3.11 environment whose pip is the given shell line."""
    venv = checkout / "some venv"
    reply = f'case "$*" in *"pip install"*) echo "pip $*" >>"{machine.log}"; {pip or ":"} ;; *version_info*) echo 3.11 ;; esac'
    machine.program("python", reply, logs=False, folder=venv / "bin")
    return venv


def test_pip_runs_once_until_the_pins_change(checkout: Path, machine: Machine) -> None:
    venv = environment(machine, checkout)

    def installs() -> int:
        assert machine.run(checkout, "venv.sh", str(venv)).returncode == 0
        return len(machine.calls())

    assert installs() == 1
    assert machine.calls()[0].endswith("-c constraints.txt -e .[dev]")
    assert installs() == 1
    with (checkout / "constraints.txt").open("a") as pins:
        pins.write("another==1.0\n")
    assert installs() == 2
    assert installs() == 2
    with (checkout / "pyproject.toml").open("a") as project:
        project.write("\n")
    assert installs() == 3


def test_a_failed_pip_shows_why_and_is_tried_again(checkout: Path, machine: Machine) -> None:
    venv = environment(machine, checkout, pip="echo 'The conflict is caused by: a and b' >&2; exit 1")
    for _ in range(2):
        result = machine.run(checkout, "venv.sh", str(venv))
        assert result.returncode == 1
        assert "The conflict is caused by: a and b" in result.stderr
    assert len(machine.calls()) == 2


@pytest.mark.parametrize(("lint", "tests", "expected"), [(0, 0, 0), (1, 0, 2), (0, 1, 2), (1, 1, 2)])
def test_ci_runs_lint_then_tests_and_fails_when_either_does(tmp_path: Path, lint: int, tests: int, expected: int) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(PROJECT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "Makefile").write_text(f"lint:\n\t@echo ran lint; exit {lint}\ntest:\n\t@echo ran tests; exit {tests}\n")
    env = {"PATH": os.environ["PATH"]}
    result = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == expected
    assert result.stdout.splitlines() == ["ran lint", "ran tests"]


def pins() -> dict[str, Requirement]:
    lines = [line.split("#")[0].strip() for line in (PROJECT / "constraints.txt").read_text().splitlines()]
    return {requirement.name: requirement for requirement in map(Requirement, filter(None, lines))}


def test_every_pin_is_what_is_installed_here() -> None:
    installed = {name: version(name) for name in pins()}
    assert {name: found for name, found in installed.items() if found not in pins()[name].specifier} == {}


def test_every_pinned_package_installs_on_debians_python() -> None:
    """A machine with a newer 3.11 does not notice that one of them asks for it."""
    asked = {name: metadata(name).json.get("requires_python", "") for name in pins()}
    assert {name: wanted for name, wanted in asked.items() if DEBIANS_PYTHON not in SpecifierSet(wanted)} == {}
