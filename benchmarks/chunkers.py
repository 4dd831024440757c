"""What real edits and a sentence put in cost with each chunker: chunks and tokens to embed again, CPU seconds.

usage: chunkers.py [--histories handbook,k8s,httpd] [--edits N] [--insertions N] [--specs hybrid:400:15,stable:400:0,…] [--cache FOLDER]
A spec is KIND:MAX_TOKENS:OVERLAP_PERCENT. The histories are the evaluation corpus's, beside the project or where PRIMER_CORPUS says;
of each, N modify and rename events are taken, evenly spread (0: all). Every page version is parsed once, by Primer's parser, as it is
and with its headings turned into plain lines, and kept in the cache. A chunk is new when its embed string is not among those of the
page's version before; shares are pooled over the edits. Insertions put one sentence into pages of 3,000 to 12,000 tokens without headings.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from statistics import mean
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from primer_core.chunks import Chunk
from primer_core.elements import ParsedDocument
from primer_core.failures import DocumentFault
from primer_core.recipe import ChunkerKind
from primer_resources.chunker.base import Chunker
from primer_resources.chunker.factory import make_chunker, options_for
from primer_resources.embedder.model import open_tokenizer, resolve_model
from primer_resources.parser.base import ParseRequest
from primer_resources.parser.docling_parser import DoclingParser, open_worker_pool
from primer_resources.settings import BUNDLED_MODEL, Settings

PROJECT = Path(__file__).resolve().parents[1]
EDITS = Path(os.environ.get("PRIMER_CORPUS") or PROJECT.parent / "shared" / "corpus") / "edits"
FENCE = re.compile(r"^\s*(?:```|~~~)")
MARKDOWN_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)[\s#]*$")
HTML_HEADING = re.compile(r"<(/?)h[1-6]\b[^>]*>", re.IGNORECASE)
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
SENTENCE = "The committee of the harbour met on the second day of the month and kept a note of what was said."
LONG_PAGE = range(3_000, 12_001)


@dataclass(frozen=True)
class Page:
    """One version of a page: its name's ending and its bytes."""

    suffix: str
    data: bytes

    @cached_property
    def key(self) -> str:
        """Names the content."""
        return hashlib.sha256(self.suffix.encode() + self.data).hexdigest()[:32]

    def without_headings(self) -> "Page":
        """The same page, its headings plain lines."""
        text = self.data.decode("utf-8", "replace")
        if self.suffix != "md":
            return Page(self.suffix, HTML_HEADING.sub(r"<\1p>", text).encode())
        lines, fenced = [], False
        for line in FRONT_MATTER.sub("", text.replace("\r\n", "\n")).split("\n"):
            fenced ^= bool(FENCE.match(line))
            found = None if fenced else MARKDOWN_HEADING.match(line)
            lines += ["", found[1], ""] if found else [line]
        return Page("md", "\n".join(lines).encode())

    def places(self) -> list[int]:
        """Numbers of the lines of prose, after which a sentence can stand."""
        fenced, found = False, []
        for number, line in enumerate(self.data.decode("utf-8", "replace").split("\n")):
            fenced ^= bool(FENCE.match(line))
            if not fenced and re.search(r"[a-z]{3}", line) and not re.match(r"\s*(?:\||```|~~~|<|-{3}|={3})", line):
                found.append(number)
        return found

    def with_sentence(self, place: int) -> "Page":
        """The page with a sentence at the end of a line."""
        lines = self.data.decode("utf-8", "replace").split("\n")
        lines[place] = f"{lines[place].rstrip()} {SENTENCE}"
        return Page(self.suffix, "\n".join(lines).encode())


class History:
    """The modify and rename events of one edit history."""

    def __init__(self, name: str, wanted: int) -> None:
        self.name = name
        self._blobs = ZipFile(EDITS / name / "blobs.zip")
        rows = [json.loads(line) for line in (EDITS / name / "events.jsonl").read_text(encoding="utf-8").splitlines()]
        edits = [row for row in rows if row["op"] in ("modify", "rename")]
        step = max(len(edits) / wanted, 1) if wanted else 1
        self.events = [edits[int(n * step)] for n in range(int(len(edits) / step))]

    def page(self, event: dict[str, str], side: str) -> Page:
        """The page before or after an event."""
        return Page("html" if ".html" in event["path"] else "md", self._blobs.read(event[side]))


class Parses:
    """Parsed pages, kept in a folder: none is parsed twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        settings = Settings(parse_workers=1)
        self._pool = open_worker_pool(settings)
        self._parser = DoclingParser(self._pool, settings.max_file_mb)
        self._prefix = hashlib.sha256(self._parser.spec.version.encode()).hexdigest()[:8]

    def _file(self, page: Page) -> Path:
        return self._folder / f"{self._prefix}-{page.key}.zst"

    def fill(self, pages: Iterable[Page]) -> None:
        """Parse what is missing; a page without words is kept as an empty file."""
        missing = {page.key: page for page in pages if not self._file(page).exists()}
        with TemporaryDirectory() as folder:
            requests = []
            for page in missing.values():
                path = Path(folder) / f"{page.key}.{page.suffix}"
                path.write_bytes(page.data)
                requests.append(ParseRequest(page.key, path, path.name))
            for outcome in self._parser.parse_many(requests):
                self._file(missing[outcome.key]).write_bytes(outcome.parsed.docling_json_zst if outcome.parsed else b"")

    def get(self, page: Page) -> ParsedDocument:
        """A page that was filled in."""
        return ParsedDocument((), None, self._file(page).read_bytes())

    def close(self) -> None:
        """End the worker."""
        self._pool.close()


class Measured:
    """One chunker and what it made of the pages, with the CPU time that it took."""

    def __init__(self, spec: str, parses: Parses) -> None:
        kind, max_tokens, overlap = spec.split(":")
        self.name = spec
        open_tokenizer.cache_clear()  # counts that another chunker asked for would make this one look quicker
        self._chunker: Chunker = make_chunker(
            options_for(ChunkerKind(kind), resolve_model(BUNDLED_MODEL), max_tokens=int(max_tokens), overlap_percent=int(overlap))
        )
        self._parses = parses
        self._made: dict[str, tuple[Chunk, ...]] = {}
        self.seconds: list[float] = []

    def chunks(self, page: Page) -> tuple[Chunk, ...]:
        """A page's chunks."""
        if page.key not in self._made:
            parsed = self._parses.get(page)
            started = time.process_time()
            try:
                self._made[page.key] = self._chunker.chunk(parsed) if parsed.docling_json_zst else ()
            except DocumentFault:  # no words
                self._made[page.key] = ()
            self.seconds.append(time.process_time() - started)
        return self._made[page.key]

    def new(self, before: Page, after: Page) -> list[Chunk]:
        """The chunks of `after` whose strings are not among those of `before`."""
        there = {chunk.embed_text for chunk in self.chunks(before)}
        return [chunk for chunk in self.chunks(after) if chunk.embed_text not in there]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values are not over."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else 0.0


def row_of(measured: Measured, pairs: Sequence[tuple[Page, Page]]) -> str:
    """A line of the table over the edits of a history."""
    measured.seconds = []
    shares, tokens, chunks, news = [], [], 0, 0
    all_tokens = zero = 0
    for before, after in pairs:
        made, new = measured.chunks(after), measured.new(before, after)
        whole, again = sum(chunk.token_count for chunk in made), sum(chunk.token_count for chunk in new)
        shares.append(again / whole if whole else 0.0)
        tokens.append(float(again))
        chunks, news, all_tokens, zero = chunks + len(made), news + len(new), all_tokens + whole, zero + (not new)
    pages = len(pairs) or 1
    return (
        f"| {measured.name} | {sum(tokens) / max(all_tokens, 1):.3f} | {news / max(chunks, 1):.3f} "
        f"| {percentile(shares, 0.5):.3f} / {percentile(shares, 0.9):.3f} "
        f"| {mean(tokens):.0f}, {percentile(tokens, 0.5):.0f}, {percentile(tokens, 0.9):.0f} | {zero / pages:.3f} "
        f"| {all_tokens / max(chunks, 1):.0f} | {chunks / pages:.1f} | {mean(measured.seconds):.3f} |\n"
    )


HEAD = (
    "| chunker | new tokens, share | new chunks, share | p50 / p90 share | tokens an edit: mean, p50, p90 | no new chunk | mean chunk "
    "| chunks a page | CPU s a page |\n|---|---|---|---|---|---|---|---|---|\n"
)


def compare_edits(name: str, pairs: Sequence[tuple[Page, Page]], parses: Parses, specs: Sequence[str]) -> None:
    """Print the table of one history."""
    parses.fill(page for pair in pairs for page in pair)
    sys.stdout.write(f"\n{name}, {len(pairs)} edits\n\n{HEAD}")
    for spec in specs:
        sys.stdout.write(row_of(Measured(spec, parses), pairs))
        sys.stdout.flush()


def compare_insertions(pages: Sequence[Page], tries: int, parses: Parses, specs: Sequence[str]) -> None:
    """Print what one sentence costs that is put in at the top and at random places of long pages without headings."""
    random = Random(1)
    found = {page.key: page for page in pages if page.suffix == "md"}
    parses.fill(found.values())
    sizes = Measured(specs[0], parses)
    long = [page for page in found.values() if sum(chunk.token_count for chunk in sizes.chunks(page)) in LONG_PAGE and page.places()]
    random.shuffle(long)
    pairs = []
    for n in range(tries if long else 0):
        page, places = long[n % len(long)], long[n % len(long)].places()
        pairs.append((page, page.with_sentence(places[0] if n < len(long) else random.choice(places))))
    parses.fill(after for _, after in pairs)
    sys.stdout.write(
        f"\none sentence put in, {len(pairs)} tries in {len(long)} pages\n\n| chunker | new chunks: mean, p90, most |\n|---|---|\n"
    )
    for spec in specs:
        measured = Measured(spec, parses)
        news = [float(len(measured.new(before, after))) for before, after in pairs]
        if news:
            sys.stdout.write(f"| {spec} | {mean(news):.1f}, {percentile(news, 0.9):.0f}, {max(news):.0f} |\n")


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", default="handbook,k8s,httpd")
    parser.add_argument("--edits", type=int, default=150)
    parser.add_argument("--insertions", type=int, default=60)
    parser.add_argument("--specs", default="hybrid:400:15,hybrid:400:0,stable:400:0")
    parser.add_argument("--cache", type=Path, default=Path(".benchmarks") / "parses")
    options = parser.parse_args()
    if not EDITS.is_dir():
        sys.stderr.write(f"the edit histories are not at {EDITS}; set PRIMER_CORPUS to where the evaluation corpus is\n")
        return 2
    specs, parses, bare_pages = options.specs.split(","), Parses(options.cache), []
    try:
        for name in options.histories.split(","):
            history = History(name, options.edits)
            pairs = [(history.page(event, "before"), history.page(event, "after")) for event in history.events]
            compare_edits(name, pairs, parses, specs)
            bare = [(before.without_headings(), after.without_headings()) for before, after in pairs]
            compare_edits(f"{name} without headings", bare, parses, specs)
            bare_pages += [after for _, after in bare]
        compare_insertions(bare_pages, options.insertions, parses, specs)
    finally:
        parses.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
