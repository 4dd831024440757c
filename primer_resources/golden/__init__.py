"""The golden set asked of an index version: its files, the documents that it names, the run, and the canaries."""
