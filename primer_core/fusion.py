"""Hybrid ranking: reciprocal rank fusion of the vector and the keyword result lists."""

from collections.abc import Sequence

RRF_K = 60
"""The constant of Cormack, Clarke and Büttcher (SIGIR 2009): damps the lead of the very first ranks."""


def reciprocal_rank_fusion(rankings: Sequence[Sequence[str]], k: int = RRF_K) -> list[tuple[str, float]]:
    """Fuse rankings of ids, best first, into one list of (id, score), best first; ties by id so that the order is stable."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1.0 / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
