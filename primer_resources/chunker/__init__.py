"""Chunking: a parsed document to passages that fit the embedding model."""
