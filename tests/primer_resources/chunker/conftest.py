"""Documents made by docling_core's own API, packed as the parser packs them."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from primer_core.elements import ParsedDocument
from primer_resources.chunker.hybrid import HybridChunker
from primer_resources.embedder.model import open_counter, resolve_model
from primer_resources.settings import BUNDLED_MODEL
from primer_resources.tokenizer import TokenCounter


@pytest.fixture(scope="session")
def counter() -> TokenCounter:
    return open_counter(resolve_model(BUNDLED_MODEL))


@pytest.fixture(scope="session")
def chunker(counter: TokenCounter) -> HybridChunker:
    return HybridChunker(counter, max_tokens=400, overlap_percent=15)


@pytest.fixture(scope="session")
def packed() -> Callable[[Any], ParsedDocument]:
    """DoclingDocument → ParsedDocument."""

    def pack(document: Any) -> ParsedDocument:
        raw = document.model_dump_json().encode()
        return ParsedDocument(elements=(), pages=None, docling_json_zst=pa.compress(raw, codec="zstd", asbytes=True))

    return pack


@pytest.fixture(scope="session")
def paragraphs() -> Callable[[Sequence[str]], Any]:
    """A document of plain paragraphs; one that begins with "# " is a heading."""

    def build(texts: Sequence[str]) -> Any:
        from docling_core.types.doc import DocItemLabel, DoclingDocument

        document = DoclingDocument(name="made")
        for text in texts:
            if text.startswith("# "):
                document.add_heading(text.removeprefix("# "), level=1)
            else:
                document.add_text(label=DocItemLabel.TEXT, text=text)
        return document

    return build


@pytest.fixture(scope="session")
def converted() -> Callable[[str, str], Any]:
    """Source text → DoclingDocument, by Docling's own backend for the name's ending (md or html)."""

    def convert(name: str, source: str) -> Any:
        from io import BytesIO

        from docling.datamodel.base_models import DocumentStream
        from docling.document_converter import DocumentConverter

        return DocumentConverter().convert(DocumentStream(name=name, stream=BytesIO(source.encode()))).document

    return convert
