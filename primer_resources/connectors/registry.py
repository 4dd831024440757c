"""Which connector a source's type stands for."""

from collections.abc import Mapping
from typing import Any

from primer_core.failures import PrimerError
from primer_resources.catalog.sources import Source
from primer_resources.connectors.base import Connector
from primer_resources.connectors.drive import DriveConnector, load_drive_settings

TYPES = ("drive",)


class Connectors:
    """Opens the connector of a source."""

    def check(self, type_: str, settings: Mapping[str, Any]) -> None:
        """Raise PrimerError where the type is unknown or its settings are not valid."""
        if type_ not in TYPES:
            raise PrimerError(f"source type {type_!r} is unknown; known types: {', '.join(TYPES)}")
        load_drive_settings(settings)

    def open(self, source: Source) -> Connector:
        """The connector of a source. Raises PrimerError where its settings are no longer valid."""
        self.check(source.type, source.settings)
        return DriveConnector(load_drive_settings(source.settings))
