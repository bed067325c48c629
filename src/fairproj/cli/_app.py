"""The Typer application, options that several commands have, and error messages."""

from __future__ import annotations

import functools
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fairproj import __version__
from fairproj.data.user_warning import UserNote
from fairproj.io.text import escape

INTERRUPTED, USAGE = 130, 2

_UsageError: Any = typer.BadParameter.__mro__[1]  # typer's own, or that of click in older versions

_openings: dict[str, str] = {}


def add_command(name: str, opening: str) -> None:
    """Make a command of the function ``name`` in the module ``_name``.

    The module is imported when the command runs; the opening of its docstring is what the list of
    commands shows.
    """
    _openings[name] = opening


@contextmanager
def _usage_errors(ctx: Any) -> Iterator[None]:
    """Print an error in the options as one line, as errors in files are, and exit with code 2."""
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        words = " ".join(error.format_message().split()).rstrip(".")
        if option := re.match(r"Invalid value for (.*?): ", words):
            words = option[1].replace("'", "") + ": " + words[option.end() :]
        words = re.sub(r"is not one of ('[^']*')$", r"must be \1", words)
        words = escape(words)
        if "; " not in words and not words.endswith("?"):  # it says already what to do
            command = "fairproj" if ctx.parent is None else f"fairproj {ctx.info_name}"
            words += f"; see {command} --help"
        typer.echo(f"error: {words}", err=True)
        raise typer.Exit(USAGE) from None


class LazyGroup(TyperGroup):
    """The list of commands; a command is imported when it runs or shows its own help."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, opening in _openings.items():
            self.add_command(TyperCommand(name, short_help=opening))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _usage_errors(ctx):
            return list(super().parse_args(ctx, args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        with _usage_errors(ctx):
            name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_command(name), rest


@functools.cache
def load_command(name: str) -> Any:
    """A command with its options, from its module."""
    try:
        function = getattr(import_module(f"fairproj.cli._{name}"), name)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    # While pyarrow reads a CSV file it has signal handlers of its own, which lose a SIGTERM now
    # and then. Without them, a signal waits until the file or the chunk is read.
    if arrow := sys.modules.get("pyarrow"):
        arrow.enable_signal_handlers(False)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.command(name, cls=GroupedCommand)(function)
    return get_command(alone)


app = typer.Typer(
    cls=LazyGroup,
    help="Train classifiers whose approval rates, or error rates, differ little between groups, "
    "and audit any classifier.\n\n"
    "Start with: fairproj demo\n\n"
    "Exit codes: 0 success; 1 an error in a file or a value; 2 wrong usage; 3 the gap is above "
    "--max-gap; 4 too few rows to tell whether it is; 5 the model is not useful; 6 no "
    "solution found; 130 interrupted; 129 and 143 ended by SIGHUP and SIGTERM.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Command = TypeVar("Command", bound=Callable[..., None])


class GroupedCommand(TyperCommand):
    """A command that lists its options in groups, and refuses options that are given twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _usage_errors(ctx):
            return self._parse_args(ctx, args)

    def _parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        values, _, given = self.make_parser(ctx).parse_args(list(args))
        params: list[Any] = list(self.get_params(ctx))
        for option in params:
            once = not (getattr(option, "multiple", False) or getattr(option, "is_flag", False))
            if once and option.param_type_name == "option" and given.count(option) > 1:
                raise typer.BadParameter("it is given more than once; give it once", ctx, option)
        try:
            return list(super().parse_args(ctx, args))
        except typer.BadParameter as error:
            name = getattr(error.param, "name", None) or ""
            error.message = _plain_words(error.message, values.get(name))
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                default = "Arguments" if param.param_type_name == "argument" else "Options"
                name = getattr(param, "rich_help_panel", None) or default
                groups.setdefault(name, []).append((_without_list(record[0]), record[1]))
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)


def _without_list(option: str) -> str:
    """An option that may be repeated takes one value at a time: <list[str]> is <str>."""
    return re.sub(r"<list\[(\w+)\]>", lambda kind: f"<{kind[1].lower()}>", option)


def _plain_words(message: str, found: Any) -> str:
    """The message about a value, in words that name the value and not the library that checks it.

    typer passes on what pydantic says, such as ``Input should be less than or equal to 1``.
    """
    message = message.removeprefix("Value error, ")
    wanted = re.fullmatch(r"Input (should be .*?)(, unable to .*)?", message)
    if wanted is None:
        return message
    return f"{', '.join(found) if isinstance(found, list) else found} {wanted[1]}"


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for scripts.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


def check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("it must be 1 or more, or -1 for all cores")
    return jobs


Jobs = Annotated[
    int,
    typer.Option(help="Number of fits to run at a time; -1 for all cores.", callback=check_jobs),
]


def check_statistic(name: Any) -> Any:
    """The names in the registry of statistics that are given by their names or aliases."""
    from fairproj.constraints import find_statistic

    if name is None or isinstance(name, list):
        return None if name is None else [check_statistic(one) for one in name]
    try:
        return find_statistic(name).name
    except ValueError:
        raise _unknown_statistic(name, constraints=False) from None


def _unknown_statistic(name: str, *, constraints: bool) -> typer.BadParameter:
    from fairproj.constraints import statistic_names

    known = ", ".join(statistic_names(constraints=constraints))
    return typer.BadParameter(f"{name!r} is unknown; use one of {known}")


def check_constraint(name: Any) -> Any:
    """The same of statistics that can be constrained."""
    from fairproj.constraints import find_statistic, statistic_names

    if name is None or isinstance(name, list):
        return None if name is None else [check_constraint(one) for one in name]
    try:
        statistic = find_statistic(name)
    except ValueError:
        raise _unknown_statistic(name, constraints=True) from None
    if not statistic.constrainable:
        raise typer.BadParameter(
            f"{statistic.name!r} can be reported, but not constrained; use one of "
            f"{', '.join(statistic_names(constraints=True))}"
        )
    return statistic.name


def statistic_option(help_text: str, group: str | None = None, *, constraint: bool = False) -> Any:
    """An option that takes every name of the registry, or of what can be constrained."""
    from fairproj.constraints import statistic_names

    return typer.Option(
        help=f"{help_text} One of {', '.join(statistic_names(constraints=constraint))}.",
        metavar="NAME",
        callback=check_constraint if constraint else check_statistic,
        rich_help_panel=group,
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairproj {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options of ``fairproj`` itself."""


def report_errors(command: Command) -> Command:
    """Print errors in files and values as one line and exit with code 1.

    Other exceptions, such as TypeError, are defects of the program and keep their traceback.
    """

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        from fairproj.io.atomic import new_files

        try:
            with warnings.catch_warnings(), new_files():
                warnings.simplefilter("default", UserWarning)
                warnings.showwarning = _warning_printer()
                command(*arguments, **options)
        except KeyboardInterrupt as interrupt:
            words = escape(str(interrupt))
            dot = "" if words.startswith("after ") else "."
            typer.echo(f"Interrupted{dot} {words}".rstrip(), err=True)
            raise typer.Exit(INTERRUPTED) from None
        except FileNotFoundError as error:
            named = f"{error.filename} does not exist; give the path of a file that does"
            _fail(named if error.filename else str(error))
        except (ImportError, OSError, ValueError) as error:
            _fail(str(error) or type(error).__name__)
        except MemoryError:
            _fail("memory ran out; give the process more memory, or use fewer rows or columns")

    return run  # type: ignore[return-value]


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {escape(' '.join(message.split()))}", err=True)
    raise typer.Exit(1) from None


def _warning_printer() -> Callable[..., None]:
    """Print each sentence once, however many fits warn of it."""
    printed = set()

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        sentence = escape(" ".join(str(message).split()))
        if sentence not in printed:
            printed.add(sentence)
            kind = "note" if issubclass(category, UserNote) else "warning"
            typer.echo(f"{kind}: {sentence}", err=True)

    return show


_arguments: ContextVar[list[str] | None] = ContextVar("arguments", default=None)


@contextmanager
def use_arguments(arguments: list[str]) -> Iterator[None]:
    """Make `command_line` return these arguments, in a command that runs other commands."""
    token = _arguments.set(arguments)
    try:
        yield
    finally:
        _arguments.reset(token)


def command_line() -> str:
    """The command that is running, for reports and model files."""
    arguments = _arguments.get()
    return shlex.join(["fairproj", *(sys.argv[1:] if arguments is None else arguments)])
