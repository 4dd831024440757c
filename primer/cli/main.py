"""The `primer` command: its groups, and the one place where an error becomes a line and an exit code."""

import logging
import sys
import warnings
from collections.abc import Sequence

import typer

from primer.cli import documents, operations, reviews, sources, syncs
from primer.cli.output import ERROR_EXIT
from primer_core.failures import PrimerError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Documents in, two indexes that agree out."
)
app.command()(operations.init)
app.command()(operations.doctor)
app.add_typer(sources.app, name="source")
app.command()(syncs.sync)
app.command()(documents.status)
app.command()(documents.show)
app.command()(documents.search)
app.add_typer(reviews.app, name="review")
app.add_typer(operations.dlq, name="dlq")
app.command()(operations.reconcile)
app.command()(operations.reset)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (the process's own arguments when None). A person's mistake is one line on stderr and exit 2, no traceback."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    try:
        app(arguments)
    except PrimerError as error:
        sys.stderr.write(f"primer: {error}\n")
        raise SystemExit(ERROR_EXIT) from None


if __name__ == "__main__":
    run()
