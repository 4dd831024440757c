"""`primer sync`: read the sources and index what changed, to the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from primer.cli.output import JsonOption, err, out, print_json, visible
from primer.cli.progress import show_progress
from primer.interrupts import run_interruptibly
from primer.workspace import Workspace, open_workspace
from primer_assets.plan_applying import check_fits
from primer_assets.plan_file import read_plan
from primer_core.failures import PrimerError
from primer_core.sync_plan import SyncPlan
from primer_resources.catalog.catalog import Catalog
from primer_resources.scratch import remove_all

if TYPE_CHECKING:
    from primer.syncing import SyncResult

STOPPED = "interrupted; what is done stays done, `primer sync` goes on from there"


def sync(
    source: Annotated[str | None, typer.Argument(help="One source; all of them when left out.")] = None,
    plan: Annotated[Path | None, typer.Option(help="Apply exactly this plan of `primer plan --out`, or refuse.")] = None,
    json: JsonOption = False,
) -> None:
    """Sync sources to the end, through Dagster's own materialisation. Ctrl-C ends it within seconds, and nothing is lost."""
    planned = None if plan is None else read_plan(plan)
    if planned is not None and source not in (None, planned.source):
        raise PrimerError(f"--plan {plan} is of source {planned.source}, not of {source}; name that one, or none")
    with open_workspace() as workspace:
        if planned is not None:
            source = check_fits(workspace.catalog, planned).source_id
        results = run_interruptibly(lambda: _sync(workspace, source, planned), lambda: give_back(workspace), STOPPED)
    if json:
        _print_json(results)
    else:
        _print(results)
    failed = [f"source {result.source}: {result.error}" for result in results if result.error is not None]
    if failed:
        raise PrimerError("; ".join(failed))


def _sync(workspace: Workspace, source: str | None, plan: SyncPlan | None) -> "list[SyncResult]":
    from primer.materialise import Materialiser
    from primer.syncing import Syncing

    catalog = workspace.catalog
    names = _names(catalog, source)
    if not catalog.sources.all() and not catalog.queue.unfinished():
        raise PrimerError("there is no source yet; add one with `primer source add PATH --groups GROUP`")
    workspace.toolkit.of(catalog.deployments.live())
    workspace.add_partitions()
    overrides: dict[str, Any] = {"settings": workspace.settings, "catalog": catalog, "store": workspace.store, "toolkit": workspace.toolkit}
    if plan is not None:
        overrides["plan"] = plan
    with show_progress() as on_progress:
        return Syncing(catalog, workspace.settings, Materialiser(workspace.instance, overrides), on_progress).run(names)


def _names(catalog: Catalog, source: str | None) -> list[str]:
    """The sources to read. Raises PrimerError for one that is named and whose tenant is inactive; otherwise such are passed over."""
    if source:
        found = catalog.sources.get(source)
        catalog.tenants.require_active(found.tenant_id)
        return [found.source_id]
    names = [each.source_id for each in catalog.sources.active()]
    for each in catalog.sources.all():
        if each.source_id not in names:
            err.print(f"note: source {each.source_id} is not read: its tenant {each.tenant_id} is inactive", markup=False)
    return names


def give_back(workspace: Workspace) -> None:
    """End the workers, remove private copies, and put back what the runs of this process hold, as far as it came."""
    from primer.dead_runs import give_back_own_runs

    err.show_cursor(True)
    if workspace.has_opened("toolkit"):
        workspace.toolkit.kill_workers()
    remove_all()
    if workspace.has_opened("catalog") and workspace.has_opened("instance"):
        give_back_own_runs(workspace.instance, workspace.catalog)


def _print_json(results: "Sequence[SyncResult]") -> None:
    from primer.syncing import FIGURES, WORDS

    totals = {word: sum(result.counts[word] for result in results) for word in (*WORDS, *FIGURES)}
    seconds = max((result.seconds for result in results), default=0.0)
    print_json({**totals, "seconds": round(seconds, 2), "sources": [result.to_json() for result in results]})


def _print(results: "Sequence[SyncResult]") -> None:
    from primer.syncing import FIGURES, WORDS

    for result in results:
        words = ", ".join(f"{result.counts[word]} {word.replace('_', '-')}" for word in WORDS)
        figures = ", ".join(f"{result.counts[name]} {name.replace('_', ' ')}" for name in FIGURES)
        out.print(f"[bold]{result.source}[/bold]: {words}\n  {figures}, {result.seconds:.1f} s")
        for note in result.notes:
            err.print(f"  {visible(note)}", markup=False)
        if result.counts["failed"]:
            err.print("  `primer dlq list` says why documents failed")
