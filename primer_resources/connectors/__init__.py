"""Connectors: how Primer learns what a source holds, fetches it and reads who may see it."""
