"""Rules without I/O: identity, elements, diffs, retry policy, visibility. Nothing here reads a clock, a file or a database."""
