"""What the chunkers built on Docling share: heading paths, the items of HierarchicalChunker, and how passages of them are joined.

Imports docling_core: import this module only inside steps.
"""

from collections.abc import Sequence
from itertools import pairwise

from docling_core.transforms.chunker import DocChunk, DocMeta
from docling_core.types.doc import TableItem
from docling_core.types.doc.document import DocItem

from primer_core.packing import Level
from primer_core.sentences import fold_space
from primer_resources.chunker.marked import plain
from primer_resources.chunker.pieces import Count, split_prose
from primer_resources.chunker.serializer import without_placeholders

_HEADING_SHARE = 3
"""The heading path may take one part in this many of a passage; leading headings are left out beyond it."""


def plain_path(headings: Sequence[str]) -> tuple[str, ...]:
    """The words of a heading path, each heading on one line, empty ones left out."""
    path = (fold_space(plain(heading)).replace("\n", " ") for heading in headings)
    return tuple(heading for heading in path if heading)


def short_path(headings: Sequence[str], limit: int, count: Count) -> tuple[str, ...]:
    """The heading path within its share of `limit`: leading headings left out, a last one that is too long cut at a word."""
    share = limit // _HEADING_SHARE
    path = list(plain_path(headings))
    while len(path) > 1 and count("\n".join(path)) > share:
        path.pop(0)
    if path and count(path[0]) > share:
        path = [split_prose(path[0], share, count)[0].strip()]
    return tuple(path)


def items_of(found: DocChunk) -> list[DocChunk]:
    """An item of HierarchicalChunker without placeholders, or nothing where it has no words.

    The words of a heading with nothing below are a passage, under the headings above it.
    """
    text = without_placeholders(found.text)
    headings = found.meta.headings
    if not text.strip() and headings and not found.text:
        meta = DocMeta(doc_items=found.meta.doc_items[-1:], headings=headings[:-1] or None, origin=found.meta.origin)
        words = plain(headings[-1]).strip()
        return [DocChunk(text=words, meta=meta)] if words else []
    return [DocChunk(text=text, meta=found.meta)] if text.strip() else []


def holds_table(chunk: DocChunk) -> bool:
    """Whether the chunk is, or begins with, a table (its caption aside)."""
    return any(isinstance(item, TableItem) for item in chunk.meta.doc_items[:2])


def level_between(before: DocChunk, after: DocChunk) -> Level:
    """What kind of boundary stands between two neighbours; pieces of one item share its meta."""
    if before.meta is not after.meta:
        return Level.BLOCK
    words = plain(before.text)
    if words.endswith("\n"):
        return Level.LINE
    return Level.SENTENCE if words.rstrip()[-1:] in tuple(".!?…。！？\"'”’»)]") else Level.WORD


def join_run(run: Sequence[DocChunk]) -> DocChunk:
    """One chunk of a run: pieces of one item as they stood, items as paragraphs."""
    if len(run) == 1:
        return run[0]
    parts = [run[0].text]
    items: list[DocItem] = list(run[0].meta.doc_items)
    for before, after in pairwise(run):
        same = before.meta is after.meta
        parts += [after.text] if same else ["\n\n", after.text]
        items += [] if same else after.meta.doc_items
    return DocChunk(text="".join(parts), meta=DocMeta(doc_items=items, headings=run[0].meta.headings, origin=run[0].meta.origin))
