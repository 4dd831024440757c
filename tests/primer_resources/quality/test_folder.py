"""Which documents of a folder are measured, and on what truth."""

from pathlib import Path

import pytest

from primer_core.failures import PrimerError
from primer_core.quality.scores import Truth
from primer_core.routing import Format
from primer_resources.quality.folder import Selection, select


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def names(selection: Selection) -> list[str]:
    return [candidate.name for candidate in select(selection)]


def test_a_truth_beside_its_document_is_no_document(tmp_path: Path) -> None:
    write(tmp_path, **{"a.md": "# A", "a.md.truth.md": "# A!", "b.txt": "words of b", "b.txt.truth.txt": "words of b!", ".hidden": "no"})
    found = {candidate.name: candidate.truth for candidate in select(Selection(tmp_path))}
    assert found == {"a.md": Truth("# A!", is_markdown=True), "b.txt": Truth("words of b!", is_markdown=False)}


def test_truths_in_folders_belong_to_documents_by_name_and_those_of_pdf_by_stem(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "docs", **{"a.md": "# A", "b.pdf": "%PDF-1.4 b"})
    write(tmp_path / "x-groundtruth" / "md", **{"a.md.md": "truth of a"})
    write(tmp_path.parent / "apart", **{"b.md": "truth of b"})
    found = {candidate.name: candidate.truth for candidate in select(Selection(tmp_path, [tmp_path.parent / "apart"]))}
    assert found == {"deep/docs/a.md": Truth("truth of a", True), "deep/docs/b.pdf": Truth("truth of b", True)}


def test_a_name_with_two_contents_has_no_truth_and_equal_contents_are_read_once(tmp_path: Path) -> None:
    write(tmp_path / "groundtruth", **{"a.md.md": "truth", "b.md.md": "truth of b"})
    for place, a in (("one", "# A"), ("two", "# Another")):
        write(tmp_path / place, **{"a.md": a, "b.md": "# B"})
    found = [(candidate.name, candidate.truth) for candidate in select(Selection(tmp_path))]
    assert found == [("one/a.md", None), ("one/b.md", Truth("truth of b", True)), ("two/a.md", None)]


def test_of_equal_contents_the_one_with_a_truth_is_read(tmp_path: Path) -> None:
    write(tmp_path, **{"a.md": "# A", "b.md": "# A", "b.md.truth.md": "# A", "c.md": "# A"})
    assert names(Selection(tmp_path)) == ["b.md"]


def test_the_sample_is_the_same_every_time_and_truths_are_always_in_it(tmp_path: Path) -> None:
    write(tmp_path, **{f"{n}.md": f"# {n}" for n in range(20)}, **{"t.md": "# T", "t.md.truth.md": "# T", "c.csv": "a,b\n1,2\n"})
    sample = names(Selection(tmp_path, limit=3))
    assert sample == names(Selection(tmp_path, limit=3))
    assert len(sample) == 5
    assert {"t.md", "c.csv"} < set(sample)
    assert set(sample) < set(names(Selection(tmp_path, limit=4)))


def test_the_corpus_layout_names_where_documents_are(tmp_path: Path) -> None:
    write(tmp_path, **{"README.md": "# Not a document"})
    write(tmp_path / "files", **{"a.md": "# A"})
    write(tmp_path / "ocr" / "pages", **{"b.md": "# B"})
    assert names(Selection(tmp_path)) == ["files/a.md", "ocr/pages/b.md"]


def test_formats_are_by_content_and_others_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, **{"page.txt": "<!DOCTYPE html><html><body>hi</body></html>", "note.md": "# N", "data.json": '{"a": 1}'})
    assert names(Selection(tmp_path)) == ["page.txt", "note.md"]
    assert names(Selection(tmp_path, formats=frozenset({Format.HTML}))) == ["page.txt"]


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_nothing_to_measure_is_told_in_one_line(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(PrimerError, match=folder) as error:
        select(Selection(tmp_path / folder))
    assert "\n" not in str(error.value)
