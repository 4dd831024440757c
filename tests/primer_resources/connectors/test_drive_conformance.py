"""The drive connector against the suite that every connector passes."""

from pathlib import Path

import pytest

from primer_resources.connectors.drive import DriveConnector, DriveSettings
from tests.conformance.connector_suite import ConnectorSuite


class DriveSource:
    """A folder as a source that tests change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.connector = DriveConnector(DriveSettings(root=root, groups=("everyone",), max_file_mb=3))

    def put(self, path: str, data: bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def remove(self, path: str) -> None:
        (self.root / path).unlink()


class TestDrive(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> DriveSource:
        root = tmp_path / "the drive"
        root.mkdir()
        return DriveSource(root)
