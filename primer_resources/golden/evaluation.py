"""A run over the golden set: each question asked of one index version through the one reader."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from primer_core.golden.answers import answers, gives_value, passage_words
from primer_core.golden.figures import Outcome, summarise
from primer_core.golden.misses import DEPTH, Evidence
from primer_core.golden.questions import Question
from primer_core.golden.report import Found, Miss, Report
from primer_resources.golden.evidence import Tracer
from primer_resources.golden.targets import Target, Targets
from primer_resources.reader import Reader, SearchResult

EXCERPT = 160
"""Letters of a passage that a report shows."""
SHOWN = 3
"""Passages found instead that a miss shows."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with the documents that may answer it, and the groups of the person who asks."""

    question: Question
    targets: tuple[Target, ...]
    groups: tuple[str, ...]


def evaluate(reader: Reader, questions: Sequence[Question], targets: Targets, tracer: Tracer, k: int = 10) -> Report:
    """Ask all questions and say which the first `k` passages answer; each that they do not is put down to its cause.

    Every question is asked as a person of its `groups`, or else of the groups that may read its document: nothing but the permissions
    decides what is searched, here as everywhere. Raises Transient where documents kept changing during a search.
    """
    outcomes: list[Outcome] = []
    misses: list[Miss] = []
    by_heading: list[str] = []
    without_value: list[str] = []
    for asked in _prepare(questions, targets):
        question = asked.question
        results = reader.search(question.text, targets.tenant_id, asked.groups, k)
        rank = _rank(asked, results, targets)
        outcomes.append(Outcome(question.question_id, question.format, rank))
        if rank is None:
            misses.append(_miss(asked, results, reader, targets, tracer, k))
            continue
        text = results[rank - 1].text
        if not answers(question, text):
            by_heading.append(question.question_id)
        if not gives_value(question, text):
            without_value.append(question.question_id)
    figures = summarise(outcomes)
    return Report(reader.version.name, k, figures, tuple(outcomes), tuple(misses), tuple(by_heading), tuple(without_value))


def _prepare(questions: Sequence[Question], targets: Targets) -> Iterable[_Asked]:
    there = targets.find({path for question in questions for path in question.paths})
    for question in questions:
        mine = tuple(there[path] for path in question.paths if path in there)
        # The first document that is there is the one that the question is about; the others only answer as well.
        groups = question.groups if question.groups is not None else targets.readers(target.document for target in mine[:1])
        yield _Asked(question, mine, groups)


def _rank(asked: _Asked, results: Sequence[SearchResult], targets: Targets) -> int | None:
    """The rank of the first passage that answers: it holds the answer, and is of one of the documents or of one with the same bytes."""
    holding = [
        (rank, result.doc_id)
        for rank, result in enumerate(results, start=1)
        if answers(asked.question, passage_words(result.heading_path, result.text))
    ]
    own = {target.document.doc_id for target in asked.targets}
    contents = {target.document.content_hash for target in asked.targets} - {None}
    others = targets.contents({doc_id for _, doc_id in holding} - own)
    return next((rank for rank, doc_id in holding if doc_id in own or others.get(doc_id) in contents), None)


def _miss(asked: _Asked, results: Sequence[SearchResult], reader: Reader, targets: Targets, tracer: Tracer, k: int) -> Miss:
    question = asked.question
    found = tuple(Found(f"{result.source}/{result.path}", _excerpt(result.text)) for result in results[:SHOWN])
    rank, passage, detail, evidence = None, None, "", Evidence(is_known=False)
    if asked.targets:
        deep = reader.search(question.text, targets.tenant_id, asked.groups, max(DEPTH, k))
        rank = _rank(asked, deep, targets)
        traces = tracer.trace(question, asked.targets)
        passage, detail = traces.passage, traces.detail
        evidence = Evidence(True, traces.is_indexed, traces.in_elements, passage is not None, rank)
    return Miss(
        question_id=question.question_id,
        format=question.format,
        question=question.text,
        answer=question.answer,
        document=asked.targets[0].name if asked.targets else targets.expected(question.path),
        cause=evidence.cause,
        detail=detail,
        rank=rank,
        passage=None if passage is None else _excerpt(passage),
        found=found,
    )


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:EXCERPT]
