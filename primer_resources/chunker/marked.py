"""Marked text: one string that holds both what a reader is shown and what a model reads.

Link targets, emphasis marks, code fences and list markers stand between marks, so that the reader's text (`shown`) and the
plain text (`plain`) come from one serialisation and always cut at the same word. Page notes stand in neither.
The marks are Unicode noncharacters (U+FDD0 …), which no document may hold for interchange.
"""

import re
from collections.abc import Iterable

_OPEN, _OPENED = "\ufdd0", "\ufdd1"
_CLOSE, _CLOSED = "\ufdd2", "\ufdd3"
_NOTE, _NOTED = "\ufdd4", "\ufdd5"
_TAG, _TAGGED = "\ufdd6", "\ufdd7"
_ALL_MARKS = re.compile("[\ufdd0-\ufdef]")
_NOTES = re.compile(f"{_NOTE}([0-9]*){_NOTED}")
_HIDDEN = re.compile(f"{_NOTE}[0-9]*{_NOTED}|{_TAG}[0-9]*{_TAGGED}")
_REGION = re.compile(f"{_OPEN}[^{_OPENED}]*{_OPENED}|{_CLOSE}[^{_CLOSED}]*{_CLOSED}|{_HIDDEN.pattern}")
_CLOSING_RUN = re.compile(f"(?:{_CLOSE}[^{_CLOSED}]*{_CLOSED})*")


def opening(markup: str) -> str:
    """Markup that belongs to the words after it."""
    return f"{_OPEN}{markup}{_OPENED}" if markup else ""


def closing(markup: str) -> str:
    """Markup that belongs to the words before it."""
    return f"{_CLOSE}{markup}{_CLOSED}" if markup else ""


def page_note(page: int) -> str:
    """Says that the words after it stand on `page`."""
    return f"{_NOTE}{page}{_NOTED}"


def section_tag(number: int) -> str:
    """Tells two headings of the same words apart; neither shown nor plain."""
    return f"{_TAG}{number}{_TAGGED}"


def without_marks(text: str) -> str:
    """Text from outside, cleared of the characters that are marks here."""
    return _ALL_MARKS.sub("", text)


def shown(marked: str) -> str:
    """What a reader is shown: the words with links and emphasis."""
    return _ALL_MARKS.sub("", _HIDDEN.sub("", marked))


def plain(marked: str) -> str:
    """The words alone."""
    return _ALL_MARKS.sub("", _REGION.sub("", marked))


def pages_of(marked: str) -> tuple[int, ...]:
    """The pages noted in `marked`, sorted, each once."""
    return tuple(sorted({int(page) for page in _NOTES.findall(marked) if page}))


def cut_at(marked: str, starts: Iterable[int]) -> list[str]:
    """Cut so that pieces begin at the given offsets of the plain text (ascending, none 0).

    The pieces join to `marked`, but for the note of the page that is open at a cut, which the piece after it repeats.
    """
    pieces: list[str] = []
    wanted = iter(starts)
    goal = next(wanted, None)
    begun = at = seen = 0
    page = begun_page = ""
    regions = [(match.start(), match.end()) for match in _REGION.finditer(marked)] + [(len(marked), len(marked))]
    for first, stop in regions:
        while goal is not None and goal <= seen + first - at:
            edge = at + goal - seen
            follow = _CLOSING_RUN.match(marked, edge)
            edge = follow.end() if follow else edge
            if edge < len(marked):
                pieces.append(_begin(begun_page, marked[begun:edge]))
                begun, begun_page = edge, page
            goal = next(wanted, None)
        seen += first - at
        at = stop
        if marked[first:stop].startswith(_NOTE):
            page = marked[first:stop]
    pieces.append(_begin(begun_page, marked[begun:]))
    return pieces


def _begin(page: str, piece: str) -> str:
    return piece if not page or piece.startswith(_NOTE) else page + piece
