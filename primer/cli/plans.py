"""`primer plan`: what a sync of a source would do, without doing it."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from primer.cli.output import JsonOption, out, print_json, print_table, visible
from primer.workspace import Workspace, open_workspace
from primer_assets.plan_file import write_plan
from primer_assets.plan_making import Planner
from primer_core.sync_plan import PlanOperation, SyncPlan
from primer_resources.connectors.registry import Connectors

SHOWN_STEPS = 20


def plan(
    source: Annotated[str, typer.Argument(help="The source.")],
    out_file: Annotated[Path | None, typer.Option("--out", help="Write the plan to this file, for `primer sync --plan`.")] = None,
    json: JsonOption = False,
) -> None:
    """Show what a sync of a source would do. Changed documents are fetched to be hashed; nothing that Primer keeps is changed."""
    with open_workspace() as workspace:
        made = _make(workspace, source)
    if out_file is not None:
        write_plan(out_file, made)
    if json:
        print_json(_to_json(made))
    else:
        _print(made, out_file)


def _make(workspace: Workspace, name: str) -> SyncPlan:
    from primer_resources.parser.ocr_pages import count_ocr_pages

    source, settings = workspace.catalog.sources.get(name), workspace.settings
    workspace.catalog.tenants.require_active(source.tenant_id)
    planner = Planner(workspace.catalog, workspace.store, workspace.toolkit.expander, settings)
    with closing(Connectors(settings.source_folders).open(source)) as connector:
        return planner.plan(source, connector, lambda path, title: count_ocr_pages(workspace.toolkit.pool, path, title))


def _to_json(made: SyncPlan) -> dict[str, Any]:
    """What a person or a script asks of a plan; the file has what applying it needs besides."""
    names = ("source", "made_at", "verdict")
    lists = ("problems", "reasons", "steps", "acls")
    return {
        **{name: getattr(made, name) for name in names},
        "learned_by": "change feed" if made.why_listed is None else f"full listing: {made.why_listed}",
        **{name: list(getattr(made, name)) for name in lists},
        "counts": made.counts(),
        "figures": dict(made.figures),
        "estimate": made.estimate,
    }


def _print(made: SyncPlan, out_file: Path | None) -> None:
    counts = made.counts()
    out.print(f"{made.source}: " + ", ".join(f"{counts[operation]} {operation.value}" for operation in PlanOperation), markup=False)
    out.print(f"learned by {'its change feed' if made.why_listed is None else f'a full listing: {made.why_listed}'}", markup=False)
    if made.verdict is not None:
        out.print(f"deletes: {made.verdict}{': ' if made.reasons else ''}{'; '.join(made.reasons)}", markup=False)
    for problem in made.problems:
        out.print(f"problem: {visible(problem)}", markup=False)
    for acl in made.acls:
        out.print(f"permissions of {visible(acl.scope) or 'the source'}: {', '.join(acl.groups) or 'nobody'}", markup=False)
    cost = made.estimate
    out.print(f"estimated: {cost.tokens_to_embed} tokens to embed, {cost.ocr_pages} pages of OCR, {cost.core_seconds:g} core-seconds")
    for basis in cost.basis:
        out.print(f"  {basis}", markup=False)
    print_table(["operation", "document", "from"], [[s.operation, s.path, s.old_path or ""] for s in made.steps[:SHOWN_STEPS]])
    if len(made.steps) > SHOWN_STEPS:
        out.print(f"and {len(made.steps) - SHOWN_STEPS} more; --json has all")
    if out_file is not None:
        out.print(f"`primer sync --plan {out_file}` applies exactly this", markup=False)
