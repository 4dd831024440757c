"""When a passage answers a question: it holds the answer's words.

Both are compared after Unicode NFKC, without Markdown's link targets and the marks * _ and back-tick, with white space folded. A scan may
differ in one letter of ten.
"""

import re
import unicodedata
from collections.abc import Sequence

from primer_core.golden.questions import SCAN, Question
from primer_core.quality.characters import nearest_distance
from primer_core.quality.words import LINK

SCAN_ERRORS = 0.10
"""Share of an answer's letters that OCR may have read wrongly."""

_MARK = re.compile(r"\\?[*_`]")


def comparable(text: str) -> str:
    """A text as it is compared. Passages are Markdown whatever their document was, so marks are dropped from all."""
    return " ".join(_MARK.sub("", LINK.sub(r"\1", unicodedata.normalize("NFKC", text))).split())


def holds(passage: str, wanted: str, format_: str) -> bool:
    """Whether a passage holds the wanted words, both being comparable; `format_` is the question's."""
    if wanted in passage:
        return True
    return format_ == SCAN and nearest_distance(wanted, passage) <= SCAN_ERRORS * len(wanted)


def passage_words(heading_path: Sequence[str], text: str) -> str:
    """A passage as it is returned: the headings that it stands under, and its text. A title is in no text, and whoever gets a passage
    reads it above."""
    return "\n".join((*heading_path, text))


def answers(question: Question, passage: str) -> bool:
    """Whether a passage as it stands holds the question's answer."""
    return holds(comparable(passage), comparable(question.answer), question.format)


def gives_value(question: Question, passage: str) -> bool:
    """Whether the cell that the answer is the label of is there as well; true where the question names none."""
    return question.answer_value is None or holds(comparable(passage), comparable(question.answer_value), question.format)
