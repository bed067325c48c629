"""What to predict from which columns, and the options that say so."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

import typer

from fairproj.data.checks import listing
from fairproj.data.periods import MISSING
from fairproj.data.ranges import check_cuts, number_text

DATA_GROUP = "Data"
Label = Annotated[
    str,
    typer.Option(
        "--label",
        help="The column to predict; it must hold two values.",
        rich_help_panel=DATA_GROUP,
    ),
]
Sensitive = Annotated[
    list[str],
    typer.Option(
        "--sensitive",
        help="A column that defines the groups. May be repeated: --sensitive sex --sensitive race "
        "compares every combination. Numbers are cut into ranges with --sensitive AGE:25,40,60.",
        rich_help_panel=DATA_GROUP,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The positive label; by default the larger one in sort order.",
        rich_help_panel=DATA_GROUP,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        help="A column to leave out of the features. May be repeated.", rich_help_panel=DATA_GROUP
    ),
]
UseSensitive = Annotated[
    bool,
    typer.Option(
        "--use-sensitive",
        help="Use the sensitive columns as features. A small gap often needs this, and it is often "
        "not allowed: you decide.",
        rich_help_panel=DATA_GROUP,
    ),
]


class MissingGroups(Enum):
    """What to do about rows whose group is not known."""

    error = "error"
    drop = "drop"
    own = "own"


MissingGroupsOption = Annotated[
    MissingGroups,
    typer.Option(
        "--missing-groups",
        help="What to do about rows without a value in a --sensitive column. error: stop. drop: "
        f"leave them out. own: they are a group of their own, {MISSING!r}.",
        rich_help_panel=DATA_GROUP,
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help="A column of weights for training; it is not used as a feature. Audits count each "
        "row once.",
        metavar="COLUMN",
        rich_help_panel=DATA_GROUP,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="A column of dates, timestamps or numbers: hold out the last rows by time rather "
        "than rows at random. It is not used as a feature.",
        metavar="COLUMN",
        rich_help_panel=DATA_GROUP,
    ),
]
TestSize = Annotated[
    float,
    typer.Option(
        help="Share of each group and label, or with --time of all rows, to hold out from training "
        "for audit and report; 0 to train on all rows.",
        rich_help_panel=DATA_GROUP,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        help="Seed of every random choice of rows.",
        min=0,
        max=2**32 - 1,
        rich_help_panel=DATA_GROUP,
    ),
]


@dataclass(frozen=True)
class Task:
    """What to predict from which columns.

    Attributes
    ----------
    label : str
    sensitive : list of str
    positive : str, optional
    dropped : list of str, optional
        Columns that are not features.
    use_sensitive : bool
    ranges : dict of str to list of float
        Where to cut sensitive columns of numbers, by their names.
    weights, time : str, optional
        The columns with weights for training, and with the times that rows are split by.
    missing_groups : MissingGroups
        What to do about rows without a value in a sensitive column.
    """

    label: str
    sensitive: list[str]
    positive: str | None = None
    dropped: list[str] | None = None
    use_sensitive: bool = False
    ranges: dict[str, list[float]] = field(default_factory=dict)
    weights: str | None = None
    time: str | None = None
    missing_groups: MissingGroups = MissingGroups.error

    def __post_init__(self) -> None:
        for cuts in self.ranges.values():
            check_cuts(cuts)

    @property
    def keys(self) -> list[str]:
        """The label and the sensitive columns."""
        return [self.label, *self.sensitive]

    @property
    def complete(self) -> list[str]:
        """The columns whose missing values leave a row out."""
        return self.sensitive if self.missing_groups is MissingGroups.drop else []

    @property
    def others(self) -> list[str]:
        """Further columns that are not features."""
        return [name for name in (self.weights, self.time) if name is not None]


def parse_sensitive(
    texts: Sequence[str], columns: Sequence[str]
) -> tuple[list[str], dict[str, list[float]]]:
    """Columns and their cuts from texts such as sex and AGE:25,40,60.

    A column whose whole name is the text comes first, so that names may have colons.
    """
    names, ranges = [], {}
    for text in texts:
        name, colon, cuts = text.rpartition(":")
        if text in columns or not colon:
            names.append(text)
            continue
        names.append(name)
        try:
            ranges[name] = check_cuts(cuts.split(","))
        except ValueError as error:
            raise ValueError(f"--sensitive {text}: {error}") from None
    return names, ranges


def check_task(task: Task) -> None:
    """Refuse a column that is named for two things."""
    if task.label in task.sensitive:
        raise ValueError(f"{task.label!r} cannot be both the label and sensitive")
    if len(set(task.sensitive)) < len(task.sensitive):
        raise ValueError(f"--sensitive names a column twice: {listing(task.sensitive)}")
    for option, name in (("--weights", task.weights), ("--time", task.time)):
        if name in task.keys:
            raise ValueError(f"{option} {name} is the label or sensitive; name another column")
    if task.weights is not None and task.weights == task.time:
        raise ValueError(f"{task.time!r} cannot be both --weights and --time")


def cut_option(name: str, cuts: Sequence[float]) -> str:
    """What --sensitive must be for these cuts."""
    return shlex.quote(name + cut_text(cuts))


def cut_text(cuts: Sequence[float]) -> str:
    """The cuts as --sensitive has them."""
    return ":" + ",".join(map(number_text, cuts))
