"""`primer init`, `doctor`, `dlq`, `reconcile` and `reset`: setting up, looking after and starting over."""

from typing import Annotated

import typer

from primer.cli.output import DIFFERENCE_EXIT, JsonOption, err, out, print_json, print_table
from primer.workspace import drives_elsewhere, erase, open_workspace
from primer_core.failures import NEXT_ACTION, PrimerError, Reason
from primer_core.stages import FETCH
from primer_resources.catalog.lookup import DeadLetter
from primer_resources.settings import load_settings

dlq = typer.Typer(no_args_is_help=True, help="Dead letters: documents that need a person.")
SAMPLE = 10


def init() -> None:
    """Make the deployment in PRIMER_HOME, or bring it up to date. Repeating it changes nothing."""
    with open_workspace() as workspace:
        workspace.create()
        version = workspace.catalog.deployments.live()
        out.print(f"deployment ready in {workspace.settings.home}: index version {version.name}, {workspace.settings.buckets} buckets")


def doctor(json: JsonOption = False) -> None:
    """Check the deployment and its surroundings. Exit 1 where something is wrong."""
    from primer.doctor import Severity, diagnose

    checks = diagnose()
    if json:
        print_json(checks)
    else:
        marks = {Severity.OK: "[green]ok[/green]", Severity.WARNING: "[yellow]warning[/yellow]", Severity.ERROR: "[red]error[/red]"}
        for check in checks:
            out.print(f"{marks[check.severity]} {check.name}: {check.message}")
            if check.remedy:
                out.print(f"   {check.remedy}", markup=False)
    if any(check.severity is Severity.ERROR for check in checks):
        raise typer.Exit(DIFFERENCE_EXIT)


@dlq.command("list")
def dlq_list(
    source: Annotated[str | None, typer.Option(help="Only of this source.")] = None,
    json: JsonOption = False,
) -> None:
    """List dead letters with their reasons."""
    with open_workspace() as workspace:
        if source is not None:
            workspace.catalog.sources.get(source)
        letters = workspace.catalog.lookup.dead_letters(source_id=source)
    if json:
        print_json([_letter(letter) for letter in letters])
        return
    print_table(
        ["document", "stage", "reason", "attempts", "error"],
        [[f"{x.source}/{x.path}", x.stage, x.reason, x.attempts, x.error] for x in letters],
    )
    for reason in sorted({letter.reason for letter in letters} & {reason.value for reason in Reason}):
        out.print(f"{reason}: {NEXT_ACTION[Reason(reason)]}", markup=False)


def _letter(letter: DeadLetter) -> dict[str, object]:
    names = ("doc_id", "uri", "path", "stage", "reason", "error", "attempts", "source")
    action = NEXT_ACTION[Reason(letter.reason)] if letter.reason in set(Reason) else ""
    return {**{name: getattr(letter, name) for name in names}, "next_action": action}


@dlq.command("retry")
def dlq_retry(
    doc: Annotated[str | None, typer.Argument(help="One document; with --all, every dead letter.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every dead letter.")] = False,
    json: JsonOption = False,
) -> None:
    """Put dead letters back to the stage where they died, with fresh attempts. The next sync or sweep takes them up."""
    from primer.cli.documents import resolve

    if (doc is None) != every:
        raise PrimerError("say which: `primer dlq retry DOC` or `primer dlq retry --all`")
    with open_workspace() as workspace:
        doc_id = None if doc is None else resolve(workspace, doc)
        letters = workspace.catalog.lookup.dead_letters(doc_id=doc_id)
        moved = workspace.catalog.dead_letters.retry([letter.job_id for letter in letters])
        workspace.catalog.sources.list_next({letter.source for letter in letters if letter.stage == FETCH})
    if json:
        print_json({"retried": moved, "wait_for_sync": len(letters) - moved})
        return
    out.print(f"{moved} put back")
    if len(letters) > moved:
        out.print(f"{len(letters) - moved} were never fetched: the next sync of their source lists it in full and tries them again")


def reconcile(json: JsonOption = False) -> None:
    """Compare the id sets of catalog, vector index and keyword index. Exit 1 on any difference."""
    from primer_resources.reconciling import reconcile as compare

    with open_workspace() as workspace:
        version = workspace.catalog.deployments.live()
        report = compare(workspace.catalog, version, workspace.toolkit.of(version))
    if json:
        print_json(report.to_json())
    else:
        out.print(
            f"{report.expected} chunks, {report.vector_rows} vector rows, {report.keyword_rows} keyword rows, {report.passing} passing"
        )
        for name, found in report.differences.items():
            out.print(f"{name}: {len(found)}" + (f", such as {', '.join(found[:SAMPLE])}" if found else ""), markup=False)
    if not report.agrees:
        raise typer.Exit(DIFFERENCE_EXIT)


def reset(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Remove everything that Primer keeps in PRIMER_HOME and in its catalog. The sources' own files are not touched."""
    settings = load_settings()
    if not yes:
        typer.confirm(f"Remove catalog, indexes, store and run history of {settings.home.resolve()}?", abort=True)
    elsewhere = drives_elsewhere(settings)
    erase(settings)
    for place in elsewhere:
        err.print(f"note: what is on drive {place} stays; remove it there", markup=False)
    out.print(f"all that Primer kept in {settings.home} is gone; `primer init` makes a new deployment")
