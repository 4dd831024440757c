"""The `primer` command: its groups, and the one place where an error becomes a line and an exit code."""

import logging
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError, UsageError

from primer.cli import (
    access,
    api,
    backfills,
    deletes,
    documents,
    evals,
    events,
    operations,
    plans,
    proofs,
    replays,
    reviews,
    sources,
    store,
    syncs,
    tenants,
    versions,
)
from primer.cli.output import ERROR_EXIT
from primer_core.failures import PrimerError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Documents in, two indexes that agree out."
)
app.command()(operations.init)
app.command()(operations.doctor)
app.add_typer(tenants.app, name="tenant")
app.add_typer(sources.app, name="source")
app.command()(plans.plan)
app.command()(syncs.sync)
app.command()(documents.status)
app.command()(documents.show)
app.command()(documents.search)
app.command("eval")(evals.evaluation)
app.add_typer(access.app, name="acl")
app.add_typer(deletes.app, name="deletes")
app.command()(proofs.prove)
app.command()(proofs.purge)
app.add_typer(reviews.app, name="review")
app.add_typer(operations.dlq, name="dlq")
app.add_typer(events.app, name="events")
app.command()(replays.replay)
app.command()(operations.reconcile)
app.add_typer(versions.app, name="version")
app.add_typer(backfills.app, name="backfill")
app.command()(versions.promote)
app.command()(versions.rollback)
app.add_typer(store.app, name="store")
app.command()(operations.reset)
app.command()(api.api)
app.add_typer(api.token, name="token")


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (the process's own arguments when None). A person's mistake is one line on stderr and exit 2, no traceback."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    try:
        exit_code = app(arguments, standalone_mode=False)
    except PrimerError as error:
        _fail(str(error), ERROR_EXIT)
    except NoArgsIsHelpError as error:
        error.show()
        raise SystemExit(ERROR_EXIT) from None
    except UsageError as error:
        command = "primer" if error.ctx is None else error.ctx.command_path
        _fail(f"{error.format_message()} `{command} --help` tells how to use it", ERROR_EXIT)
    except ClickException as error:
        _fail(error.format_message(), ERROR_EXIT)
    except typer.Abort:
        _fail("stopped, nothing was done", ERROR_EXIT)
    raise SystemExit(exit_code if isinstance(exit_code, int) else 0)


def _fail(message: str, exit_code: int) -> NoReturn:
    """One line on stderr, whatever a library put into the message."""
    sys.stderr.write(f"primer: {' '.join(message.split())}\n")
    raise SystemExit(exit_code) from None
