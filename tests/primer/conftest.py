"""A home for the commands to work in."""

import shutil
from pathlib import Path

import pytest

from tests.deployment import primer


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that `primer init` made."""
    home = tmp_path_factory.mktemp("template") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRIMER_HOME", str(home))
        patch.setenv("PRIMER_BUCKETS", "2")
        assert primer("init")[0] == 0
    return home


@pytest.fixture
def home(template: Path, primer_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, of one's own: a home can be moved."""
    monkeypatch.setenv("PRIMER_BUCKETS", "2")
    shutil.copytree(template, primer_home)
    return primer_home
