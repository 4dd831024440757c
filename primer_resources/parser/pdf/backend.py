"""The PDF reader: docling-parse by way of Docling's own backend, with the lines that are drawn on a page but without a picture of it."""

import sys
from io import BytesIO
from pathlib import Path

from docling.backend.docling_parse_backend import ThreadedDoclingParseDocumentBackend
from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions
from docling.datamodel.document import InputDocument
from docling_parse.pdf_parser import (
    ContentConfig,
    ContentLevel,
    DecodeConfig,
    DoclingThreadedPdfParser,
    ThreadedPdfParserConfig,
)


class StrokesBackend(ThreadedDoclingParseDocumentBackend):
    """Docling's threaded backend. It gives drawn lines only where it renders pages too, and rendering decodes every image: some of
    those end the process. Here drawn lines are computed and nothing is rendered."""

    def __init__(self, in_doc: InputDocument, path_or_stream: BytesIO | Path, options: ThreadedDoclingParseBackendOptions) -> None:
        """Raises DocumentLoadError where the file cannot be opened."""
        super().__init__(in_doc, path_or_stream, options)
        self.parser.unload(self.doc_key)
        materialised = ContentLevel.COMPUTE_AND_MATERIALIZE
        config = ThreadedPdfParserConfig(
            loglevel="fatal",
            threads=options.parser_threads or 1,
            render_config=None,
            page_content_config=ContentConfig(
                char_cells_content_level=ContentLevel.COMPUTE,
                word_cells_content_level=materialised,
                line_cells_content_level=materialised,
                shapes_content_level=ContentLevel.COMPUTE,
                bitmaps_content_level=materialised,
                include_bitmap_bytes=False,
            ),
        )
        if options.max_concurrent_results is not None:
            config.max_concurrent_results = options.max_concurrent_results
        decode = DecodeConfig(
            enforce_same_font=options.enforce_same_font,
            release_native_memory_every_n_pages=options.release_native_memory_every_n_pages,
        )
        self.parser = DoclingThreadedPdfParser(parser_config=config, decode_config=decode)
        first, last = in_doc.limits.page_range
        self.doc_key = self.parser.load(path_or_stream, page_range=(first, min(last, sys.maxsize)))
