"""One Tantivy shard: its schema, its stamp, the document of a row, and the self-test.

Imports tantivy, so it is imported inside steps only.
"""

from collections.abc import Sequence
from pathlib import Path

from tantivy import Document, Filter, Index, Query, Schema, SchemaBuilder, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from primer_core.failures import PrimerError, SystemFault
from primer_resources.index_base import IndexRow

SCHEMA_VERSION = "1"
"""Grows when `make_schema` changes, so that a shard of an older schema is refused and not half understood."""
STAMP_NAME = "primer-stamp"
STAMP_PARTIAL = "primer-stamp.partial"
SELF_TEST_HEAP = 15_000_000
"""The least heap Tantivy takes."""
TOKENIZER = "en_stem"
LONGEST_TOKEN = 40
"""Bytes; en_stem leaves out longer ones."""
MAX_GENERATION = 2**64 - 1


def make_schema() -> Schema:
    """The fields of a shard. Ids are one term each (`raw`), else a delete by id would match nothing; the text is indexed and not stored."""
    builder = SchemaBuilder()
    for name in ("row_id", "chunk_id", "doc_id"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("tenant_id", "library", "acl_ids"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("added_gen", stored=True, indexed=True, fast=True)
    builder.add_text_field("text", tokenizer_name=TOKENIZER)
    builder.add_text_field("heading", tokenizer_name=TOKENIZER)
    return builder.build()


def make_analyzer(left_out: Sequence[str] = ()) -> TextAnalyzer:
    """The same analysis as en_stem, for queries: Tantivy's Python API does not hand out an index's own. Words that are `left_out`, in lower
    case, give no term."""
    words = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(LONGEST_TOKEN)).filter(Filter.lowercase())
    return words.filter(Filter.custom_stopword(list(left_out))).filter(Filter.stemmer("english")).build()


def well_formed(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def to_document(row: IndexRow, schema: Schema) -> Document:
    """A row as a document. Raises PrimerError for a generation that the field cannot hold, which would kill the writer later."""
    if not 0 <= row.added_gen <= MAX_GENERATION:
        raise PrimerError(f"row {row.row_id} has generation {row.added_gen}; generations count from 0")
    fields = {
        "row_id": row.row_id,
        "chunk_id": row.chunk_id,
        "doc_id": row.doc_id,
        "tenant_id": row.tenant_id,
        "library": row.library,
        "acl_ids": sorted(set(row.acl_ids)),
        "added_gen": row.added_gen,
        "text": well_formed(row.text),
        "heading": well_formed(" ".join(row.heading_path)),
    }
    return Document.from_dict(fields, schema)


def self_test() -> None:
    """Prove on a throw-away index that a delete by id deletes: Tantivy says nothing when it does not. Raises SystemFault."""
    schema = make_schema()
    index = Index(schema)
    writer = index.writer(SELF_TEST_HEAP, 1)
    ids = ("0f3a-b_c:1", "0f3a-b_c:2")
    for row_id in ids:
        writer.add_document(Document.from_dict({"row_id": row_id, "added_gen": 1, "text": "self test"}, schema))
    writer.commit()
    writer.delete_documents_by_term("row_id", ids[0])
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    left = [len(searcher.search(Query.term_query(schema, "row_id", row_id), 2).hits) for row_id in ids]
    if left != [0, 1]:
        raise SystemFault(
            f"this tantivy does not delete by id (rows left: {left}, not [0, 1]); install the version that pyproject.toml pins"
        )


def exists(folder: Path) -> bool:
    """Whether a shard stands in `folder` (the first commit may still be to come)."""
    return (folder / "meta.json").exists()


def check_stamp(folder: Path, stamp: str) -> None:
    """Raise PrimerError when the shard in `folder` was made with another recipe or schema."""
    try:
        found = (folder / STAMP_NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        found = "no known recipe"
    if found != stamp:
        raise PrimerError(f"keyword shard {folder.name} was made with {found!r}, not {stamp!r}; make a new index version for a new recipe")


def open_for_writing(folder: Path, stamp: str) -> Index:
    """The shard in `folder`, made where there is none. Raises PrimerError for another recipe, SystemFault when it cannot be read."""
    folder.mkdir(parents=True, exist_ok=True)
    if not exists(folder):
        # The stamp stands before the shard does, so a crash between them leaves no shard without one.
        partial = folder / STAMP_PARTIAL
        partial.write_text(stamp, encoding="utf-8")
        partial.replace(folder / STAMP_NAME)
    check_stamp(folder, stamp)
    try:
        index = Index(make_schema(), str(folder), reuse=True)
    except ValueError as error:
        raise SystemFault(f"keyword shard {folder} could not be opened: {error}") from error
    # No watcher thread a shard: every search reloads by itself.
    index.config_reader("manual")
    return index
