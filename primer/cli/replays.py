"""`primer replay`: take documents through a stage again."""

import json as jsonlib
import sys
from datetime import datetime
from typing import Annotated

import typer

from primer.cli.documents import resolve
from primer.cli.output import JsonOption, out, print_table
from primer.replaying import Replaying, to_json
from primer.workspace import open_workspace
from primer_core.failures import PrimerError
from primer_core.outcomes import Outcome
from primer_core.replay import Judgement, ReplayAction, ReplayVerdict, Selectors
from primer_core.source_time import parse_time
from primer_resources.catalog.replays import Candidate

SAMPLE = 20
MEANING = {
    ReplayVerdict.REPLAYABLE: "all that the stage needs is kept",
    ReplayVerdict.SOURCE_RECEIPT: "something is missing, and the source can be asked for the document again",
    ReplayVerdict.BODY_MISSING: "something is missing and nobody can be asked, or the document is deleted",
}


def replay(
    to_stage: Annotated[str, typer.Option(help="Where documents begin again: parse, chunk, embed or write.")],
    doc: Annotated[list[str] | None, typer.Option(help="A doc_id, a uri, or SOURCE/relative/path; may be repeated.")] = None,
    source: Annotated[str | None, typer.Option(help="Documents of this source.")] = None,
    since: Annotated[str | None, typer.Option(help="Newest attempt ended then or later, as 2026-01-31T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Newest attempt ended before then.")] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="How the newest attempt ended.")] = None,
    index: Annotated[str | None, typer.Option(help="In this index version; the live one when left out.")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Make the jobs, and ask sources for what is not kept.")] = False,
    json: JsonOption = False,
) -> None:
    """Say which documents can go through a stage again, and with --apply let them. What is given narrows the choice; something must be."""
    with open_workspace() as workspace:
        ids = tuple(resolve(workspace, each) for each in doc or ())
        selectors = Selectors(ids, source, _time("--since", since), _time("--until", until), outcome, index)
        replaying = Replaying.of(workspace.catalog, workspace.settings.tenant, selectors, to_stage, apply)
        if json:
            for candidate in replaying.run():
                _print_line(to_json(candidate))
            _print_line({"totals": replaying.totals()})
            return
        sample: list[Candidate] = []
        for candidate in replaying.run():
            if len(sample) < SAMPLE:
                sample.append(candidate)
    _show(replaying, sample)


def _time(option: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise PrimerError(f"{option} {text}: write a time with its zone, as 2026-01-31T12:00:00Z") from error


def _print_line(value: dict[str, object]) -> None:
    sys.stdout.write(jsonlib.dumps(value, ensure_ascii=False) + "\n")


def _show(replaying: Replaying, sample: list[Candidate]) -> None:
    for verdict, meaning in MEANING.items():
        out.print(f"{replaying.verdicts[verdict]:7} {verdict:15} {meaning}", markup=False)
    if sample:
        rows = [[f"{each.source_id}/{each.path}", each.outcome, *_judged(each.judgement)] for each in sample]
        print_table(["document", "outcome", "verdict", "missing", "can begin at"], rows)
    made, asked, busy = (replaying.actions[action] for action in (ReplayAction.JOB, ReplayAction.FETCH, ReplayAction.UNDER_WAY))
    under_way = f"; {busy} are under way already" if busy else ""
    if replaying.is_applied:
        out.print(f"{made} jobs made, {asked} documents asked of their sources{under_way}: the next `primer sync` or the sensors go on")
    else:
        out.print(f"dry run: --apply makes {made} jobs and asks sources for {asked} documents{under_way}")


def _judged(judgement: Judgement) -> list[str | None]:
    return [judgement.verdict, ", ".join(judgement.missing), judgement.instead]
