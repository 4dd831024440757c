"""The golden set asked of real indexes: answers are found under any name of the same bytes, and each miss has the cause that was made."""

import shutil
from collections.abc import Iterator, Sequence

import pytest

from primer.workspace import Workspace
from primer_core.golden.misses import Cause
from primer_core.golden.paths import PathMap
from primer_core.golden.questions import Canary, Question
from primer_core.golden.report import Report
from primer_resources.golden.canaries import check_canaries
from primer_resources.golden.evaluation import evaluate
from primer_resources.golden.evidence import Tracer
from primer_resources.golden.targets import Targets
from tests.deployment import Deployment, workspace

LONG = (
    "The pump in the cellar is started by hand before winter. It runs until the gauge shows four bars, then the valve at the wall is "
    "closed. Whoever closes it writes the date on the card beside the door, so that the next person knows."
)
COMPANY = "Our {} team meets every second Tuesday and talks about the state of its work, the budget and the people who joined."


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Documents that each lose their answer at another step; passages have at most 32 tokens."""
    root = tmp_path_factory.mktemp("golden")
    (root / "docs.access.yaml").write_text("groups: [staff]\nfolders:\n  board: [board]\n", encoding="utf-8")
    with workspace(root / "home", buckets=1, chunk_max_tokens=32, chunk_overlap_percent=0) as made:
        deployment = Deployment(made, root / "docs", "docs")
        deployment.write("leave.md", "# Leave\n\nParents stay at home for twenty-six weeks.\n")
        (root / "docs" / "copies").mkdir()
        shutil.copy(root / "docs" / "leave.md", root / "docs" / "copies" / "old leave.md")
        deployment.write("pump.md", f"# Cellar\n\n{LONG}\n")
        (root / "docs" / "broken.docx").write_bytes(b"PK\x03\x04 no archive")
        deployment.write("board/merger.md", "# Merger\n\nThe board wants to buy the shipyard in spring.\n")
        for number in range(130):
            deployment.write(f"teams/{number}.md", f"# Team {number}\n\n{COMPANY.format(number)}\n")
        deployment.sync()
        yield deployment


def asked(path: str, text: str, answer: str, **fields: tuple[str, ...]) -> Question:
    return Question(f"q-{path}-{answer}", text, path, answer, "wiki", **fields)  # type: ignore[arg-type]


def targets_of(made: Workspace) -> Targets:
    return Targets(made.catalog, made.settings.tenant, PathMap.parse(["site=docs"]))


def run(site: Deployment, questions: Sequence[Question], k: int = 10) -> Report:
    made = site.workspace
    reader = made.reader
    return evaluate(reader, questions, targets_of(made), Tracer(made.catalog, made.store, reader.version), k)


def test_an_answer_counts_under_any_name_of_the_same_bytes(site: Deployment) -> None:
    report = run(
        site,
        [
            asked("site/leave.md", "How long do parents stay at home?", "twenty-six weeks"),
            asked("site/copies/old leave.md", "How long do parents stay at home?", "twenty-six weeks"),
            asked("site/nowhere.md", "How long do parents stay at home?", "twenty-six weeks", also_in=("site/leave.md",)),
            asked("site/leave.txt", "How long do parents stay at home?", "twenty-six weeks", identical_files=("site/copies/old leave.md",)),
        ],
    )
    assert [outcome.rank for outcome in report.outcomes] == [1, 1, 1, 1]
    assert report.misses == ()


def test_an_answer_in_a_heading_counts_and_is_told_apart(site: Deployment) -> None:
    title = asked("site/teams/7.md", "Which team is number 7?", "Team 7")
    report = run(site, [title, asked("site/leave.md", "How long do parents stay at home?", "twenty-six weeks")], k=50)
    assert report.misses == ()
    assert report.by_heading == (title.question_id,)


def test_each_miss_is_put_down_to_the_step_that_lost_the_answer(site: Deployment) -> None:
    report = run(
        site,
        [
            asked("site/nowhere.md", "How long do parents stay at home?", "twenty-six weeks"),
            asked("site/broken.docx", "How long do parents stay at home?", "twenty-six weeks"),
            asked("site/leave.md", "How long do parents stay at home?", "two years"),
            asked(
                "site/pump.md",
                "Who writes the date on the card?",
                "started by hand before winter. It runs until the gauge shows four bars, "
                "then the valve at the wall is closed. Whoever closes it writes the date",
            ),
            asked("site/teams/7.md", "Our team meets every second Tuesday", "Our 7 team meets"),
            asked("site/pump.md", "Our team meets every second Tuesday", "started by hand"),
        ],
    )
    causes = [miss.cause for miss in report.misses]
    assert causes[:4] == [Cause.NO_DOCUMENT, Cause.NOT_INDEXED, Cause.PARSE, Cause.CHUNK]
    assert causes[4] in (Cause.RANKING, Cause.MODEL)
    assert causes[5] is Cause.MODEL
    unindexed, far = report.misses[1], report.misses[5]
    assert unindexed.detail == "truncated"
    assert far.document == "docs/pump.md"
    assert far.passage is not None
    assert "started by hand" in far.passage
    assert far.found[0].document.startswith("docs/teams/")
    assert report.figures[-1].recall_at_k == 0
    assert report.to_json()["causes"]["model"] >= 1


def test_a_question_is_asked_as_those_who_may_read_its_document(site: Deployment) -> None:
    merger = asked("site/board/merger.md", "What does the board want to buy?", "shipyard")
    assert run(site, [merger]).misses == ()
    as_staff = run(site, [asked("site/board/merger.md", "What does the board want to buy?", "shipyard", groups=("staff",))])
    assert as_staff.misses[0].rank is None
    assert all(not found.document.startswith("docs/board/") for found in as_staff.misses[0].found)


def test_canaries_are_found_by_their_own_groups_alone(site: Deployment) -> None:
    made, text = site.workspace, "What does the board want to buy?"
    safe = Canary("site/board/merger.md", text, ("board",), ("staff", "strangers"))
    assert check_canaries(made.reader, [safe], targets_of(made)).passes
    wrong = [
        Canary("site/pump.md", "Who writes the date on the card beside the door?", ("board",), ("staff",)),
        Canary("site/board/nowhere.md", text, ("board",), ("staff",)),
    ]
    report = check_canaries(made.reader, [safe, *wrong], targets_of(made))
    assert list(report.reasons) == [
        "site/pump.md: staff must not find it and does, as docs/pump.md",
        "site/pump.md: board must find it and does not",
        "site/board/nowhere.md: no source has this document",
    ]


def test_a_restricted_canary_made_public_by_mistake_is_seen(site: Deployment) -> None:
    made = site.workspace
    canary = Canary("site/board/merger.md", "What does the board want to buy?", ("board",), ("staff",))
    rules = site.folder.with_name("docs.access.yaml")
    before = rules.read_text(encoding="utf-8")
    rules.write_text("groups: [staff]\nfolders:\n  board: [board, staff]\n", encoding="utf-8")
    try:
        site.sync()
        reasons = list(check_canaries(made.reader, [canary], targets_of(made)).reasons)
    finally:
        rules.write_text(before, encoding="utf-8")
        site.sync()
    assert reasons == ["site/board/merger.md: staff must not find it and does, as docs/board/merger.md"]
