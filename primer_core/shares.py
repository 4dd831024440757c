"""What fits into one run's share of the embedding work: small documents first, so that a huge one holds up nobody. Pure."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

LEAST_PART = 4
"""The first document that does not fit still gets this fraction of the share (one part in so many), however full the run is: a steady
flow of small documents must not starve it."""


def share_out(sizes: Mapping[K, int], share: int) -> dict[K, int]:
    """How much of each document is done now, of `sizes` (strings to embed, 0 or more) and a share of so many strings.

    Whole documents from the smallest on, equal ones in the order given, until one does not fit; that one gets what is left of the
    share, or its least part. Documents that get nothing are not in the result. Raises ValueError for a share under 1.
    """
    if share < 1:
        raise ValueError(f"a share of {share}: it must be at least 1")
    parts: dict[K, int] = {}
    left = share
    for key, size in sorted(sizes.items(), key=lambda item: item[1]):
        if size > left:
            parts[key] = min(size, max(left, share // LEAST_PART, 1))
            break
        parts[key] = size
        left -= size
    return parts
