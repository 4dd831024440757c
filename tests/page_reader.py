"""A parser that reads documents of a test's own making, page by page, as OCR does: sure of some pages, of others not.

A document is text: a line a page, `CONFIDENCE|words`. What it gives depends on the bytes and the accepted pages alone, as with the real
one; chunking, embedding and the indexes are real.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from docling_core.types.doc import BoundingBox, DoclingDocument, ProvenanceItem, Size
from docling_core.types.doc.labels import DocItemLabel

from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.failures import DocumentFault, Reason
from primer_core.lanes import SlowWork
from primer_core.recipe import ParserSpec
from primer_core.reviews import ReviewPage
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.containers.expander import Expander
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.parser.version import parser_spec
from primer_resources.toolkit import Toolkit, Tools

BAR = 0.6
PICTURE = b"\x89PNG\r\n\x1a\n a picture of page %d"


def scan(*pages: tuple[float, str]) -> str:
    """A document: (confidence, words) a page."""
    return "\n".join(f"{confidence}|{words}" for confidence, words in pages)


@dataclass
class PageReader:
    """The double. `during` is called while a parse is under way; `read` keeps the requests, newest last. In the fast lane, documents of
    more than `most_pages` are left to the slow one."""

    during: Callable[[ParseRequest], None] = lambda _request: None
    read: list[ParseRequest] = field(default_factory=list)
    most_pages: int | None = None

    @property
    def spec(self) -> ParserSpec:
        return parser_spec()

    def parse_many(self, requests: Iterable[ParseRequest]) -> Iterator[ParseOutcome]:
        for request in requests:
            self.read.append(request)
            self.during(request)
            yield self._parse(request)

    def _parse(self, request: ParseRequest) -> ParseOutcome:
        lines = [line.partition("|") for line in request.path.read_text().splitlines()]
        if self.most_pages is not None and len(lines) > self.most_pages:
            return ParseOutcome(request.key, 0.0, None, None, slow=SlowWork(f"it has {len(lines)} pages", len(lines)))
        pages = {number: (float(sure), words) for number, (sure, _, words) in enumerate(lines, start=1)}
        good = {n: words for n, (sure, words) in pages.items() if sure >= BAR or n in request.accepted_pages}
        reviews = tuple(ReviewPage(n, sure, words, PICTURE % n) for n, (sure, words) in pages.items() if n not in good)
        if not good:
            fault = DocumentFault(Reason.OCR_BELOW_BAR, f"{request.name}: no page is readable enough")
            return ParseOutcome(request.key, 0.0, None, fault, reviews)
        return ParseOutcome(request.key, 0.0, _document(good, len(pages)), None, reviews)


def _document(words: dict[int, str], pages: int) -> ParsedDocument:
    document = DoclingDocument(name="document")
    elements = []
    for number, text in words.items():
        document.add_page(page_no=number, size=Size(width=100, height=100))
        box = BoundingBox(l=0, t=0, r=9, b=9)
        document.add_text(DocItemLabel.TEXT, text, prov=ProvenanceItem(page_no=number, bbox=box, charspan=(0, len(text))))
        elements.append(Element(len(elements), ElementKind.PARAGRAPH, text, None, number))
    json = document.model_dump_json(exclude_none=True, by_alias=True).encode()
    return ParsedDocument(tuple(elements), pages, pa.Codec("zstd").compress(json, asbytes=True))


class ReadingToolkit(Toolkit):
    """The toolkit of a workspace with page readers in the place of its parsers."""

    def __init__(self, toolkit: Toolkit, fast: PageReader, slow: PageReader) -> None:
        self._toolkit = toolkit
        self._fast = fast
        self._slow = slow

    @cached_property
    def expander(self) -> Expander:
        return self._toolkit.expander

    def of(self, version: IndexVersion) -> Tools:
        return replace(self._toolkit.of(version), parser=self._fast, slow_parser=self._slow)
