"""The hybrid chunker's own: passages never cross a heading."""

from collections.abc import Callable, Sequence
from typing import Any

from primer_core.elements import ParsedDocument
from primer_resources.chunker.hybrid import HybridChunker
from tests.prose import MARKDOWN

Packed = Callable[[Any], ParsedDocument]
Paragraphs = Callable[[Sequence[str]], Any]
Converted = Callable[[str, str], Any]


def test_text_reads_as_the_page_and_embed_text_is_plain(chunker: HybridChunker, packed: Packed, converted: Converted) -> None:
    chunks = chunker.chunk(packed(converted("a.md", MARKDOWN)))
    assert chunks[0].heading_path == ("The foo command: a guide",)
    assert chunks[0].text == (
        "Moderators *MUST*: read (the `rules`) and **not**, ever, *skip*. See [the page](http://a.org/c_d).\n\n"
        "- **Out of Office**: set it\n- plain item\n    - sub [link](http://q.org/)"
    )
    assert chunks[0].embed_text == (
        "The foo command: a guide\nModerators MUST: read (the rules) and not, ever, skip. See the page.\n"
        "Out of Office: set it\nplain item\nsub link"
    )
    numbers = next(chunk for chunk in chunks if chunk.heading_path[-1] == "Numbers")
    assert numbers.text == "| name | value [of](http://u.org/) |\n| - | - |\n| **one** | 1 |"
    assert numbers.embed_text.endswith("| name | value of |\n| one | 1 |")
    code = next(chunk for chunk in chunks if chunk.heading_path[-1] == "Code")
    assert code.text == "```\ndef f():\n    return `1`\n```"


def test_a_heading_with_nothing_below_is_not_lost(chunker: HybridChunker, packed: Packed, converted: Converted) -> None:
    last = chunker.chunk(packed(converted("a.md", MARKDOWN)))[-1]
    assert (last.heading_path, last.text) == (("The foo command: a guide",), "Nothing below")


def test_the_same_section_three_times_is_three_chunks(chunker: HybridChunker, packed: Packed, paragraphs: Paragraphs) -> None:
    section = ["# Notice", "The same few words."]
    assert len({chunk.id_in("d0c") for chunk in chunker.chunk(packed(paragraphs(section * 3)))}) == 3
