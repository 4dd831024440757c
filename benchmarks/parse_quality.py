"""How well each format is read, engine by engine: order, tables, letters, words kept, speed; and the worst ten pages in pictures.

usage: parse_quality.py [--folder FOLDER] [--truth FOLDER …] [--formats pdf,docx,…] [--limit N] [--out FOLDER]
FOLDER defaults to the evaluation corpus beside the project, or to PRIMER_CORPUS. A truth of NAME is NAME.truth.md or NAME.truth.txt beside
it, or NAME.md in a folder of truths. Documents with a truth are all read, of the others N a format. Writes a JSON and an HTML file to OUT
(the working directory) and prints the figures. OCR's languages, limits and the number of workers (PRIMER_SLOW_PARSE_WORKERS) are those of
the settings.
"""

import argparse
import os
import sys
from pathlib import Path

from primer_core.failures import PrimerError
from primer_core.quality.figures import DocumentQuality
from primer_core.routing import PARSED
from primer_resources.quality.bench import run_bench
from primer_resources.quality.folder import Selection, formats_named
from primer_resources.quality.report import shown
from primer_resources.settings import load_settings

PROJECT = Path(__file__).resolve().parents[1]
CORPUS = Path(os.environ.get("PRIMER_CORPUS") or PROJECT.parent / "shared" / "corpus")


def tell(row: DocumentQuality) -> None:
    """A line a document, so that a long run can be followed."""
    ending = row.reason.value if row.reason else f"score {shown(row.score)}"
    sys.stderr.write(f"{row.format:5} {row.engine:11} {shown(row.cpu_seconds):>7} CPU s  {ending}  {row.path}\n")


def main() -> int:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=CORPUS)
    parser.add_argument("--truth", type=Path, action="append", default=[])
    parser.add_argument("--formats", default=",".join(sorted(PARSED)))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    try:
        selection = Selection(options.folder, options.truth, formats_named(options.formats.split(",")), options.limit)
        report = run_bench(load_settings(), selection, tell)
    except PrimerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(report.to_markdown() + "\n")
    sys.stdout.write("".join(f"{path}\n" for path in report.write(options.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
