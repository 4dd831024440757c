"""What holds for every chunker: what a passage holds, how long it may be, and what an edit changes."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from primer_core.chunks import Chunk, diff_chunks
from primer_core.elements import ParsedDocument
from primer_core.failures import DocumentFault, PrimerError, Reason
from primer_core.sentences import fold_space, split_sentences
from primer_resources.chunker.docling_chunker import DoclingChunker
from primer_resources.chunker.hybrid import HybridChunker
from primer_resources.chunker.stable import StableChunker
from primer_resources.tokenizer import TokenCounter
from tests.prose import MARKDOWN, prose

Packed = Callable[[Any], ParsedDocument]
Paragraphs = Callable[[Sequence[str]], Any]
Converted = Callable[[str, str], Any]
Make = Callable[[int, int], DoclingChunker]
WORD = re.compile(r"\w+")


@pytest.fixture(scope="module", params=[HybridChunker, StableChunker], ids=lambda kind: str(kind.kind))
def make(request: pytest.FixtureRequest, counter: TokenCounter) -> Make:
    """(max_tokens, overlap_percent) → chunker."""
    kind: type[DoclingChunker] = request.param
    return lambda max_tokens, overlap_percent: kind(counter, max_tokens, overlap_percent)


@pytest.fixture(scope="module")
def chunker(make: Make) -> DoclingChunker:
    return make(400, 15)


def ids(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.id_in("d0c") for chunk in chunks]


def new_embeddings(before: Sequence[Chunk], after: Sequence[Chunk]) -> int:
    return len({chunk.embed_text for chunk in after} - {chunk.embed_text for chunk in before})


def test_changing_only_a_url_is_a_new_chunk_and_no_embedding(chunker: DoclingChunker, packed: Packed, converted: Converted) -> None:
    random = Random(3)
    body = "\n\n".join(prose(random, 6) + f" See [the page](http://a.org/{n})." for n in range(12))
    before = chunker.chunk(packed(converted("a.md", "# Top\n\n" + body)))
    after = chunker.chunk(packed(converted("a.md", "# Top\n\n" + body.replace("a.org/4", "example.com/a/much/longer/address?than=before"))))
    diff = diff_chunks(ids(after), dict.fromkeys(ids(before), 1))
    assert (len(diff.new), len(diff.gone)) == (1, 1)
    assert [chunk.embed_text for chunk in after] == [chunk.embed_text for chunk in before]


def test_changing_only_emphasis_embeds_nothing(chunker: DoclingChunker, packed: Packed, converted: Converted) -> None:
    before = chunker.chunk(packed(converted("a.md", MARKDOWN)))
    after = chunker.chunk(packed(converted("a.md", MARKDOWN.replace("*skip*", "**skip**"))))
    assert before[0].text != after[0].text
    assert new_embeddings(before, after) == 0


@pytest.mark.parametrize(("max_tokens", "overlap"), [(400, 15), (256, 15), (64, 15), (400, 0)])
def test_no_passage_is_over_the_limit_and_no_word_is_lost_or_repeated(
    make: Make, counter: TokenCounter, packed: Packed, paragraphs: Paragraphs, max_tokens: int, overlap: int
) -> None:
    random = Random(max_tokens)
    texts = [f"# Part {n}" if n % 9 == 4 else prose(random, random.randint(1, 30)) for n in range(60)]
    texts += ["漢字" * 1500, "x" * 5000, ("-".join(["a1"] * 2500)), "end"]
    chunks = make(max_tokens, overlap).chunk(packed(paragraphs(texts)))
    for chunk in chunks:
        assert chunk.token_count == counter.count(chunk.embed_text) + counter.special_tokens <= max_tokens
    lines = [line for chunk in chunks for line in chunk.text.split("\n") if not line.startswith("Part ")]
    letters = "".join("".join(line.split()) for line in lines)
    assert letters == "".join("".join(text.split()) for text in texts if not text.startswith("# "))


def test_a_heading_path_of_600_tokens_leaves_room_for_the_text(make: Make, counter: TokenCounter, packed: Packed) -> None:
    from docling_core.types.doc import DocItemLabel, DoclingDocument

    random = Random(1)
    document = DoclingDocument(name="made")
    headings = [prose(random, 6) for _ in range(3)]
    for level, heading in enumerate(headings, start=1):
        document.add_heading(heading, level=level)
    document.add_text(label=DocItemLabel.TEXT, text=prose(random, 60))
    assert counter.count("\n".join(headings)) > 600
    chunks = make(400, 15).chunk(packed(document))
    assert all(chunk.heading_path == tuple(headings) for chunk in chunks)
    assert all(chunk.token_count <= 400 for chunk in chunks)
    assert all(chunk.embed_text.startswith(headings[2][:40]) for chunk in chunks)
    assert sum(len(chunk.text.split()) for chunk in chunks) / len(chunks) > 20


def test_a_table_of_300_columns_stays_within_the_limit(chunker: DoclingChunker, packed: Packed) -> None:
    from docling_core.types.doc import DoclingDocument, TableCell, TableData

    data = TableData(num_rows=4, num_cols=300)
    for row in range(4):
        for column in range(300):
            data.table_cells.append(
                TableCell(
                    text=f"r{row}c{column}",
                    start_row_offset_idx=row,
                    end_row_offset_idx=row + 1,
                    start_col_offset_idx=column,
                    end_col_offset_idx=column + 1,
                    column_header=row == 0,
                )
            )
    document = DoclingDocument(name="wide")
    document.add_table(data=data)
    chunks = chunker.chunk(packed(document))
    assert all(chunk.token_count <= 400 for chunk in chunks)
    found = Counter(word for chunk in chunks for word in WORD.findall(chunk.text) if not word.startswith("r0"))
    assert found == Counter(f"r{row}c{column}" for row in range(1, 4) for column in range(300))


def test_the_pieces_of_a_long_table_carry_caption_and_header_and_no_overlap(
    chunker: DoclingChunker, packed: Packed, converted: Converted
) -> None:
    rows = "".join(f"<tr><td>item {n}</td><td>value {n * n}</td></tr>" for n in range(200))
    page = f"<html><body><h1>T</h1><p>Before it all.</p><table><caption>Prices</caption><tr><th>name</th><th>worth</th></tr>{rows}</table>"
    chunks = chunker.chunk(packed(converted("a.html", page + "<p>After it all.</p></body></html>")))
    tables = [chunk for chunk in chunks if "| name | worth |" in chunk.text]
    assert len(tables) > 3
    assert all(chunk.text.startswith("Prices") and "| - | - |" in chunk.text and not chunk.overlap for chunk in tables)
    found = [int(n) for chunk in tables for n in re.findall(r"item (\d+)", chunk.text)]
    assert found == list(range(200))
    after = chunks[-1]
    assert (after.text, after.overlap) == ("After it all.", "")


def test_overlap_is_whole_sentences_of_the_passage_before_and_never_quoted(
    chunker: DoclingChunker, counter: TokenCounter, packed: Packed, paragraphs: Paragraphs
) -> None:
    random = Random(8)
    chunks = chunker.chunk(packed(paragraphs(["# One", *(prose(random, 7) for _ in range(12)), "# Two", prose(random, 30)])))
    with_overlap = 0
    for before, chunk in itertools.pairwise(chunks):
        if before.heading_path != chunk.heading_path:
            assert chunk.overlap == ""
            continue
        sentences = split_sentences(fold_space(before.text))
        assert chunk.overlap == " ".join(sentences[len(sentences) - len(split_sentences(chunk.overlap)) :])
        assert 0 < counter.count(chunk.overlap) <= 60
        assert chunk.overlap not in chunk.text
        assert chunk.embed_text == "\n".join([*chunk.heading_path, chunk.overlap, fold_space(chunk.text)])
        with_overlap += 1
    assert with_overlap > 5
    assert chunks[0].overlap == ""


def test_a_paragraph_that_stands_three_times_is_three_chunks_and_two_when_one_goes(
    chunker: DoclingChunker, packed: Packed, paragraphs: Paragraphs
) -> None:
    same = prose(Random(2), 8)  # About 250 tokens: two of them do not share a passage.
    three = chunker.chunk(packed(paragraphs([same] * 3)))
    two = chunker.chunk(packed(paragraphs([same] * 2)))
    assert [chunk.text for chunk in three] == [same] * 3
    assert len(set(ids(three))) == 3
    diff = diff_chunks(ids(two), dict.fromkeys(ids(three), 1))
    assert (len(diff.new), len(diff.kept), len(diff.gone)) == (0, 2, 1)


@pytest.mark.parametrize("headings", [False, True])
def test_one_paragraph_edited_in_sixty_chunks_is_at_most_three_embeddings(
    chunker: DoclingChunker, packed: Packed, paragraphs: Paragraphs, headings: bool
) -> None:
    random = Random(11)
    texts = [prose(random, random.randint(1, 9)) for _ in range(130)]

    def chunks_of(paragraph_texts: Sequence[str]) -> tuple[Chunk, ...]:
        parts = [part for n, text in enumerate(paragraph_texts) for part in ([f"# Part {n}"] if headings and n % 2 == 0 else []) + [text]]
        return chunker.chunk(packed(paragraphs(parts)))

    before = chunks_of(texts)
    assert len(before) >= 55
    for place in (0, 1, 2, *random.sample(range(130), 12)):
        edited = list(texts)
        edited[place] = prose(random, edited[place].count(".") + random.choice([-1, 0, 1]) or 1)
        assert new_embeddings(before, chunks_of(edited)) <= 3


def test_a_paragraph_put_in_at_the_top_renames_nobody_further_down(chunker: DoclingChunker, packed: Packed, paragraphs: Paragraphs) -> None:
    random = Random(12)
    texts = [prose(random, random.randint(1, 9)) for _ in range(130)]
    before = chunker.chunk(packed(paragraphs(texts)))
    after = chunker.chunk(packed(paragraphs([prose(random, 4), *texts])))
    assert ids(after)[5:] == ids(before)[len(before) - len(after) + 5 :]


def test_pages_are_those_of_the_words_in_the_passage(chunker: DoclingChunker, packed: Packed) -> None:
    from docling_core.types.doc import BoundingBox, DocItemLabel, DoclingDocument, ProvenanceItem, Size

    random = Random(4)
    document = DoclingDocument(name="paged")
    for page in range(1, 4):
        document.add_page(page_no=page, size=Size(width=100, height=100))
        box = BoundingBox(l=0, t=0, r=10, b=10)
        for _ in range(2):
            text = f"Page{page} {prose(random, 6)}"
            document.add_text(label=DocItemLabel.TEXT, text=text, prov=ProvenanceItem(page_no=page, bbox=box, charspan=(0, len(text))))
    chunks = chunker.chunk(packed(document))
    assert {page for chunk in chunks for page in chunk.pages} == {1, 2, 3}
    for chunk in chunks:
        assert {int(page) for page in re.findall(r"Page(\d)", chunk.text)} <= set(chunk.pages)
        assert len(chunk.pages) <= 2


def test_a_caption_whose_picture_is_not_printed_is_not_lost(chunker: DoclingChunker, packed: Packed) -> None:
    from docling_core.types.doc import ContentLayer, DocItemLabel, DoclingDocument

    document = DoclingDocument(name="made")
    caption = document.add_text(label=DocItemLabel.CAPTION, text="The harbour in 1931")
    document.add_picture(caption=caption, content_layer=ContentLayer.FURNITURE)
    document.add_text(label=DocItemLabel.TEXT, text="Nothing else.")
    assert "The harbour in 1931" in "\n".join(chunk.text for chunk in chunker.chunk(packed(document)))


def test_chunking_is_a_pure_function(make: Make, chunker: DoclingChunker, packed: Packed, converted: Converted) -> None:
    parsed = packed(converted("a.md", MARKDOWN))
    assert chunker.chunk(parsed) == chunker.chunk(parsed) == make(400, 15).chunk(parsed)


@pytest.mark.parametrize("texts", [[], ["   "], ["---", "* * *"]])
def test_a_document_without_words_is_empty(chunker: DoclingChunker, packed: Packed, paragraphs: Paragraphs, texts: list[str]) -> None:
    with pytest.raises(DocumentFault) as caught:
        chunker.chunk(packed(paragraphs(texts)))
    assert caught.value.reason is Reason.EMPTY


def test_a_limit_without_room_for_text_is_refused(make: Make) -> None:
    with pytest.raises(PrimerError, match="chunk_max_tokens = 20"):
        make(20, 50)


def test_the_version_names_what_shapes_the_chunks(make: Make, chunker: DoclingChunker, counter: TokenCounter) -> None:
    version = chunker.spec.version
    assert re.search(rf"{chunker.kind};docling-core=\d+\.\d+", version)
    assert counter.identity in version
    assert make(300, 15).spec.version != version != make(400, 10).spec.version


def test_no_word_of_the_wiki_is_lost(corpus: Any, chunker: DoclingChunker, packed: Packed) -> None:
    from docling.document_converter import DocumentConverter
    from docling_core.types.doc.document import SectionHeaderItem, TitleItem

    converter = DocumentConverter()
    pages = sorted((corpus / "files/wiki").rglob("*.md"))[::40] + sorted((corpus / "files/wiki/httpd").rglob("*.html"))[::40]
    assert pages
    for path in pages:
        document = converter.convert(path).document
        chunks = chunker.chunk(packed(document))
        assert max(chunk.token_count for chunk in chunks) <= chunker.spec.max_tokens
        found = Counter(word for chunk in chunks for word in WORD.findall(chunk.text))
        headings = {word for chunk in chunks for heading in chunk.heading_path for word in WORD.findall(heading)}
        wanted: Counter[str] = Counter()
        for item in document.texts:
            if item.content_layer.value == "body" and not isinstance(item, TitleItem | SectionHeaderItem):
                wanted.update(WORD.findall(item.text))
        missing = {word for word in wanted - found if word not in headings}
        assert not missing, path


def test_speaker_notes_are_words_too(chunker: DoclingChunker, packed: Packed) -> None:
    from docling_core.types.doc import ContentLayer, DocItemLabel, DoclingDocument

    document = DoclingDocument(name="slides")
    document.add_text(label=DocItemLabel.TEXT, text="On the slide.")
    document.add_text(label=DocItemLabel.TEXT, text="Said aloud.", content_layer=ContentLayer.NOTES)
    document.add_text(label=DocItemLabel.PAGE_FOOTER, text="page 7", content_layer=ContentLayer.FURNITURE)
    text = "\n".join(chunk.text for chunk in chunker.chunk(packed(document)))
    assert "Said aloud." in text
    assert "page 7" not in text
