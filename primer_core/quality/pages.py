"""Which part of a document's truth belongs to which page, where the truth does not say."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain


def cut_truth(pages: Sequence[Sequence[str]], truth: Sequence[str]) -> list[Sequence[str]]:
    """The truth in as many pieces as there are pages, in order and with nothing left out.

    A cut is where the pages before it and those after it share most words with their side of the truth. The order of the words within
    a page does not matter, so that a page that was read crosswise is not put right at its neighbours' cost. Where words at a cut were
    read on neither side, the pieces come as near to the pages' lengths as they can; if that does not decide, the page with fewer words
    is taken to have lost them.
    """
    cuts = [0]
    for number in range(1, len(pages)):
        before, after = pages[number - 1], pages[number]
        left = _shared(chain.from_iterable(pages[:number]), truth)
        rest = list(chain.from_iterable(pages[number:]))
        right = _shared(rest, truth[::-1])[::-1]
        open_cuts = range(cuts[-1], len(truth) + 1)
        most = max(left[cut] + right[cut] for cut in open_cuts)
        best = [cut for cut in open_cuts if left[cut] + right[cut] == most]
        if len(before) < len(after):
            best.reverse()
        cuts.append(min(best, key=lambda cut: abs(cut - cuts[-1] - len(before)) + abs(len(truth) - cut - len(rest))))
    return [truth[start:end] for start, end in zip(cuts, [*cuts[1:], len(truth)], strict=True)] if pages else []


def _shared(words: Iterable[str], truth: Sequence[str]) -> list[int]:
    """How many words the first 0, 1, 2, … of the truth have in common with `words`, wherever they stand."""
    left = Counter(words)
    shared = [0]
    for word in truth:
        found = left[word] > 0
        left[word] -= found
        shared.append(shared[-1] + found)
    return shared
