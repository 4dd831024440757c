"""The quality bench: reads a folder of documents with the parser, holds what came out against truths, and writes a report."""
