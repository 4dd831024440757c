"""`primer sync`: read the sources and index what changed, to the end."""

from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from primer.cli.output import JsonOption, err, out, print_json
from primer.workspace import open_workspace
from primer_core.failures import PrimerError


def sync(
    source: Annotated[str | None, typer.Argument(help="One source; all of them when left out.")] = None,
    json: JsonOption = False,
) -> None:
    """Sync sources to the end, through Dagster's own materialisation."""
    from primer.materialise import Materialiser
    from primer.syncing import FIGURES, WORDS, Syncing

    with open_workspace() as workspace:
        catalog = workspace.catalog
        names = [catalog.sources.get(source).source_id] if source else [each.source_id for each in catalog.sources.all()]
        if not names and not catalog.jobs.unfinished():
            raise PrimerError("there is no source yet; add one with `primer source add PATH --groups GROUP`")
        workspace.toolkit.of(catalog.deployments.live())
        workspace.add_partitions()
        overrides = {"settings": workspace.settings, "catalog": catalog, "store": workspace.store, "toolkit": workspace.toolkit}
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=err, transient=True, disable=json or not err.is_terminal) as progress:
            task = progress.add_task("starting", total=None)

            def on_progress(words: str, done: int, total: int) -> None:
                progress.update(task, description=words, completed=done, total=total or None)

            syncing = Syncing(catalog, workspace.settings, Materialiser(workspace.instance, overrides), on_progress)
            results = syncing.run(names)
    if json:
        shown = [result.to_json() for result in results]
        totals = {word: sum(result.counts[word] for result in results) for word in (*WORDS, *FIGURES)}
        seconds = max((result.seconds for result in results), default=0.0)
        print_json({**totals, "seconds": round(seconds, 2), "sources": shown})
        return
    for result in results:
        words = ", ".join(f"{result.counts[word]} {word.replace('_', '-')}" for word in WORDS)
        figures = ", ".join(f"{result.counts[name]} {name.replace('_', ' ')}" for name in FIGURES)
        out.print(f"[bold]{result.source}[/bold]: {words}\n  {figures}, {result.seconds:.1f} s")
        for note in result.notes:
            err.print(f"  {note}", markup=False)
        if result.counts["failed"]:
            err.print("  `primer dlq list` says why documents failed")
