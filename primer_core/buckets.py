"""Buckets: which static partition a document lives in, and how touched buckets merge into contiguous ranges."""

from collections.abc import Iterable, Sequence

MAX_BUCKETS = 256
"""Names are two hex digits."""


def bucket_names(count: int) -> tuple[str, ...]:
    """Names of `count` buckets in order: "00", "01", … Raises ValueError outside 1 … 256."""
    if not 1 <= count <= MAX_BUCKETS:
        raise ValueError(f"bucket count {count} is outside 1 … {MAX_BUCKETS}; set PRIMER_BUCKETS to 4, 8 or 64")
    return tuple(f"{n:02x}" for n in range(count))


def bucket_of(first_content_hash: str, count: int) -> str:
    """Bucket of a document, from the hash of the first content it ever had; it stays for life.

    Identical files land in the same bucket.
    """
    return f"{int(first_content_hash[:8], 16) % count:02x}"


def merge_ranges(waiting: Iterable[str], names: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Cover the `waiting` buckets by at most `most` contiguous ranges (first, last) of `names`.

    The widest gaps between waiting buckets are left out first, so few idle buckets are swept along.
    """
    wanted = set(waiting)
    places = [n for n, name in enumerate(names) if name in wanted]
    if not places:
        return []
    gaps = sorted(range(len(places) - 1), key=lambda n: (places[n] - places[n + 1], n))
    cuts = sorted(n for n in gaps[: most - 1] if places[n + 1] - places[n] > 1)
    ranges: list[tuple[str, str]] = []
    start = 0
    for cut in (*cuts, len(places) - 1):
        ranges.append((names[places[start]], names[places[cut]]))
        start = cut + 1
    return ranges
