"""Text, tables and JSON on the terminal. rich is imported when something is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from fairproj.io.text import escape

# Below, reading takes a moment only.
_MANY_ROWS = 500_000
_MANY_BYTES = 200_000_000


def print_json(content: Any) -> None:
    typer.echo(json.dumps(content, indent=1, allow_nan=False))


def print_line(text: str = "") -> None:
    """Print a line as it is, without rich's markup."""
    from rich.console import Console

    Console(highlight=False, soft_wrap=False).print(escape(text), markup=False, emoji=False)


def show_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; columns of numbers are aligned to the right. Heads may have several lines."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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
        numbers = all(_is_number(row[position]) for row in cells)
        whole = numbers and not any(" " in row[position] for row in cells)
        justify: Any = "right" if numbers and position else "left"
        column = Text("\n".join(map(escape, name.split("\n"))))
        table.add_column(column, justify=justify, no_wrap=whole)
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    console.print(table)
    console.print()


def _is_number(cell: str) -> bool:
    """Whether a cell begins with a number, which may have a sign, or is empty."""
    return cell.lstrip("+-")[:1].isdigit() or not cell


@contextmanager
def busy(text: str, n_bytes: int) -> Iterator[None]:
    """Show on a terminal what is done while many bytes are read."""
    from rich.console import Console

    console = Console(stderr=True)
    if n_bytes < _MANY_BYTES or not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


@contextmanager
def row_bar(title: str, n_rows: int, *, show: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar over many rows, which disappears; yields the function to call with rows done."""
    if not show or n_rows < _MANY_ROWS:
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*Progress.get_default_columns(), console=console, transient=True) as progress:
        task = progress.add_task(title, total=n_rows)
        yield lambda rows: progress.update(task, advance=rows)
