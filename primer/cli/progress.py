"""How far long work is, on stderr: a bar for a person, a line now and then for a log. Stdout stays free for the result."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from primer.cli.output import err

OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: not known)."""

LINE_SECONDS = 10.0
"""Least time between two lines in a log."""


@contextmanager
def show_progress() -> Iterator[OnProgress]:
    """Progress as it fits where stderr goes."""
    if not err.is_terminal:
        yield _lines()
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda words, done, total: progress.update(task, description=words, completed=done, total=total or None)


def _lines() -> OnProgress:
    began = time.monotonic()
    last, due = "", 0.0

    def on_progress(words: str, done: int, total: int) -> None:
        nonlocal last, due
        line, now = words if not total else f"{done} of {total} done, {words}", time.monotonic()
        if line == last or now < due:
            return
        last, due = line, now + LINE_SECONDS
        err.print(f"{now - began:6.0f} s  {line}", markup=False)

    return on_progress
