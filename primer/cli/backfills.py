"""`primer backfill`: fill an index version from what is stored."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from primer.backfill_json import to_json
from primer.cli.output import JsonOption, out, print_json, print_table
from primer.cli.progress import show_progress
from primer.cli.syncs import give_back
from primer.interrupts import run_interruptibly
from primer.workspace import Workspace, open_workspace
from primer_core.backfills import BackfillReason, BackfillState
from primer_core.recipe import ChunkerKind, recipe_difference
from primer_resources.version_making import RecipeChange, begin_backfill, plan_backfill

if TYPE_CHECKING:
    from primer_resources.catalog.backfills import Backfill

app = typer.Typer(no_args_is_help=True, help="Fill an index version from what is stored, beside live changes.")
STOPPED = "interrupted; what is done stays done, `primer backfill run` goes on from there"

Target = Annotated[str, typer.Option(help="The index version to fill; it is made where it is not there yet.")]
Reason = Annotated[BackfillReason, typer.Option(help="Which part of the recipe is new.")]
Model = Annotated[str | None, typer.Option(help="Another embedding model: a folder's path, or its name in the models folder.")]
Chunker = Annotated[ChunkerKind | None, typer.Option(help="Another chunker.")]
MaxTokens = Annotated[int | None, typer.Option(help="Another limit of a passage, in tokens.")]
Overlap = Annotated[int | None, typer.Option(help="Another overlap, in percent of the limit.")]
Id = Annotated[int, typer.Argument(help="As `primer backfill status` lists it.")]


@app.command()
def plan(
    reason: Reason,
    target: Target,
    model: Model = None,
    chunker: Chunker = None,
    max_tokens: MaxTokens = None,
    overlap: Overlap = None,
    json: JsonOption = False,
) -> None:
    """Say what a backfill would do; changes nothing."""
    with open_workspace() as workspace:
        made = plan_backfill(workspace.catalog, workspace.settings, target, reason, RecipeChange(model, chunker, max_tokens, overlap))
    if json:
        print_json(
            {
                "target_index": made.target,
                "reason": made.reason,
                "is_new": made.is_new,
                "documents": made.documents,
                "recipe": made.recipe.to_json(),
                "difference": recipe_difference(made.live, made.recipe),
            }
        )
        return
    stands = "would be made" if made.is_new else "is there"
    out.print(f"{target} {stands}: live has {recipe_difference(made.live, made.recipe)}", markup=False)
    out.print(f"{made.documents} documents would be looked at; what comes before the {reason.replace('_', ' ')} is read as it is stored")


@app.command()
def start(
    reason: Reason,
    target: Target,
    model: Model = None,
    chunker: Chunker = None,
    max_tokens: MaxTokens = None,
    overlap: Overlap = None,
    max_docs_per_s: Annotated[float | None, typer.Option(help="Take up no more documents a second.")] = None,
    json: JsonOption = False,
) -> None:
    """Open an index version for writing and begin to fill it. The sensors do the work, or `primer backfill run`."""
    with open_workspace() as workspace:
        change = RecipeChange(model, chunker, max_tokens, overlap)
        begun = begin_backfill(workspace.catalog, workspace.settings, target, reason, change, max_docs_per_s)
        workspace.add_partitions()
        shown = _shown(workspace, begun)
    _print(shown, json, f"`primer backfill run {begun.backfill_id}` does it here; the sensors of the UI do it by themselves")


@app.command()
def run(backfill: Id, json: JsonOption = False) -> None:
    """Work on a backfill here until it is finished, live changes first. Ctrl-C ends it within seconds, and nothing is lost."""
    with open_workspace() as workspace:
        ended = run_interruptibly(lambda: _run(workspace, backfill), lambda: give_back(workspace), STOPPED)
        shown = _shown(workspace, ended)
    _print(shown, json)


def _run(workspace: Workspace, backfill_id: int) -> "Backfill":
    from primer.backfilling import Filling
    from primer.materialise import Materialiser

    workspace.add_partitions()
    overrides: dict[str, Any] = {
        "settings": workspace.settings,
        "catalog": workspace.catalog,
        "store": workspace.store,
        "toolkit": workspace.toolkit,
    }
    with show_progress() as on_progress:
        return Filling(workspace.catalog, workspace.settings, Materialiser(workspace.instance, overrides), on_progress).run(backfill_id)


@app.command()
def status(
    backfill: Annotated[int | None, typer.Argument(help="One of them; all when left out.")] = None, json: JsonOption = False
) -> None:
    """How far backfills are."""
    with open_workspace() as workspace:
        found = workspace.catalog.backfills.all() if backfill is None else [workspace.catalog.backfills.find(backfill)]
        shown = [_shown(workspace, each) for each in found]
    if json:
        print_json(shown if backfill is None else shown[0])
        return
    columns = ["backfill_id", "target_index", "reason", "state", "done", "failed", "total", "eta_s"]
    print_table(columns, [[each[name] for name in columns] for each in shown])


@app.command()
def pause(backfill: Id, json: JsonOption = False) -> None:
    """Let a backfill wait. What it has written stays, and live changes go on to be written to its version."""
    _steer(backfill, BackfillState.PAUSED, json)


@app.command()
def resume(backfill: Id, json: JsonOption = False) -> None:
    """Let a paused backfill go on."""
    _steer(backfill, BackfillState.RUNNING, json)


@app.command()
def cancel(backfill: Id, json: JsonOption = False) -> None:
    """End a backfill as it stands. Its version stays open: begin another one, or drop the version with `primer version retire`."""
    _steer(backfill, BackfillState.CANCELLED, json)


def _steer(backfill_id: int, state: BackfillState, json: bool) -> None:
    with open_workspace() as workspace:
        shown = _shown(workspace, workspace.catalog.backfills.steer(backfill_id, state))
    _print(shown, json)


def _shown(workspace: Workspace, backfill: "Backfill") -> dict[str, Any]:
    return to_json(workspace.catalog, backfill)


def _print(shown: Mapping[str, Any], json: bool, more: str = "") -> None:
    if json:
        print_json(shown)
        return
    out.print(
        f"backfill {shown['backfill_id']} of {shown['target_index']} is {shown['state']}: "
        f"{shown['done']} done, {shown['failed']} failed, {shown['total']} in all"
    )
    if more:
        out.print(more, markup=False)
