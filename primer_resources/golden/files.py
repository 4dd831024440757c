"""The golden set's files: a question or a canary a line, in JSON. A line that cannot be used stops all, by file and line."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from primer_core.failures import PrimerError
from primer_core.golden.answers import comparable
from primer_core.golden.questions import Canary, Question

CANARIES = "canaries.jsonl"
"""The one file of a golden folder that holds no questions."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Row = TypeVar("Row", bound=BaseModel)


class QuestionRow(BaseModel):
    """A line of questions. Fields that are not listed are told of and not used."""

    model_config = ConfigDict(extra="allow", strict=True)

    id: Text
    question: Text
    path: Text
    answer_substring: Text
    format: Text
    answer_value: Text | None = None
    identical_files: list[Text] = []
    also_in: list[Text] = []
    groups: Annotated[list[Text], Field(min_length=1)] | None = None

    def question_value(self) -> Question:
        """The question of the core."""
        return Question(
            question_id=self.id,
            text=self.question,
            path=self.path,
            answer=self.answer_substring,
            format=self.format,
            answer_value=self.answer_value,
            identical_files=tuple(self.identical_files),
            also_in=tuple(self.also_in),
            groups=None if self.groups is None else tuple(self.groups),
        )


class CanaryRow(BaseModel):
    """A line of canaries. Both lists count, so a misspelt one is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    path: Text
    text: Text
    found_by: Annotated[list[Text], Field(min_length=1)]
    hidden_from: Annotated[list[Text], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """Questions in the order of their files, canaries, and what a person should know of the files (fields that are not used)."""

    questions: tuple[Question, ...]
    canaries: tuple[Canary, ...]
    notices: tuple[str, ...] = ()


def load_golden(places: Sequence[Path]) -> GoldenSet:
    """Read golden files: every *.jsonl of a folder, or the files named. Raises PrimerError for a place that cannot be read, one without a
    file, a line that is not as it should be, and an id that stands twice."""
    questions: dict[str, tuple[Question, str]] = {}
    canaries: list[Canary] = []
    notices: dict[str, None] = {}
    for file in _files(places):
        if file.name == CANARIES:
            canaries.extend(_canary(row, where) for where, row in _rows(file, CanaryRow))
            continue
        for where, row in _rows(file, QuestionRow):
            question = row.question_value()
            if not comparable(question.answer):
                raise PrimerError(f"{where}: answer_substring {question.answer!r} holds nothing but marks; give the document's words")
            if question.question_id in questions:
                raise PrimerError(
                    f"{where}: id {question.question_id!r} stands in {questions[question.question_id][1]} already; give each its own"
                )
            questions[question.question_id] = (question, where)
            notices.update(dict.fromkeys(f"{file}: field {name!r} is not used" for name in row.model_extra or ()))
    return GoldenSet(tuple(question for question, _ in questions.values()), tuple(canaries), tuple(notices))


def _files(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_dir():
            found = sorted(place.glob("*.jsonl"))
            if not found:
                raise PrimerError(f"golden folder {place} has no *.jsonl file; put questions there, or set PRIMER_GOLDEN to where they are")
            yield from found
        elif place.is_file():
            yield place
        else:
            raise PrimerError(f"golden set {place} is neither a folder nor a file; set PRIMER_GOLDEN to where the questions are")


def _rows(file: Path, model: type[Row]) -> Iterator[tuple[str, Row]]:
    """(file and line, row) of each line that is not blank."""
    try:
        lines = file.read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise PrimerError(f"golden file {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PrimerError(f"golden file {file} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{file}:{number}"
            try:
                yield where, model.model_validate_json(line)
            except ValidationError as error:
                raise PrimerError(f"{where}: {_fault(error)}") from error


def _fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "json_invalid":
        return f"it is no JSON ({first['ctx']['error']}); write one object a line"
    if first["type"] == "missing":
        return f"field {name!r} is missing; add it"
    if first["type"] == "extra_forbidden":
        return f"field {name!r} is none of a canary; remove it or mend its name"
    if not name:
        return "it is no JSON object; write one object a line"
    return f"field {name!r} = {first['input']!r} is not valid ({first['msg']}); mend it"


def _canary(row: CanaryRow, where: str) -> Canary:
    both = sorted(set(row.found_by) & set(row.hidden_from))
    if both:
        raise PrimerError(f"{where}: group {both[0]!r} stands in found_by and in hidden_from; keep it in one")
    return Canary(row.path, row.text, tuple(row.found_by), tuple(row.hidden_from))
