"""What the commands share: the app, errors as sentences, tables, JSON, and care for old files."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairproj import __version__
from fairproj.io.atomic import check_writable

NOT_MET, UNDECIDED = 3, 4

app = typer.Typer(
    help="Train classifiers whose error rates differ little between groups, and audit any "
    "classifier.\n\n"
    "Begin with: fairproj demo\n\n"
    "Exit codes: 0 done; 1 something is wrong with a file or a value; 2 wrong usage; 3 the gap is "
    "above --max-gap; 4 the rows are too few to tell; 130 stopped.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Command = TypeVar("Command", bound=Callable[..., None])

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]


def not_zero(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("it must be 1 or more, or -1 for all cores")
    return jobs


Jobs = Annotated[
    int, typer.Option(help="Fits at a time; -1 is one for each core.", callback=not_zero)
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairproj {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train classifiers whose error rates differ little between groups, and audit any."""


def in_a_sentence(command: Command) -> Command:
    """Errors of data, files and values end the command with one line and exit code 1."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", UserWarning)
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                command(*arguments, **options)
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(130) from None
        except FileNotFoundError as error:
            _fail(f"{error.filename} is not there" if error.filename else str(error))
        except (ImportError, OSError, TypeError, ValueError) as error:
            _fail(str(error) or type(error).__name__)

    return run  # type: ignore[return-value]


def _fail(sentence: str) -> None:
    typer.echo(f"error: {_clean(' '.join(sentence.split()))}", err=True)
    raise typer.Exit(1) from None


def _show_warning(message: Any, *_: Any) -> None:
    typer.echo(f"warning: {_clean(' '.join(str(message).split()))}", err=True)


# Control characters, which command a terminal; line breaks and marks that turn the direction of
# text, which mislead a reader; and halves of characters, which cannot be printed.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _clean(text: str) -> str:
    """Text of a file as a terminal may show it: what is unsafe by its code."""
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def refuse_to_overwrite(
    outputs: Iterable[Path | None], force: bool, inputs: Iterable[Path] = ()
) -> None:
    """Outputs must be new, or --force given; never an input, no two the same, all writable."""
    taken = {os.path.realpath(path): "an input" for path in inputs}
    for path in outputs:
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"{path} is {taken[place]} already; name another file")
        taken[place] = "an output"
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name a file")
        if path.is_file() and not force:
            raise ValueError(f"{path} is there already; add --force to replace it")
        if not path.absolute().parent.is_dir():
            raise ValueError(f"the folder {path.parent} is not there; make it first")
        check_writable(path)


_typed: list[str] | None = None


@contextmanager
def as_typed(arguments: list[str]) -> Iterator[None]:
    """For a command that runs others: these are then what was typed."""
    global _typed
    _typed, before = arguments, _typed
    try:
        yield
    finally:
        _typed = before


def typed_command() -> str:
    """What was typed, to be shown in reports."""
    return shlex.join(["fairproj", *(sys.argv[1:] if _typed is None else _typed)])


def print_json(content: Any) -> None:
    typer.echo(json.dumps(content, indent=1, allow_nan=False))


def say(text: str = "") -> None:
    """A line of text that a person reads; no markup is looked for in it."""
    Console(highlight=False, soft_wrap=False).print(_clean(text), markup=False)


def show_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Columns of numbers stand to the right."""
    cells = [[_clean(str(cell)) for cell in row] for row in rows]
    table = Table(
        title=Text(_clean(title)),
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
