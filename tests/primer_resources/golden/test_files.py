"""The golden set's files: what is read, and that nothing that cannot be used is passed over."""

import json
from pathlib import Path
from typing import Any

import pytest

from primer_core.failures import PrimerError
from primer_resources.golden.files import load_golden
from tests.conftest import PROJECT

QUESTION = {"id": "q-1", "question": "How long?", "path": "drive/a.md", "answer_substring": "26 weeks", "format": "wiki"}
CANARY = {"path": "drive/pay.xlsx", "text": "pay", "found_by": ["hr"], "hidden_from": ["everyone"]}


def write(folder: Path, name: str, *rows: Any) -> Path:
    file = folder / name
    file.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return file


def test_a_folder_gives_the_questions_of_all_its_files_and_the_canaries(tmp_path: Path) -> None:
    write(tmp_path, "b.jsonl", QUESTION | {"id": "q-2", "groups": ["hr"], "also_in": ["drive/b.md"], "identical_files": ["drive/c.md"]}, "")
    write(tmp_path, "a.jsonl", QUESTION | {"answer_value": "26"})
    write(tmp_path, "canaries.jsonl", CANARY)
    write(tmp_path, "notes.txt", "not read")
    golden = load_golden([tmp_path])
    assert [question.question_id for question in golden.questions] == ["q-1", "q-2"]
    assert golden.questions[0].answer_value == "26"
    assert golden.questions[0].groups is None
    assert golden.questions[1].groups == ("hr",)
    assert golden.questions[1].paths == ("drive/a.md", "drive/c.md", "drive/b.md")
    assert golden.canaries[0].hidden_from == ("everyone",)
    assert golden.notices == ()


def test_a_field_that_is_not_used_is_told(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", QUESTION | {"difficulty": 3}, QUESTION | {"id": "q-2", "difficulty": 4})
    assert load_golden([file]).notices == (f"{file}: field 'difficulty' is not used",)


@pytest.mark.parametrize(
    ("name", "row", "complaint"),
    [
        ("a.jsonl", "{", "it is no JSON"),
        ("a.jsonl", "[]", "one object a line"),
        ("a.jsonl", {key: value for key, value in QUESTION.items() if key != "path"}, "field 'path' is missing"),
        ("a.jsonl", QUESTION | {"question": " "}, "field 'question' = ' ' is not valid"),
        ("a.jsonl", QUESTION | {"answer_substring": 26}, "field 'answer_substring' = 26 is not valid"),
        ("a.jsonl", QUESTION | {"answer_substring": "**"}, "nothing but marks"),
        ("a.jsonl", QUESTION | {"groups": []}, "field 'groups' = [] is not valid"),
        ("a.jsonl", QUESTION | {"id": "q-0"}, "id 'q-0' stands in"),
        ("canaries.jsonl", CANARY | {"hiden_from": ["all"]}, "field 'hiden_from' is none of a canary"),
        ("canaries.jsonl", CANARY | {"found_by": []}, "field 'found_by' = [] is not valid"),
        ("canaries.jsonl", CANARY | {"found_by": ["hr", "everyone"]}, "group 'everyone' stands in found_by and in hidden_from"),
    ],
)
def test_a_bad_line_stops_all_and_is_named(tmp_path: Path, name: str, row: Any, complaint: str) -> None:
    first = CANARY if name == "canaries.jsonl" else QUESTION | {"id": "q-0"}
    file = write(tmp_path, name, first, "", row)
    with pytest.raises(PrimerError) as raised:
        load_golden([file])
    assert str(raised.value).startswith(f"{file}:3: ")
    assert complaint in str(raised.value)


def test_a_place_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PrimerError, match=r"has no \*\.jsonl file"):
        load_golden([tmp_path])
    with pytest.raises(PrimerError, match="is neither a folder nor a file"):
        load_golden([tmp_path / "nowhere"])


def test_the_questions_about_the_samples_quote_documents_that_are_there() -> None:
    golden = load_golden([PROJECT / "golden"])
    assert golden.notices == ()
    for path in {question.path for question in golden.questions} | {canary.path for canary in golden.canaries}:
        assert (PROJECT / path).is_file(), path


def test_the_corpus_can_be_read(corpus: Path) -> None:
    golden = load_golden([corpus / "golden"])
    lines = (corpus / "golden" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(golden.questions) == len(lines)
    assert golden.notices == ()
