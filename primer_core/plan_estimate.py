"""What a sync will cost, estimated from what it will read: tokens sent to the model, pages of OCR, core-seconds.

What this deployment has measured counts; where it has measured nothing yet, the figures below do. They come from two cores of a cloud
machine, the bundled model and mixed office documents, and are good to a factor of two.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from primer_core.sync_plan import Estimate

TOKENS_A_BYTE = 0.02
"""Of a kind of file that was never indexed here: between a PDF (0.005) and plain text (0.25), nearer to what office files have."""
TOKENS_A_BYTE_OF: Mapping[str, float] = {
    "text/plain": 0.25,
    "text/markdown": 0.25,
    "text/csv": 0.35,
    "text/html": 0.1,
    "message/rfc822": 0.1,
    "application/pdf": 0.005,
}
NEW_SHARE = 0.15
"""Of an edited document's tokens: what a real edit brings that is new."""
TOKENS_A_CORE_SECOND = 2_500
"""Embedding with the bundled model."""
OCR_CORE_SECONDS_A_PAGE = 2.5
CORE_SECONDS_A_DOCUMENT = 0.1
"""Parsing and chunking an ordinary document and writing its rows."""
CORE_SECONDS_A_MB = 1.0
"""What a large one takes beside that."""
MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Measured:
    """What the deployment has measured on `documents` documents of its last ones: MIME type → tokens a byte, and the share of an edited
    document's passages that were new (None where no document was edited)."""

    documents: int
    tokens_a_byte: Mapping[str, float]
    new_share: float | None


@dataclass(frozen=True, slots=True)
class ToIndex:
    """A content that will be indexed. `size` in bytes; `is_edit` where a document had another content before; `has_chunks` where its chunk
    set is made already, so that nothing is parsed or embedded."""

    mime: str
    size: int
    is_edit: bool
    ocr_pages: int
    has_chunks: bool


def estimate(contents: Iterable[ToIndex], measured: Measured) -> Estimate:
    """Estimate the cost of indexing contents."""
    tokens, pages, seconds = 0.0, 0, 0.0
    guessed: set[str] = set()
    share = NEW_SHARE if measured.new_share is None else measured.new_share
    for content in contents:
        seconds += CORE_SECONDS_A_DOCUMENT
        if content.has_chunks:
            continue
        rate = measured.tokens_a_byte.get(content.mime)
        if rate is None:
            guessed.add(content.mime)
            rate = TOKENS_A_BYTE_OF.get(content.mime, TOKENS_A_BYTE)
        tokens += content.size * rate * (share if content.is_edit else 1.0)
        pages += content.ocr_pages
        seconds += content.size / MB * CORE_SECONDS_A_MB
    seconds += tokens / TOKENS_A_CORE_SECOND + pages * OCR_CORE_SECONDS_A_PAGE
    basis = [
        f"tokens a byte: measured on {measured.documents} documents" + (f", defaults for {', '.join(sorted(guessed))}" if guessed else ""),
        f"share of an edited document that is new: {share:.0%}, {'default' if measured.new_share is None else 'measured'}",
        f"core-seconds: defaults, {TOKENS_A_CORE_SECOND} tokens a core-second and {OCR_CORE_SECONDS_A_PAGE} a page of OCR",
    ]
    return Estimate(round(tokens), pages, round(seconds, 1), tuple(basis))
