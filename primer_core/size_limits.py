"""Limits that grow with a document's size: a fixed limit is too short for a large sound file or far too long for a small hostile one."""

from datetime import timedelta

MEGABYTE = 2**20


def by_size(base: timedelta, per_megabyte: timedelta, longest: timedelta, size: int) -> timedelta:
    """The time that a file of `size` bytes may take: `base`, and `per_megabyte` more for each mebibyte begun, at most `longest`.

    A `longest` below `base` is no limit on small files: `base` is what every file may take.
    """
    megabytes = -(-max(size, 0) // MEGABYTE)
    # Compared before it is multiplied: a timedelta overflows at some petabytes.
    if per_megabyte and megabytes > (longest / per_megabyte):
        return max(base, longest)
    return max(base, min(longest, base + per_megabyte * megabytes))
