"""The figures of a quality report: a row a document, and what the rows of a format and an engine come to."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean, median

from primer_core.conservation import FLAGGED_BELOW
from primer_core.failures import Reason

ALL_FORMATS = "all"
"""Stands for the format in the figures of an engine that read several."""
GOOD_ORDER = 0.95
"""Least order score of a document that was read in order."""
MOST_ERRORS = 0.10
"""Highest character error rate of a page that counts as readable."""


@dataclass(frozen=True, slots=True)
class DocumentQuality:
    """One document as one engine read it. None stands for what is not known: no truth, no pages, a worker that was killed.

    `reason` and `message` say why it was not read. `seconds` is wall time, `cpu_seconds` that of the worker and what it started.
    `in_review` is how many pages wait for a person. `order`, `recall`, `tables` and `kept` (the share of the source's `words`) go from
    0 to 1, the best; `cer` is edits over the truth's length. Of a document with nothing but pages in review, the scores are those of
    what waits there.
    """

    path: str
    format: str
    engine: str
    seconds: float
    cpu_seconds: float | None = None
    reason: Reason | None = None
    message: str = ""
    pages: int | None = None
    characters: int = 0
    in_review: int = 0
    order: float | None = None
    recall: float | None = None
    tables: float | None = None
    cer: float | None = None
    kept: float | None = None
    words: int = 0
    missing: tuple[str, ...] = ()
    losses: tuple[tuple[str, int], ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether it has text to index."""
        return self.reason is None

    @property
    def score(self) -> float | None:
        """The lowest of what is known, 0 to 1; None where nothing is."""
        right = None if self.cer is None else max(0.0, 1 - self.cer)
        known = [value for value in (self.order, self.tables, right, self.kept) if value is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the documents of one format and one engine come to; None where no document tells.

    `read` of the `documents` have text to index, `reasons` counts the others by reason. Means are over documents; `kept_share` is over
    all their words. The error rates are of documents that were read; those in review are apart in `cer_in_review` (their median).
    """

    format: str
    engine: str
    documents: int
    read: int
    reasons: dict[str, int] = field(default_factory=dict)
    pages: int = 0
    pages_in_review: int = 0
    cpu_seconds: float = 0.0
    pages_per_cpu_second: float | None = None
    with_truth: int = 0
    order_mean: float | None = None
    order_lowest: float | None = None
    order_below: int = 0
    tables_mean: float | None = None
    tables_scored: int = 0
    cer_scored: int = 0
    cer_median: float | None = None
    cer_highest: float | None = None
    cer_above: int = 0
    cer_in_review: float | None = None
    kept_share: float | None = None
    kept_words: int = 0
    weighed: int = 0
    flagged: int = 0


def summarise(rows: Iterable[DocumentQuality]) -> list[Figures]:
    """Figures by format and engine, in alphabetical order, and after them those of each engine that read several formats."""
    groups: dict[tuple[str, str], list[DocumentQuality]] = defaultdict(list)
    engines: dict[str, list[DocumentQuality]] = defaultdict(list)
    for row in rows:
        groups[row.format, row.engine].append(row)
        engines[row.engine].append(row)
    several = [engine for engine, number in sorted(Counter(engine for _, engine in groups).items()) if number > 1]
    return [
        *(_figures(format_, engine, groups[format_, engine]) for format_, engine in sorted(groups)),
        *(_figures(ALL_FORMATS, engine, engines[engine]) for engine in several),
    ]


def _figures(format_: str, engine: str, rows: list[DocumentQuality]) -> Figures:
    order = [row.order for row in rows if row.order is not None]
    tables = [row.tables for row in rows if row.tables is not None]
    cer = [row.cer for row in rows if row.cer is not None and row.is_read]
    waiting = [row.cer for row in rows if row.cer is not None and not row.is_read]
    weighed = [(row.kept, row.words) for row in rows if row.kept is not None]
    words = sum(number for _, number in weighed)
    timed = [(row.pages, row.cpu_seconds) for row in rows if row.pages and row.cpu_seconds]
    return Figures(
        format=format_,
        engine=engine,
        documents=len(rows),
        read=sum(row.is_read for row in rows),
        reasons=dict(sorted(Counter(row.reason.value for row in rows if row.reason is not None).items())),
        pages=sum(row.pages or 0 for row in rows),
        pages_in_review=sum(row.in_review for row in rows),
        cpu_seconds=sum(row.cpu_seconds or 0.0 for row in rows),
        pages_per_cpu_second=sum(pages for pages, _ in timed) / sum(cpu for _, cpu in timed) if timed else None,
        with_truth=len(order),
        order_mean=fmean(order) if order else None,
        order_lowest=min(order, default=None),
        order_below=sum(value < GOOD_ORDER for value in order),
        tables_mean=fmean(tables) if tables else None,
        tables_scored=len(tables),
        cer_scored=len(cer),
        cer_median=median(cer) if cer else None,
        cer_highest=max(cer, default=None),
        cer_above=sum(value > MOST_ERRORS for value in cer),
        cer_in_review=median(waiting) if waiting else None,
        kept_share=sum(share * number for share, number in weighed) / words if words else None,
        kept_words=words,
        weighed=len(weighed),
        flagged=sum(share < FLAGGED_BELOW for share, _ in weighed),
    )
