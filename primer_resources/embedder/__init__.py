"""Embedding: exact strings to vectors, and the cache that never computes one twice."""
