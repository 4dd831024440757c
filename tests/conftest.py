"""Fixtures that several packages' tests share: an empty home, databases, the corpus. What one package needs stands in its own conftest."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import PostgresServer, postgres_server

if TYPE_CHECKING:
    from tests.radosgw import RadosGateway
    from tests.s3_endpoint import S3Endpoint

PROJECT = Path(__file__).parents[1]
CORPUS = Path(os.environ.get("PRIMER_CORPUS") or PROJECT.parent / "shared" / "corpus")
"""The evaluation corpus: beside the checkout, or where PRIMER_CORPUS says."""

# A developer's own deployment must not shape a test, nor a test touch it. Set here, so that child processes inherit it.
for name in [name for name in os.environ if name == "DAGSTER_HOME" or (name.startswith("PRIMER_") and name != "PRIMER_CORPUS")]:
    del os.environ[name]
os.environ["HF_HUB_OFFLINE"] = "1"

# A shell that starts a command in the background has it ignore Ctrl-C, and every process below it. Dagster hands the same on to SIGTERM.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Deadlines measure the machine: two test processes share two cores.
settings.register_profile("primer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("primer")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of our own."""
    parser.addoption(
        "--kill-repeats", type=int, default=2, metavar="N", help="How often tests/system/test_kill_anywhere.py kills at each boundary."
    )
    parser.addoption(
        "--fuzz-inputs", type=int, default=60, metavar="N", help="How many mutated files tests/primer_resources/parser/test_fuzz.py parses."
    )
    parser.addoption(
        "--edits",
        default="handbook:1-6",
        metavar="HISTORY:FIRST-LAST",
        help="Which events of the corpus's edits tests/system/test_wiki_replay.py replays; a history's name alone means all of it.",
    )
    parser.addoption(
        "--vectors", metavar="FOLDER", help="An embedding cache that its deployments begin with: PRIMER_HOME/embeddings of another."
    )
    parser.addoption(
        "--told-together", type=int, default=3, metavar="N", help="Commits after which that test tells of half of what is untold by then."
    )
    parser.addoption("--fuzz-seed", type=int, default=1, metavar="N", help="The seed of those mutations.")


@pytest.fixture
def primer_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PRIMER_HOME of this test: a folder that does not exist yet, in the environment too."""
    home = tmp_path / "primer-home"
    monkeypatch.setenv("PRIMER_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The evaluation corpus. Skips, saying where it was looked for, when this checkout has none: it is not part of the project."""
    if not (CORPUS / "manifest.csv").is_file():
        pytest.skip(f"the evaluation corpus is not at {CORPUS}; set PRIMER_CORPUS to where it is")
    return CORPUS


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a second, very small embedding model."""
    from tests.tiny_model import make_tiny_model  # it loads torch, which only the tests that ask for it are to pay

    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny-model")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A Postgres server of this test process, started by the first test that asks. Fails, never skips, when there are no binaries."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """SQLAlchemy URL of a new empty Postgres database."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """SQLAlchemy URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'catalog.sqlite'}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """SQLAlchemy URL of a new empty database: the test runs once on SQLite and once on Postgres."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


# The S3 clients and moto take a second to import, which only the tests that ask for them are to pay.
@pytest.fixture(scope="session")
def radosgw() -> Iterator["RadosGateway"]:
    """A real S3 server of this test process, started by the first test that asks. Fails, never skips, when there are no binaries."""
    from tests.radosgw import radosgw

    with radosgw() as gateway:
        yield gateway


@pytest.fixture(scope="session")
def moto() -> Iterator["S3Endpoint"]:
    """A server of this test process that only plays S3: for what asks little of it."""
    from tests.s3_endpoint import moto_server

    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(params=["moto", "radosgw"])
def s3(request: pytest.FixtureRequest) -> "S3Endpoint":
    """An S3 server with fresh buckets: the test runs once on the played one and once on the real one."""
    if request.param == "moto":
        played: S3Endpoint = request.getfixturevalue("moto")
        return played
    real: RadosGateway = request.getfixturevalue("radosgw")
    return real.s3
