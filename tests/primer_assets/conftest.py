"""The catalog's worlds, for what an asset's logic does on both databases."""

from tests.primer_resources.catalog.conftest import postgres_copy, sqlite_template, world, world_url

__all__ = ["postgres_copy", "sqlite_template", "world", "world_url"]
