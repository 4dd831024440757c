"""A catalog that the connectors' whole syncs begin with."""

from tests.primer_resources.catalog.conftest import sqlite_template

__all__ = ["sqlite_template"]
