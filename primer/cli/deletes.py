"""`primer deletes`: what listings would have deleted and was held. Look at it, let it through, or turn it down."""

from typing import Annotated, Any
from uuid import uuid4

import typer

from primer.cli.output import JsonOption, out, print_json, print_table, visible
from primer.cli.person import person
from primer.workspace import open_workspace
from primer_assets import held_decisions
from primer_assets.held_decisions import HeldReport

app = typer.Typer(no_args_is_help=True, help="Held deletes: sets of documents that a listing would have deleted, and that wait for a word.")
SOURCE = Annotated[str, typer.Argument(help="The source.")]
SHORT = 12


@app.command("list")
def list_(
    source: Annotated[str | None, typer.Option(help="Only of this source.")] = None,
    sample: Annotated[int, typer.Option(min=0, max=1000, help="How many of the documents to show, of each source.")] = 5,
    json: JsonOption = False,
) -> None:
    """List what is held, and sources whose last listing was not complete."""
    with open_workspace() as workspace:
        found = held_decisions.held_reports(workspace.catalog, sample, source)
    if json:
        print_json([_to_json(report) for report in found])
        return
    rows = [[r.source, _state(r), r.still_missing or "", f"{r.held.held_at:%Y-%m-%d %H:%M} UTC" if r.held else "",
             r.held.digest[:SHORT] if r.held else "", r.said or ""] for r in found]  # fmt: skip
    print_table(["source", "state", "documents", "since", "digest", "last sync said"], rows)
    for report in found:
        for reason in report.held.reasons if report.held else ():
            out.print(f"{report.source}: {reason}", markup=False)
        for path in report.sample:
            out.print(f"  {report.source}/{visible(path)}", markup=False)


def _state(report: HeldReport) -> str:
    held = report.held
    if held is None:
        return "nothing held"
    if held.decided_by is None or held.decided_at is None:
        return held.state
    return f"{held.state} by {held.decided_by} at {held.decided_at:%Y-%m-%d %H:%M} UTC"


def _to_json(report: HeldReport) -> dict[str, Any]:
    names = ("state", "digest", "documents", "held_at", "listed_at", "decided_at", "decided_by", "reasons")
    held = {name: None if report.held is None else getattr(report.held, name) for name in names}
    rest = {"still_missing": report.still_missing, "sample": list(report.sample), "said": report.said}
    return {"source": report.source, **held, **rest}


@app.command()
def approve(source: SOURCE, json: JsonOption = False) -> None:
    """Delete exactly what is held, without another listing. The next sync or sweep takes the rows out of the indexes."""
    with open_workspace() as workspace:
        deleted = held_decisions.approve(workspace.catalog, source, person(), _owner(), workspace.settings.lease)
    if json:
        print_json({"source": source, "deleted": deleted})
    else:
        out.print(f"source {source}: {deleted} documents deleted; `primer sync` takes their rows out of the indexes now", markup=False)


@app.command()
def reject(source: SOURCE, json: JsonOption = False) -> None:
    """Keep what is held: listings that show the same again do not delete it, until it is approved."""
    with open_workspace() as workspace:
        held = held_decisions.reject(workspace.catalog, source, person(), _owner(), workspace.settings.lease)
    if json:
        print_json({"source": source, "rejected": held.documents, "digest": held.digest})
    else:
        out.print(
            f"source {source}: {held.documents} documents stay, whatever listings show, until `primer deletes approve {source}`",
            markup=False,
        )


def _owner() -> str:
    """Who holds the source meanwhile, as a run would."""
    return f"deletes-{uuid4()}"
