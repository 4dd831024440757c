"""`primer eval`: how well an index version answers the golden set, and whether it does as well as another."""

from random import Random
from typing import Annotated

import typer

from primer.cli.output import DIFFERENCE_EXIT, JsonOption, err, out, print_json, print_table, visible
from primer.workspace import open_workspace
from primer_core.golden.comparison import Comparison, compare
from primer_core.golden.report import Miss, Report
from primer_resources.golden.runs import GoldenRuns

SEED = 0
"""Of the bootstrap, so that one comparison always prints the same interval."""


def evaluation(
    index: Annotated[str | None, typer.Option(help="The index version that is asked; the live one when left out.")] = None,
    against: Annotated[str | None, typer.Option(help="Another version, asked the same: is the first as good in every format?")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="How many passages may hold the answer.")] = 10,
    misses: Annotated[int, typer.Option(min=0, help="How many misses are shown; --json has all.")] = 20,
    places: Annotated[list[str] | None, typer.Option("--map", help="FOLDER=SOURCE of the golden paths; before PRIMER_GOLDEN_MAP.")] = None,
    json: JsonOption = False,
) -> int:
    """Ask the golden set of an index version: recall and MRR by format, and why each miss is one. Exit 1 where --against is better."""
    with open_workspace() as workspace:
        runs = GoldenRuns(workspace.settings, workspace.catalog, workspace.store, workspace.toolkit, places)
        deployments = workspace.catalog.deployments
        versions = [deployments.live() if index is None else deployments.version(index)]
        if against is not None:
            versions.append(deployments.version(against))
        reports = [runs.report(version, k) for version in versions]
        notices = runs.golden.notices
    report, other = reports[0], reports[1] if against is not None else None
    comparison = None if other is None else compare(report.outcomes, other.outcomes, Random(SEED))
    is_worse = comparison is not None and not comparison.passes
    if json:
        compared = None if comparison is None or other is None else {"against": other.to_json(), **comparison.to_json()}
        print_json(report.to_json() | {"notices": list(notices), "comparison": compared})
        return DIFFERENCE_EXIT if is_worse else 0
    for notice in notices:
        err.print(notice, markup=False)
    _show(report)
    if comparison is not None and other is not None:
        _show(other)
        _show_comparison(report, other, comparison)
    for miss in report.misses[:misses]:
        _show_miss(miss)
    if len(report.misses) > misses:
        out.print(f"{len(report.misses) - misses} more misses; --misses shows more of them")
    return DIFFERENCE_EXIT if is_worse else 0


def _show(report: Report) -> None:
    out.print(f"index version {report.index_version}", markup=False)
    rows = [
        [row.format, row.questions, f"{row.recall_at_1:.3f}", f"{row.recall_at_k:.3f}", f"{row.mrr:.3f}", _missed(report, row.format)]
        for row in report.figures
    ]
    print_table(["format", "questions", "recall@1", f"recall@{report.k}", f"MRR@{report.k}", "misses"], rows)
    if report.by_heading:
        out.print(f"answered by the headings over the passage alone: {', '.join(report.by_heading)}", markup=False)
    if report.without_value:
        out.print(f"the passage has the label and not the cell beside it: {', '.join(report.without_value)}", markup=False)


def _missed(report: Report, format_: str) -> str:
    """The misses of a format by cause; those of all formats in the last row."""
    causes = report.causes_of(format_)
    return ", ".join(f"{number} {cause}" for cause, number in causes.items())


def _show_comparison(report: Report, other: Report, comparison: Comparison) -> None:
    out.print(f"{report.index_version} against {other.index_version}: recall@{report.k}", markup=False)
    rows = [
        [each.format, f"{each.candidate:.3f}", f"{each.live:.3f}", each.words, len(each.lost), len(each.gained)]
        for each in comparison.differences
    ]
    print_table(["format", report.index_version, other.index_version, "difference (95 % interval)", "lost", "gained"], rows)
    verdict = "is worse in no format" if comparison.passes else "is worse"
    out.print(f"{report.index_version} {verdict}", markup=False)
    for reason in comparison.reasons:
        out.print(f"  {reason}", markup=False)


def _show_miss(miss: Miss) -> None:
    detail = f" ({visible(miss.detail)})" if miss.detail else ""
    place = "" if miss.rank is None else f", rank {miss.rank}"
    out.print(f"{miss.question_id} {miss.format}: {miss.cause}{detail}{place}", markup=False)
    out.print(f"   asked     {visible(miss.question)}", markup=False)
    out.print(f"   expected  {visible(miss.document)}: {visible(miss.answer)}", markup=False)
    if miss.passage is not None:
        out.print(f"   passage   {visible(miss.passage)}", markup=False)
    for found in miss.found:
        out.print(f"   found     {visible(found.document)}: {visible(found.excerpt)}", markup=False)
