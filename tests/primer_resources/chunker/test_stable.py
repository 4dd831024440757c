"""The stable chunker's own: what it cuts, what it puts together, and that one sentence put in changes at most three passages."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from primer_core.chunks import Chunk
from primer_core.elements import ParsedDocument
from primer_resources.chunker.stable import StableChunker
from primer_resources.tokenizer import TokenCounter
from tests.prose import MARKDOWN, prose

Packed = Callable[[Any], ParsedDocument]
Paragraphs = Callable[[Sequence[str]], Any]
Converted = Callable[[str, str], Any]
SENTENCE = "The committee of the harbour met on the second day of the month and kept a note of what was said."


@pytest.fixture(scope="module")
def stable(counter: TokenCounter) -> StableChunker:
    return StableChunker(counter, 400, 0)


def new(before: Sequence[Chunk], after: Sequence[Chunk]) -> int:
    there = {chunk.embed_text for chunk in before}
    return sum(chunk.embed_text not in there for chunk in after)


def test_small_sections_share_a_passage_under_their_common_path(stable: StableChunker, packed: Packed, converted: Converted) -> None:
    (chunk,) = stable.chunk(packed(converted("a.md", MARKDOWN)))
    assert chunk.heading_path == ("The foo command: a guide",)
    assert chunk.text == (
        "Moderators *MUST*: read (the `rules`) and **not**, ever, *skip*. See [the page](http://a.org/c_d).\n\n"
        "- **Out of Office**: set it\n- plain item\n    - sub [link](http://q.org/)\n\n"
        "Numbers\n| name | value [of](http://u.org/) |\n| - | - |\n| **one** | 1 |\n\n"
        "Code\n```\ndef f():\n    return `1`\n```\n\nNothing below"
    )
    assert chunk.embed_text == (
        "The foo command: a guide\nModerators MUST: read (the rules) and not, ever, skip. See the page.\n"
        "Out of Office: set it\nplain item\nsub link\nNumbers\n| name | value of |\n| one | 1 |\nCode\ndef f():\nreturn `1`\nNothing below"
    )


def test_a_heading_that_several_sections_share_is_said_once(stable: StableChunker, packed: Packed, converted: Converted) -> None:
    page = "# Top\n\n## Tools\n\nOpening words.\n\n### Hammer\n\nIt hits.\n\n### Saw\n\nIt cuts."
    (chunk,) = stable.chunk(packed(converted("a.md", page)))
    assert (chunk.heading_path, chunk.text) == (("Top", "Tools"), "Opening words.\n\nHammer\nIt hits.\n\nSaw\nIt cuts.")


def test_sections_that_are_large_stay_apart(stable: StableChunker, packed: Packed, paragraphs: Paragraphs) -> None:
    random = Random(1)
    chunks = stable.chunk(packed(paragraphs(["# One", prose(random, 6), "# Two", prose(random, 6)])))
    assert [chunk.heading_path for chunk in chunks] == [("One",), ("Two",)]


def test_a_long_list_is_cut_between_its_items_nested_ones_too(stable: StableChunker, packed: Packed, converted: Converted) -> None:
    random = Random(2)
    page = "".join(f"- {prose(random, 1)}\n" + "".join(f"    - {prose(random, 1)}\n" for _ in range(2)) for _ in range(14))
    chunks = stable.chunk(packed(converted("a.md", page)))
    assert len(chunks) > 3
    assert all(re.match(r"(?: {4})?- ", line) for chunk in chunks for line in chunk.text.split("\n"))
    assert [line for chunk in chunks for line in chunk.text.split("\n")] == page.strip().split("\n")


def test_a_table_stays_in_one_piece_or_each_piece_has_its_header(stable: StableChunker, packed: Packed, converted: Converted) -> None:
    def table(rows: int) -> str:
        lines = [f"| part {n} | {n * 7} crowns |" for n in range(rows)]
        return "\n".join(["# Prices", "", "Valid until May.", "", "| name | price |", "|---|---|", *lines, "", "All with tax."])

    (whole,) = stable.chunk(packed(converted("a.md", table(6))))
    assert whole.text.startswith("Valid until May.\n\n| name | price |\n| - | - |\n| part 0 | 0 crowns |")
    split = stable.chunk(packed(converted("a.md", table(90))))
    assert (split[0].text, split[-1].text) == ("Valid until May.", "All with tax.")
    assert all(chunk.text.startswith("| name | price |\n| - | - |\n") for chunk in split[1:-1])
    assert [int(n) for chunk in split for n in re.findall(r"part (\d+)", chunk.text)] == list(range(90))


def test_long_code_is_cut_between_its_lines(stable: StableChunker, packed: Packed, converted: Converted) -> None:
    lines = [f"value_{n} = compute({n}, other={n * 3})  # step number {n}" for n in range(60)]
    chunks = stable.chunk(packed(converted("a.md", "# Code\n\n```\n" + "\n".join(lines) + "\n```\n")))
    assert len(chunks) > 2
    assert [line for chunk in chunks for line in chunk.text.split("\n") if "value_" in line] == lines


def test_a_long_paragraph_is_cut_between_its_sentences(stable: StableChunker, packed: Packed, paragraphs: Paragraphs) -> None:
    text = prose(Random(4), 60)
    chunks = stable.chunk(packed(paragraphs([text])))
    assert " ".join(chunk.text for chunk in chunks) == text
    assert all(chunk.text.endswith(".") for chunk in chunks)


def test_without_a_wish_there_is_no_overlap(stable: StableChunker, packed: Packed, paragraphs: Paragraphs) -> None:
    chunks = stable.chunk(packed(paragraphs([prose(Random(5), 8) for _ in range(6)])))
    assert len(chunks) > 3
    assert not any(chunk.overlap for chunk in chunks)


@pytest.mark.parametrize("tokens", [3_000, 12_000])
def test_a_sentence_put_in_anywhere_makes_at_most_three_new_passages(
    stable: StableChunker, packed: Packed, paragraphs: Paragraphs, tokens: int
) -> None:
    random = Random(tokens)
    texts = [prose(random, random.choice([1, 1, 2, 3, 5, 9, 20])) for _ in range(tokens // 230)]
    before = stable.chunk(packed(paragraphs(texts)))
    assert tokens * 0.6 < sum(chunk.token_count for chunk in before) < tokens * 1.6
    for place in (0, len(texts) - 1, *random.sample(range(len(texts)), 10)):
        within, between = list(texts), [*texts[:place], SENTENCE, *texts[place:]]
        sentences = re.split(r"(?<=\.) ", texts[place])
        at = random.randint(0, len(sentences))
        within[place] = " ".join([*sentences[:at], SENTENCE, *sentences[at:]])
        for edited in (within, between):
            assert new(before, stable.chunk(packed(paragraphs(edited)))) <= 3


def test_so_it_is_in_pages_of_the_wiki_without_their_headings(
    corpus: Path, stable: StableChunker, packed: Packed, converted: Converted
) -> None:
    random = Random(6)
    tried = pages = 0
    for path in sorted((corpus / "files/wiki/handbook").rglob("*.md"))[::3]:
        page = re.sub(r"^#+ (.*)$", r"\n\1\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if not 12_000 < len(page) < 50_000 or "```" in page:
            continue
        lines = page.split("\n")
        places = [n for n, (line, after) in enumerate(pairwise(lines)) if re.match(r"[A-Za-z]", line) and not after]
        before = stable.chunk(packed(converted("a.md", page)))
        for place in {places[0], *random.choices(places, k=2)}:
            edited = [*lines[:place], f"{lines[place]} {SENTENCE}", *lines[place + 1 :]]
            assert new(before, stable.chunk(packed(converted("a.md", "\n".join(edited))))) <= 3, path
            tried += 1
        pages += 1
        if pages == 5:
            break
    assert tried
