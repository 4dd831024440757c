"""How commands print: JSON with stable field names for scripts, plain words and tables for people. Errors are one line on stderr."""

import dataclasses
import json
import re
import sys
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

ERROR_EXIT = 2
DIFFERENCE_EXIT = 1

WIDE = 240
"""Columns where nobody looks: a table in a log or a pipe is not folded."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)
err = Console(stderr=True, highlight=False, soft_wrap=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON with stable field names.")]


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, StrEnum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(value, default=_plain, ensure_ascii=False, indent=2) + "\n")


def visible(text: str) -> str:
    """Text on one line of a terminal: line breaks and control characters, which a file's name may hold, are shown as escapes."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def print_table(columns: list[str], rows: list[list[Any]]) -> None:
    """Print rows under column names."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else escape(visible(str(cell))) for cell in row))
    out.print(table)
