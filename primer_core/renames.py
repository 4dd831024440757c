"""Renames: which documents that vanished from a listing are the ones that appeared under a new path.

A drive shows no rename, only a path that is gone and another that is new. Equal bytes are the evidence: such a document keeps
its id, so its passages, vectors and history stay, and nothing is embedded again.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple


class Vanished(NamedTuple):
    """A document known to the catalog whose path the listing no longer shows."""

    doc_id: str
    path: str
    content_hash: str


class Appeared(NamedTuple):
    """A path that the listing shows for the first time, with the SHA-256 of the bytes under it."""

    path: str
    content_hash: str


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _anything(path: str) -> str:
    return ""


PREFERENCES: tuple[Callable[[str], str], ...] = (_name, _folder, _anything)
"""Among equal contents: moved under the same name first, then renamed within its folder, then whatever is left."""


def match_renames(vanished: Sequence[Vanished], appeared: Sequence[Appeared]) -> Mapping[str, str]:
    """Pair vanished documents with appeared paths of equal content: appeared path → doc_id.

    One-to-one: no path gets two documents and no document two paths. As many pairs as equal contents allow are made. The result
    depends on the sets given and not on their order; ties fall in the order of paths, then of ids. Plain tuples are accepted.
    """
    gone: dict[str, list[Vanished]] = defaultdict(list)
    for document in sorted((Vanished(*v) for v in vanished), key=lambda v: (v.path, v.doc_id)):
        gone[document.content_hash].append(document)
    new: dict[str, list[str]] = defaultdict(list)
    for path, content_hash in sorted(appeared):
        if content_hash in gone:
            new[content_hash].append(path)
    matches: dict[str, str] = {}
    for content_hash, paths in sorted(new.items()):
        documents: Iterable[Vanished] = gone[content_hash]
        for preference in PREFERENCES:
            waiting: dict[str, deque[Vanished]] = defaultdict(deque)
            for document in documents:
                waiting[preference(document.path)].append(document)
            for path in paths:
                queue = waiting.get(preference(path))
                if queue:
                    matches[path] = queue.popleft().doc_id
            paths = [path for path in paths if path not in matches]
            documents = sorted((d for queue in waiting.values() for d in queue), key=lambda d: (d.path, d.doc_id))
    return matches
