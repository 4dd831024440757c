"""The documents of the crash tests: their versions, what a reader may see of them when, and the verdict on what one saw.

Every version is seven or so sections, each one passage with a mark of its own. From version to version some passages stay, some change,
some go and some come back; then the document is deleted and made again. So a reader that sees two versions at once shows itself.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

COMMON_WORD = "sediment"
"""In every passage, so that one keyword query finds all that an index holds."""
WORDS = ["river", "delta", "gravel", "basin", "current", "channel", "harbour", "estuary", "lagoon", "tide"]
SENTENCES = 14
"""A section of this length is one passage: two do not fit the model's 256 tokens."""
DOCUMENTS = 6

Sections = Mapping[int, int]
"""Section number → revision."""
VERSIONS: tuple[Sections | None, ...] = (
    {0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0},
    {0: 0, 1: 0, 2: 1, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0},  # one edited, one more
    {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0},  # the edit taken back, the first one gone
    {0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 5: 0, 6: 0},  # the first one back, another edited, the last one gone
    None,  # deleted
    {0: 0, 1: 2, 2: 0, 3: 0, 4: 0, 5: 2},  # made again, with some passages of before
)
DELETED = VERSIONS.index(None)


def mark_of(document: int, section: int, revision: int) -> str:
    """The word that stands in one passage only."""
    return f"mark{document}x{section}x{revision}"


def text_of(document: int, sections: Sections) -> str:
    """A version as Markdown."""
    parts = [f"# Survey {document}\n"]
    for section, revision in sections.items():
        mark = mark_of(document, section, revision)
        middle = [
            f"The {WORDS[(section + n) % 10]} moves {WORDS[(document + 3 * n) % 10]} and {COMMON_WORD} in year {n}."
            for n in range(SENTENCES)
        ]
        parts.append(f"## Section {section}\n\nPassage {mark} tells of {COMMON_WORD}. {' '.join(middle)}\n")
    return "\n".join(parts)


@dataclass(slots=True)
class Reign:
    """A version of a document in its time, seconds since the epoch: `begins` where its file was put there, `ends` where a later version
    was known to be indexed. `chunks` is what a reader must see of it; a deleted version has none."""

    chunks: frozenset[str]
    begins: float
    ends: float | None = None


@dataclass(slots=True)
class Document:
    """One document's file and history. `chunk_ids` maps version number → the chunk ids of its passages."""

    number: int
    path: Path
    doc_id: str
    chunk_ids: Mapping[int, frozenset[str]]
    version: int = DELETED
    history: list[Reign] = field(default_factory=lambda: [Reign(frozenset(), 0.0)])

    @property
    def chunks(self) -> frozenset[str]:
        """What the newest version consists of."""
        return self.history[-1].chunks

    def step(self, now: float, moves: int = 1) -> None:
        """Write, change or delete the file, as the next version says."""
        self.version = (self.version + moves) % len(VERSIONS)
        sections = VERSIONS[self.version]
        self.history.append(Reign(self.chunk_ids.get(self.version, frozenset()), now))
        if sections is None:
            self.path.unlink(missing_ok=True)  # one that begins its round here has no file yet
            return
        beside = self.path.parent.with_name("being-written")
        beside.write_text(text_of(self.number, sections), encoding="utf-8")
        beside.replace(self.path)

    def settle(self, now: float) -> None:
        """The newest version is indexed: no reader that begins from now on may see an earlier one."""
        for reign in self.history[:-1]:
            reign.ends = reign.ends or now


@dataclass(slots=True)
class Verdict:
    """What the reads were like. `void` reads took longer than the grace, for which nothing is promised."""

    reads: int = 0
    void: int = 0
    wrong: list[str] = field(default_factory=list)
    ungated_wrong: int = 0
    """Reads that would have been wrong without the gate: proof that they fell into the middle of writes."""

    def add(self, other: "Verdict") -> None:
        """Put another reader's verdict to this one."""
        self.reads += other.reads
        self.void += other.void
        self.wrong += other.wrong
        self.ungated_wrong += other.ungated_wrong


def judge(log: Path, documents: Sequence[Document], grace: float) -> Verdict:
    """Hold every read against the histories: each document whole, in one version of the time of the read, and never back to an earlier
    one. The read and what each index gave for itself are judged alike."""
    verdict = Verdict()
    at = dict.fromkeys((document.doc_id for document in documents), 0)
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            read = json.loads(line)
            verdict.reads += 1
            if read["ended"] - read["began"] > grace:
                verdict.void += 1
                continue
            for document in documents:
                views = [Counter(view.get(document.doc_id, ())) for view in read["shown"].values()]
                place = _place(document, views, at[document.doc_id], read)
                if place is None:
                    verdict.wrong.append(_describe(document, views, at[document.doc_id], read))
                else:
                    at[document.doc_id] = place
            verdict.ungated_wrong += any(
                _place(document, [Counter(view.get(document.doc_id, ()))], 0, read) is None
                for document in documents
                for view in read["found"].values()
            )
    return verdict


def _place(document: Document, views: Iterable[Counter[str]], first: int, read: Mapping[str, Any]) -> int | None:
    """The earliest reign from `first` on that all views show whole, once each, and that falls in the time of the read."""
    for number, reign in enumerate(document.history):
        in_time = reign.begins <= read["ended"] and (reign.ends is None or reign.ends >= read["began"])
        if number >= first and in_time and all(view == Counter(reign.chunks) for view in views):
            return number
    return None


def _describe(document: Document, views: Sequence[Counter[str]], at: int, read: Mapping[str, Any]) -> str:
    """A wrong read for people: what it has too much and too little of each late reign, with the reign's times against the read's."""
    lines = [f"document {document.number}, read of {read['ended'] - read['began']:.3f} s, last seen in reign {at}:"]
    for number, reign in list(enumerate(document.history))[-8:]:
        odd = [f"{len(set(view) - reign.chunks)} too many, {len(reign.chunks - set(view))} missing" for view in views]
        ends = "" if reign.ends is None else f"{reign.ends - read['began']:.3f}"
        lines.append(f"reign {number} ({reign.begins - read['began']:.3f} … {ends}): {odd}")
    return "\n".join(lines)


def shared_passages(document: Document) -> bool:
    """Whether every two neighbouring versions keep some passages and change some: without that the tests would prove little."""
    living = [document.chunk_ids[n] for n in sorted(document.chunk_ids)]
    return all(len(a & b) >= 2 and a != b for a, b in pairwise(living))
