"""Parsing: bytes of any supported format to the element list, in child processes that can be killed."""
