"""What a document's elements are worth against its truth, and each of its pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from primer_core.elements import Element, ElementKind
from primer_core.quality.characters import character_error_rate
from primer_core.quality.order import order_score, word_recall
from primer_core.quality.pages import cut_truth
from primer_core.quality.tables import markdown_tables, tables_f1
from primer_core.quality.words import plain_text, word_list

CHARACTERS_COMPARED = 100_000
"""Longer truths have no character error rate: it takes time by the square of their length, 10 s for two texts of this one."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a document says, in reading order: Markdown, whose tables are compared too, or plain text, whose letters are."""

    text: str
    is_markdown: bool


@dataclass(frozen=True, slots=True)
class Scores:
    """`order` of words, `recall` of words wherever they stand and `tables` (F1 of cells) from 0 to 1, the best; `cer` is edits over the
    truth's length. None where the truth does not tell, or where neither side has a table."""

    order: float
    recall: float
    tables: float | None
    cer: float | None


@dataclass(frozen=True, slots=True)
class PageScore:
    """A page: how much of it is the same words in the same order (0 to 1), and the truth's words that fall on it."""

    page: int
    order: float
    truth: str


def score(elements: Sequence[Element], truth: Truth) -> Scores:
    """Score a whole document."""
    read = _comparable(elements, truth)
    wanted = plain_text(truth.text) if truth.is_markdown else truth.text
    return Scores(
        order=order_score(read, wanted),
        recall=word_recall(read, wanted),
        tables=_tables(elements, truth) if truth.is_markdown else None,
        cer=None if truth.is_markdown or len(wanted) > CHARACTERS_COMPARED else character_error_rate(read, wanted),
    )


def score_pages(pages: Mapping[int, Sequence[Element]], truth: Truth) -> list[PageScore]:
    """Score each page. Of a document with several, each is held against the part of the truth that is most like it."""
    wanted = plain_text(truth.text) if truth.is_markdown else truth.text
    texts = {page: _comparable(elements, truth) for page, elements in sorted(pages.items())}
    if len(texts) == 1:
        return [PageScore(page, order_score(text, wanted), truth.text) for page, text in texts.items()]
    pieces = cut_truth([word_list(text) for text in texts.values()], word_list(wanted))
    truths = (" ".join(piece) for piece in pieces)
    return [PageScore(page, order_score(text, part), part) for (page, text), part in zip(texts.items(), truths, strict=True)]


def read_text(elements: Iterable[Element]) -> str:
    """What was read, a paragraph an element."""
    return "\n\n".join(element.text for element in elements)


def _comparable(elements: Iterable[Element], truth: Truth) -> str:
    """What was read, as bare as the truth: without Markdown's marks, which a plain truth has for tables only when they are its own."""
    if truth.is_markdown:
        return plain_text(read_text(elements))
    return "\n".join(_cells(element.text) if element.kind is ElementKind.TABLE else element.text for element in elements)


def _cells(rows: str) -> str:
    return "\n".join(" ".join(row) for table in markdown_tables(rows) for row in table)


def _tables(elements: Iterable[Element], truth: Truth) -> float | None:
    wanted = _plain_tables(truth.text)
    read = [table for element in elements if element.kind is ElementKind.TABLE for table in _plain_tables(element.text)]
    return tables_f1(read, wanted) if wanted or read else None


def _plain_tables(markdown: str) -> list[list[list[str]]]:
    return [[[plain_text(cell) for cell in row] for row in table] for table in markdown_tables(markdown)]
