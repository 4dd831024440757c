"""Which documents of a folder are measured, and which truth each of them has.

Truths of a document NAME, in the order in which they are looked for:
- beside it, NAME.truth.md (Markdown, tables included) or NAME.truth.txt (plain text in reading order);
- in any folder whose name ends in "groundtruth", at any depth, and in folders that the caller names: NAME.md, or STEM.md for STEM.pdf.

In a folder with `files/` and `ocr/pages/`, as the evaluation corpus has them, those two hold the documents; in any other, all of it does.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from primer_core.failures import PrimerError
from primer_core.quality.scores import Truth
from primer_core.routing import PARSED, Format
from primer_resources.parser.sniffing import sniff_file

TRUTH_FOLDER = "groundtruth"
BESIDE = {".truth.md": True, ".truth.txt": False}
"""What follows a document's name in that of its truth, and whether the truth is Markdown."""
_DOCUMENT_FOLDERS = ("files", "ocr/pages")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document to measure: its path relative to the folder, what its bytes say it is, and its truth if there is one."""

    path: Path
    name: str
    format: Format
    content_hash: str
    truth: Truth | None


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a folder is measured: `formats`, and of the documents without a truth `limit` a format (all when None)."""

    folder: Path
    truths: Sequence[Path] = ()
    formats: frozenset[Format] = PARSED
    limit: int | None = None


def formats_named(names: Iterable[str]) -> frozenset[Format]:
    """Formats by their names. Raises PrimerError for one that no parser takes."""
    known = {format_.value: format_ for format_ in PARSED}
    names = list(names)
    for name in names:
        if name not in known:
            raise PrimerError(f"{name!r} is no format that is parsed; choose from {', '.join(sorted(known))}")
    return frozenset(known[name] for name in names)


def select(selection: Selection) -> list[Candidate]:
    """The documents to measure, by format and name. Each content once, with its truth where one of its copies has one. Documents with a
    truth always; of the others the first by content hash, which is a sample that does not change from run to run.

    Raises PrimerError where the folder holds nothing to measure.
    """
    for folder in (selection.folder, *selection.truths):
        if not folder.is_dir():
            raise PrimerError(f"{folder} is no folder; name one that holds documents, or truths as NAME.md")
    truths = _truths(selection)
    contents: dict[str, Candidate] = {}
    for path in _documents(selection.folder):
        candidate = _candidate(path, selection.folder, _beside(path) or truths.get(path.name))
        known = contents.setdefault(candidate.content_hash, candidate)
        if known.truth is None and candidate.truth is not None:
            contents[candidate.content_hash] = candidate
    wanted = [candidate for candidate in contents.values() if candidate.format in selection.formats]
    chosen = [candidate for candidate in wanted if candidate.truth is not None]
    others: dict[Format, list[Candidate]] = defaultdict(list)
    for candidate in wanted:
        if candidate.truth is None:
            others[candidate.format].append(candidate)
    for found in others.values():
        chosen.extend(sorted(found, key=lambda candidate: candidate.content_hash)[: selection.limit])
    if not chosen:
        raise PrimerError(f"{selection.folder} holds no document in {', '.join(sorted(selection.formats))}; name another folder or formats")
    return sorted(chosen, key=lambda candidate: (candidate.format, candidate.name))


def _candidate(path: Path, folder: Path, truth: Truth | None) -> Candidate:
    with path.open("rb") as file:
        content_hash = hashlib.file_digest(file, "sha256").hexdigest()
    return Candidate(path, path.relative_to(folder).as_posix(), sniff_file(path, path.name).format, content_hash, truth)


def _documents(folder: Path) -> Iterator[Path]:
    """Paths in alphabetical order, without hidden files and truths."""
    roots = [folder / name for name in _DOCUMENT_FOLDERS]
    for root in roots if all(root.is_dir() for root in roots) else [folder]:
        for place, below, names in os.walk(root):
            below[:] = sorted(name for name in below if not name.startswith(".") and not name.endswith(TRUTH_FOLDER))
            for name in sorted(names):
                path = Path(place, name)
                if not name.startswith(".") and not name.endswith(tuple(BESIDE)) and path.is_file():
                    yield path


def _beside(path: Path) -> Truth | None:
    for suffix, is_markdown in BESIDE.items():
        truth = path.with_name(path.name + suffix)
        if truth.is_file():
            return Truth(truth.read_text(encoding="utf-8"), is_markdown)
    return None


def _truths(selection: Selection) -> Mapping[str, Truth]:
    """Truths by the name of their document. A name that several contents share says nothing of which one is meant, and has none."""
    found = {path.name.removesuffix(".md"): path for path in _truth_files(selection)}
    contents: dict[str, set[str]] = defaultdict(set)
    for path in _documents(selection.folder):
        name = path.name if path.name in found else path.stem if path.suffix.lower() == ".pdf" else ""
        if name in found:
            contents[path.name].add(_candidate(path, selection.folder, None).content_hash)
    texts: dict[str, Truth] = {}
    for name, hashes in contents.items():
        if len(hashes) == 1:
            file = found.get(name) or found[Path(name).stem]
            texts[name] = Truth(file.read_text(encoding="utf-8"), is_markdown=True)
    return texts


def _truth_files(selection: Selection) -> Iterator[Path]:
    for folder in (*selection.folder.rglob(f"*{TRUTH_FOLDER}"), *selection.truths):
        if folder.is_dir():
            yield from sorted(folder.rglob("*.md"))
