"""The front door: what Dagster loads, and the `primer` command."""
