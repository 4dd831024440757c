"""A deployment for the sensors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, workspace


@pytest.fixture
def docs(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with one source and eight buckets, as the definitions have."""
    with workspace(tmp_path / "home", buckets=8) as made:
        yield Deployment(made, tmp_path / "docs", "docs")
