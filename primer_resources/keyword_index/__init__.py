"""The keyword index: one Tantivy shard a (index version, bucket)."""
