"""Scores of how well a document was read, against a truth: pure functions over texts and tables, each from 0 to 1 unless it says so."""
