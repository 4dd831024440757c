"""The report of a quality bench: JSON for machines, one page of HTML that needs no other file, and the figures as a Markdown table."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from primer_core.conservation import FLAGGED_BELOW
from primer_core.quality.figures import GOOD_ORDER, MOST_ERRORS, DocumentQuality, Figures, summarise
from primer_resources.quality.pictures import Picture
from primer_resources.quality.worst import PageRead

NAME = "parse_quality"
CHARACTERS_SHOWN = 8_000
"""Of what was read on a page, and of its truth."""
LOWEST_SHOWN = 40
_STAMP = "%Y%m%dT%H%M%SZ"
_UNFIT = {code: " " for code in (*range(32), 0x7F, 0xFFFE, 0xFFFF) if chr(code) not in "\n\t"}
"""Characters that no HTML or XML may hold."""

COLUMNS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("format", lambda figures: figures.format),
    ("engine", lambda figures: figures.engine),
    ("read", lambda figures: f"{figures.read:,} of {figures.documents:,}"),
    ("pages", lambda figures: shown(figures.pages)),
    ("CPU s", lambda figures: shown(figures.cpu_seconds)),
    ("pages / CPU s", lambda figures: shown(figures.pages_per_cpu_second)),
    ("order mean", lambda figures: shown(figures.order_mean)),
    ("lowest", lambda figures: shown(figures.order_lowest)),
    (f"below {GOOD_ORDER:.2f}", lambda figures: _share(figures.order_below, figures.with_truth)),
    ("tables F1", lambda figures: shown(figures.tables_mean)),
    ("CER median", lambda figures: shown(figures.cer_median)),
    ("highest", lambda figures: shown(figures.cer_highest)),
    (f"above {MOST_ERRORS:.0%}", lambda figures: _share(figures.cer_above, figures.cer_scored)),
    ("pages in review", lambda figures: shown(figures.pages_in_review)),
    ("words kept", lambda figures: "–" if figures.kept_share is None else f"{figures.kept_share:.2%}"),
    (f"below {FLAGGED_BELOW:.0%}", lambda figures: _share(figures.flagged, figures.weighed)),
)
"""The table of figures: heading and cell."""


@dataclass(frozen=True, slots=True)
class WorstPage:
    """A page that was read badly, with its picture."""

    read: PageRead
    picture: Picture

    @property
    def text(self) -> str:
        """What was read on the page."""
        return self.read.texts.get(self.picture.page, "")

    @property
    def source(self) -> str:
        """The picture as a data URI; "" where there is none."""
        return f"data:image/jpeg;base64,{base64.b64encode(self.picture.jpeg).decode()}" if self.picture.jpeg else ""

    @property
    def is_in_review(self) -> bool:
        """Whether the page waits for a person, so that its text is in no index."""
        return self.picture.page in self.read.in_review

    def to_json(self) -> dict[str, Any]:
        """The page without its picture."""
        return {
            "path": self.read.name,
            "page": self.picture.page,
            "score": self.read.score,
            "scored_by": self.read.scored_by,
            "in_review": self.is_in_review,
            "message": self.read.message,
            "read": self.text[:CHARACTERS_SHOWN],
            "truth": self.read.truth[:CHARACTERS_SHOWN],
        }


@dataclass(frozen=True, slots=True)
class QualityReport:
    """What a bench came to. `parser_version` is what read the documents; `limit` how many without a truth of each format, all when None."""

    made_at: datetime
    folder: Path
    parser_version: str
    limit: int | None
    documents: Sequence[DocumentQuality]
    worst: Sequence[WorstPage]

    @property
    def figures(self) -> list[Figures]:
        """By format and engine."""
        return summarise(self.documents)

    def to_json(self) -> dict[str, Any]:
        """The report without pictures."""
        return {
            "made_at": self.made_at.isoformat(),
            "folder": str(self.folder),
            "parser_version": self.parser_version,
            "limit": self.limit,
            "figures": [asdict(figures) for figures in self.figures],
            "worst": [page.to_json() for page in self.worst],
            "documents": [{**asdict(row), "score": row.score} for row in self.documents],
        }

    def to_markdown(self) -> str:
        """The figures as a table."""
        lines = [[name for name, _ in COLUMNS], ["---"] * len(COLUMNS), *([cell(row) for _, cell in COLUMNS] for row in self.figures)]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def to_html(self) -> str:
        """The page."""
        scored = sorted((row for row in self.documents if row.score is not None), key=lambda row: (row.score, row.path))
        return _template().render(
            report=self,
            columns=COLUMNS,
            lowest=scored[:LOWEST_SHOWN],
            faults=[row for row in self.documents if row.reason is not None],
            characters=CHARACTERS_SHOWN,
        )

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write both files into `folder`, named by the time, each whole or not at all; returns the paths of the JSON and the HTML."""
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{NAME}-{self.made_at.strftime(_STAMP)}"
        data = json.dumps(self.to_json(), ensure_ascii=False, indent=1)
        return _put(folder / f"{stem}.json", data), _put(folder / f"{stem}.html", self.to_html())


def shown(value: Any) -> str:
    """A figure for people: "–" for what is not known, no decimals where they say nothing."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.1f}" if value >= 10 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if whole else "–"


def plain(text: str) -> str:
    """Text that HTML can hold."""
    return text.translate(_UNFIT)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("primer_resources.quality"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=shown, plain=plain)
    return environment.get_template(f"{NAME}.html.jinja")


def _put(path: Path, text: str) -> Path:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", errors="replace")
    return part.replace(path)
