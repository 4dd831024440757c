"""How much of each format's text parsing keeps, document by document, and what the check costs.

usage: text_conservation.py [--folder FOLDER] [--below 0.98] [--largest BYTES] [--formats docx,pptx,…] [--json FILE]
FOLDER defaults to the evaluation corpus beside the project. Parses in this process, one document after another, so that CPU seconds can be
told apart; files that cannot be parsed are passed over (they have a reason of their own).
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from primer_core.failures import DocumentFault
from primer_core.routing import PARSED
from primer_resources.parser import convert
from primer_resources.parser.conservation.reader import measure
from primer_resources.parser.elements import admit_furniture, list_elements, mend
from primer_resources.parser.ocr.config import OcrConfig

PROJECT = Path(__file__).resolve().parents[1]
CORPUS = Path(os.environ.get("PRIMER_CORPUS") or PROJECT.parent / "shared" / "corpus") / "files"

FAILURES = (RecursionError, MemoryError, ValueError, KeyError, AttributeError, TypeError, IndexError)
"""What readers raise on damaged files: a worker's parent judges it, and here it only means that there is nothing to weigh."""


def weigh_file(path: Path) -> dict[str, Any] | None:
    """One document's figures; None where it is not parsed."""
    try:
        source = convert._recognise(path, path.name, 2**31, frozenset(), OcrConfig())
        started = time.process_time()
        converted = convert._convert(source)
        mend(converted.document)
        elements = list_elements(converted.document)
        if not elements:
            admit_furniture(converted.document)
            elements = list_elements(converted.document)
    except (DocumentFault, *FAILURES):
        return None
    # What a worker does with the document before it answers is part of the parse.
    pa.Codec("zstd", compression_level=convert.ZSTD_LEVEL).compress(
        converted.document.model_dump_json(exclude_none=True, by_alias=True).encode(), asbytes=True
    )
    parsed = time.process_time()
    reviewed = frozenset(review.page for review in converted.reviews)
    kept = measure(path, source.format, converted.document, elements, reviewed)
    row = {"format": source.format.value, "parse_s": parsed - started, "check_s": time.process_time() - parsed}
    if kept is None:
        return {**row, "share": None, "words": 0}
    return {**row, "share": kept.share, "words": kept.words, "missing": kept.missing, "losses": dict(kept.losses)}


def main() -> None:
    """Weigh a folder and print a line a format and a line a document below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=CORPUS)
    parser.add_argument("--below", type=float, default=0.98)
    parser.add_argument("--largest", type=int, default=2_000_000)
    parser.add_argument("--formats", default=",".join(sorted(PARSED)))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    suffixes = {f".{name}" for name in options.formats.split(",")}
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(options.folder.rglob("*")):
        if path.suffix in suffixes and path.is_file() and path.stat().st_size <= options.largest and "groundtruth" not in str(path):
            row = weigh_file(path)
            if row is not None:
                rows[str(path.relative_to(options.folder))] = row
    by_format: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.values():
        by_format[row["format"]].append(row)
    out = sys.stdout
    for name, found in sorted(by_format.items()):
        known = [row for row in found if row["share"] is not None]
        words = sum(row["words"] for row in known) or 1
        share = sum(row["share"] * row["words"] for row in known) / words
        flagged = sum(1 for row in known if row["share"] < options.below)
        cost = sum(row["check_s"] for row in found) / (sum(row["parse_s"] for row in found) or 1)
        out.write(
            f"{name:5} {len(found):4} documents {words:9,} words {share:7.2%} kept, {flagged:3} below {options.below:.0%}, "
            f"{len(found) - len(known)} not readable, check {cost:.1%} of {sum(row['parse_s'] for row in found):.1f} CPU s\n"
        )
    checks, parses = (sum(row[name] for row in rows.values()) for name in ("check_s", "parse_s"))
    out.write(f"all   {len(rows):4} documents: {parses:.1f} CPU s parsing, {checks:.1f} checking ({checks / (parses or 1):.1%})\n")
    for path, row in sorted(rows.items(), key=lambda pair: (pair[1]["format"], pair[1]["share"] or 0)):
        if row["share"] is None or row["share"] < options.below:
            missing = ", ".join(row.get("missing", ())[:8])
            out.write(f"{row['format']:5} {row['share']} of {row['words']:6} {path}: {missing}; losses {row.get('losses')}\n")
    if options.json:
        options.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
