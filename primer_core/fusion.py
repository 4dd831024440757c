"""Hybrid ranking: one list out of the vector index's and the keyword index's, by their scores.

A convex combination of scores, as Bruch, Gai and Ingber ("An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023) found better
than fusing ranks. Ranks take the best of every list for equally good: a passage that shares one common word with the question then stands
beside the one that answers it.
"""

from collections.abc import Sequence

VECTOR_WEIGHT = 0.4
"""Share of the vector index in the fused score, the rest being the keyword index's. Keyword scores are mostly well below 1, so the lists
weigh about the same; a passage that holds all of a query's words, as one with the code that was asked for, still comes before the
nearest vector."""


def fuse_scores(
    by_vector: Sequence[tuple[str, float]], by_keyword: Sequence[tuple[str, float]], vector_weight: float = VECTOR_WEIGHT
) -> list[tuple[str, float]]:
    """Fuse two lists of (id, score), each best first, into one with scores from 0 to 1; ties by id so that the order is stable.

    Similarities are stretched from the last (0) to the first (1) of the list, since every model has a range of its own. Keyword scores are
    the share of the query's words that a passage holds and count as they are, up to 1. Who is missing in a list has 0 there.
    """
    scores: dict[str, float] = {}
    if by_vector:
        high, low = by_vector[0][1], by_vector[-1][1]
        span = high - low
        scores = {key: vector_weight * ((score - low) / span if span > 0 else 1.0) for key, score in by_vector}
    for key, share in by_keyword:
        scores[key] = scores.get(key, 0.0) + (1 - vector_weight) * min(share, 1.0)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
