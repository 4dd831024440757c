"""`primer events`: what was told of documents and could not be followed."""

from typing import Annotated

import typer

from primer.cli.output import JsonOption, out, print_json, print_table
from primer.workspace import open_workspace
from primer_core.failures import PrimerError

app = typer.Typer(no_args_is_help=True, help="Events that need a person.")
MOST = 1000


@app.command("dead")
def dead(json: JsonOption = False) -> None:
    """List the events that could not be followed, with the reason; at most 1,000."""
    with open_workspace() as workspace:
        names = [source.source_id for source in workspace.catalog.sources.all()]
        events = workspace.catalog.events.dead(names, 0, MOST)
    if json:
        fields = ("seq", "source_id", "event_id", "path", "op", "source_version", "event_time", "attempts", "error")
        print_json([{name: getattr(event, name) for name in fields} for event in events])
        return
    rows = [[event.seq, f"{event.source_id}/{event.path}", event.op, event.attempts, event.error] for event in events]
    print_table(["event", "document", "op", "attempts", "error"], rows)


@app.command("retry")
def retry(
    event: Annotated[int | None, typer.Argument(help="One event, by its number; with --all, every dead one.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every dead event.")] = False,
    json: JsonOption = False,
) -> None:
    """Put dead events back with fresh attempts. The next sync of their source looks at them again."""
    if (event is None) != every:
        raise PrimerError("say which: `primer events retry NUMBER` or `primer events retry --all`")
    with open_workspace() as workspace:
        names = [source.source_id for source in workspace.catalog.sources.all()]
        chosen = [event] if event is not None else [each.seq for each in workspace.catalog.events.dead(names, 0, MOST)]
        retried = workspace.catalog.events.retry(chosen)
    if json:
        print_json({"retried": retried})
    else:
        out.print(f"{retried} put back")
