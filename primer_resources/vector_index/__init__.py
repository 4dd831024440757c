"""The vector index: one LanceDB table an index version."""
