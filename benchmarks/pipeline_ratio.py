"""What the pipeline costs over the bare libraries: the same documents through Primer and through bare_loop, side by side, in CPU seconds.

usage: pipeline_ratio.py [--documents 300] [--folder FOLDER] [--repeats 1]
FOLDER defaults to the evaluation corpus beside the project; where there is none, to copies of samples/ that differ in a line.
CPU seconds are those of each side's process and all of its children, start and imports included.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
CORPUS = Path(os.environ.get("PRIMER_CORPUS") or PROJECT.parent / "shared" / "corpus") / "files"
SUFFIXES = (".md", ".html", ".docx", ".pptx", ".xlsx", ".csv", ".eml", ".pdf")
LARGEST = 400_000
"""Bytes: a few giants would hide what an ordinary document costs."""


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _gather(folder: Path | None, count: int, target: Path) -> list[Path]:
    """Copy `count` documents of mixed formats under names of their own."""
    roots = [folder] if folder else [CORPUS / "drive", CORPUS / "wiki"] if CORPUS.is_dir() else []
    by_suffix: dict[str, list[Path]] = {suffix: [] for suffix in SUFFIXES}
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix in by_suffix and path.stat().st_size <= LARGEST and "Problem files" not in path.parts:
                by_suffix[path.suffix].append(path)
    chosen: list[Path] = []
    while len(chosen) < count and any(by_suffix.values()):
        for paths in by_suffix.values():
            if paths and len(chosen) < count:
                chosen.append(paths.pop(0))
    copies = [Path(shutil.copyfile(path, target / f"{number:04}-{path.name}")) for number, path in enumerate(chosen)]
    texts = sorted((PROJECT / "samples").rglob("*.md"))
    while len(copies) < count:
        number = len(copies)
        copy = target / f"{number:04}-sample.md"
        copy.write_text(f"{texts[number % len(texts)].read_text()}\n\nCopy number {number}.\n", encoding="utf-8")
        copies.append(copy)
    return copies


def _primer(folder: Path, home: Path) -> tuple[float, dict[str, int]]:
    environment = os.environ | {"PRIMER_HOME": str(home)}
    command = [sys.executable, "-m", "primer.cli.launch"]
    for words in (["init"], ["source", "add", str(folder), "--name", "bench", "--groups", "all"]):
        subprocess.run([*command, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
    before = _cpu_seconds()
    done = subprocess.run([*command, "sync", "--json"], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return _cpu_seconds() - before, json.loads(done.stdout)


def _bare(files: list[Path], work: Path, max_tokens: int) -> tuple[float, dict[str, int]]:
    listing = work / "files.txt"
    listing.write_text("\n".join(str(path) for path in files), encoding="utf-8")
    command = [sys.executable, str(Path(__file__).with_name("bare_loop.py")), str(listing), str(work / "bare"), str(max_tokens)]
    (work / "bare").mkdir()
    before = _cpu_seconds()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return _cpu_seconds() - before, json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run both sides and print their CPU seconds and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory(prefix="primer-bench-") as name:
            work = Path(name)
            (work / "documents").mkdir()
            files = _gather(options.folder, options.documents, work / "documents")
            primer_s, report = _primer(work / "documents", work / "home")
            bare_s, counts = _bare(files, work, options.max_tokens)
        print(f"primer {primer_s:7.1f} CPU s  {report['indexed']} indexed, {report['failed']} failed, {report['chunks_new']} chunks")  # noqa: T201
        print(f"bare   {bare_s:7.1f} CPU s  {counts['documents']} documents, {counts['failed']} failed, {counts['chunks']} chunks")  # noqa: T201
        print(f"ratio  {primer_s / bare_s:7.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
