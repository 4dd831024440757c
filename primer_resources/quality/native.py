"""Docling's own order of a PDF's text, line by line as the file has it: what layout engines are to be better than."""

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from primer_core.elements import Element, ElementKind
from primer_core.failures import Reason
from primer_core.recipe import ParserSpec
from primer_resources.parser.answer import Answer, read_result, write_result
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.parser.docling_parser import judge
from primer_resources.workers import Call, WorkerPool


class NativePdfParser:
    """A parser of PDF only: Docling's NativePdfPipeline, one paragraph a line."""

    def __init__(self, pool: WorkerPool[Any]) -> None:
        self._pool = pool

    @property
    def spec(self) -> ParserSpec:
        """What shapes the output."""
        libraries = (f"{name}={version(name)}" for name in ("docling-slim", "docling-parse"))
        return ParserSpec("docling", ";".join((*libraries, "pdf=native")))

    def parse_many(self, requests: Iterable[ParseRequest]) -> Iterator[ParseOutcome]:
        """As the port says."""
        calls = (Call(request, read_native, (request.path.absolute(),), request.path.stat().st_size) for request in requests)
        for finished in self._pool.run(calls):
            fault = judge(finished, self._pool.limits)
            answer = cast(Answer, finished.value)
            parsed = read_result(finished.directory, answer.pages) if fault is None else None
            yield ParseOutcome(finished.key.key, finished.seconds, parsed, fault)


def read_native(directory: Path, path: Path) -> Answer:
    """The task, in the worker. The imports are here so that the parent never imports Docling."""
    from docling.backend.docling_parse_backend import ThreadedDoclingParseDocumentBackend
    from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions
    from docling.datamodel.base_models import ConversionStatus, InputFormat
    from docling.datamodel.document import InputDocument
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

    backend = ThreadedDoclingParseBackendOptions.model_validate(
        {"parser_threads": 1, "render_pages": False, "include_bitmap_images": False}
    )
    options = NativePdfPipelineOptions.model_validate(
        {"parser_threads": 1, "generate_picture_images": False, "generate_page_images": False}
    )
    given = InputDocument(path, InputFormat.PDF, ThreadedDoclingParseDocumentBackend, backend_options=backend, filename="document.pdf")
    if not given.valid:
        return Answer(reason=Reason.CORRUPT, message="it cannot be opened as pdf")
    result = NativePdfPipeline(options).execute(given, raises_on_error=False)
    if result.status is not ConversionStatus.SUCCESS:
        return Answer(reason=Reason.INCOMPLETE, message="; ".join(error.error_message for error in result.errors))
    elements = tuple(
        Element(order, ElementKind.PARAGRAPH, item.text, None, item.prov[0].page_no if item.prov else None)
        for order, item in enumerate(result.document.texts)
    )
    write_result(directory, elements, b"", {})
    return Answer(pages=len(result.document.pages))
