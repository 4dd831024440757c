"""What the system tests share: the template of a deployment whose parses and vectors are there already."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def crash_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home to copy. Made once a session: parsing and embedding are not what the crash tests are about."""
    from tests.system.crash_deployment import build_template

    return build_template(tmp_path_factory.mktemp("crash"))
