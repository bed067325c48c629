"""Text, tables and JSON on the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Control characters, which a terminal would obey; line breaks and marks that change the direction
# of text, which mislead a reader; and surrogates, which cannot be printed.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escape(text: str) -> str:
    """Replace characters that are not safe in a terminal by their escape codes."""
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], text)


def print_json(content: Any) -> None:
    typer.echo(json.dumps(content, indent=1, allow_nan=False))


def print_line(text: str = "") -> None:
    """Print a line as it is, without rich's markup."""
    Console(highlight=False, soft_wrap=False).print(escape(text), markup=False)


def show_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; columns of numbers are aligned to the right."""
    cells = [[escape(str(cell)) for cell in row] for row in rows]
    table = Table(
        title=Text(escape(title)),
        title_justify="left",
        title_style="bold",
        box=None,
        show_header=any(head),
        padding=(0, 2, 0, 0),
    )
    for position, name in enumerate(head):
        numbers = all(row[position][:1].isdigit() for row in cells)
        table.add_column(name, justify="right" if numbers and position else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    console.print(table)
    console.print()
