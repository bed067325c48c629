"""Checks of columns: weights, groups, missing values, and what no tree can use."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from fairproj.cli._task import MissingGroups, Task, cut_option, cut_text
from fairproj.data.checks import counted
from fairproj.data.periods import MISSING
from fairproj.data.ranges import propose_cuts
from fairproj.data.types import Array
from fairproj.estimators.base import ENCODING_PARAMETERS
from fairproj.io.table_types import (
    DATES,
    NUMBERS,
    USABLE,
    kind_words,
)

MOST_CATEGORIES = ENCODING_PARAMETERS["max_bins"]
MOST_NUMBERS = 12  # different ones in a sensitive column that is not cut into ranges


def check_weights(path: object, name: str, kind: str, weights: Array | None) -> None:
    """Refuse weights that are no numbers, negative or infinite; None stands for no numbers."""
    wanted = "weights must be numbers of zero or more"
    if weights is None:
        raise ValueError(f"column {name!r} of {path} holds {kind_words(kind)}; {wanted}")
    for problem, found in (
        ("negative", weights < 0),
        ("infinite", np.isinf(weights)),
        ("missing", np.isnan(weights)),
    ):
        if found.any():
            raise ValueError(
                f"column {name!r} of {path} has {counted(int(found.sum()), f'{problem} weight')} "
                f"in {counted(len(weights), 'row')}; {wanted}"
            )


def check_some_weight(path: object, name: str, largest: float) -> None:
    if not largest:
        raise ValueError(
            f"the weights in column {name!r} of {path} are zero in all rows; give some rows weight"
        )


def check_ranged(path: object, kinds: Mapping[str, str], task: Task) -> None:
    """Refuse ranges of columns that hold no numbers."""
    for name, cuts in task.ranges.items():
        if kinds[name] not in NUMBERS:
            raise ValueError(
                f"column {name!r} of {path} holds {kind_words(kinds[name])}, and only numbers "
                f"are cut into ranges; leave out {cut_text(cuts)!r}"
            )


def check_groups_of_training(
    path: object, task: Task, groups: pd.DataFrame, positive: Any, counts: Any = None
) -> None:
    """Refuse one group only, and what `check_ranges_named` refuses, with the same parameters."""
    check_ranges_named(path, task, groups, positive, counts)
    if len(groups.drop_duplicates()) < 2:
        found = " and ".join(f"{name} {groups[name].iloc[0]}" for name in task.sensitive)
        raise ValueError(
            f"all rows of {path} belong to one group ({found}), and a gap needs two; name another "
            "column with --sensitive, or give rows of other groups"
        )


def check_ranges_named(
    path: object, task: Task, groups: pd.DataFrame, positive: Any, counts: Any = None
) -> None:
    """Refuse a column of numbers each of which would be a group, and propose ranges.

    Parameters
    ----------
    groups : DataFrame
        The sensitive columns.
    positive : array of bool
        Whether the label is the positive one.
    counts : array of int, optional
        How many rows each of these stands for.
    """
    for name in columns_to_cut(task, groups):
        known = _known_values(task, groups[name])
        at = known.index
        counts = None if counts is None else np.asarray(counts)[at]
        raise ValueError(_many_values(path, name, known, np.asarray(positive)[at], counts))


def columns_to_cut(task: Task, groups: pd.DataFrame) -> list[str]:
    """The sensitive columns of numbers that are not cut into ranges, but should be."""
    return [
        name
        for name in task.sensitive
        if name not in task.ranges
        and groups[name].nunique() > MOST_NUMBERS
        and all(map(_is_number, _known_values(task, groups[name]).unique().tolist()))
    ]


def _known_values(task: Task, values: pd.Series) -> pd.Series:
    """The values but for the group of rows without one; numbered as the rows are."""
    values = values.reset_index(drop=True)
    return values[values != MISSING] if task.missing_groups is MissingGroups.own else values


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def _many_values(path: object, name: str, values: pd.Series, positive: Any, counts: Any) -> str:
    cuts = propose_cuts(values, positive, counts)
    advice = f"for example --sensitive {cut_option(name, cuts)}"
    if not cuts:
        advice = "but no cut of it leaves two rows of each label on both sides"
    return (
        f"the sensitive column {name!r} of {path} has {values.nunique():,} different numbers, and "
        f"each would be a group; cut it into ranges, {advice}"
    )


def check_missing(path: object, frame: pd.DataFrame, task: Task) -> None:
    """Refuse missing values of the label, of weights and times, and of groups by default."""
    groups = (
        {} if task.missing_groups is MissingGroups.own else _count_missing(frame, task.sensitive)
    )
    choice = "add --missing-groups drop or --missing-groups own"
    check_no_missing(path, groups, len(frame), f"{_FILL_GROUPS}, or {choice}")
    check_no_missing(path, _count_missing(frame, [task.label, *task.others]), len(frame))


def _count_missing(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, int]:
    return {name: int(frame[name].isna().sum()) for name in names}


_FILL_GROUPS = "drop those rows, or fill them with a value of their own"


def check_no_missing(
    path: object, missing: Mapping[str, int], n_rows: int, advice: str = "drop those rows"
) -> None:
    """Refuse columns that have missing values."""
    for name, count in missing.items():
        if count:
            raise ValueError(
                f"column {name!r} of {path} has {counted(count, 'missing value')} in "
                f"{counted(n_rows, 'row')}; {advice}"
            )


def check_kinds(path: object, kinds: Mapping[str, str], names: Sequence[str], advice: str) -> None:
    """Refuse columns that hold anything but numbers, booleans and text."""
    refused = [f"{name!r} ({kinds[name]})" for name in names if kinds[name] not in USABLE]
    if refused:
        raise ValueError(
            f"{path} has columns of kinds that cannot be used: {', '.join(refused)}; turn them "
            f"into numbers or text, {advice}"
        )


def _time_advice(kinds: Mapping[str, str], names: Iterable[str]) -> str:
    """A column of dates that may not be a feature may say which rows come last."""
    dates = [name for name in names if kinds[name] in DATES]
    return (
        f", or hold out the last rows by time with --time {shlex.quote(dates[0])}" if dates else ""
    )


def check_usable(
    path: object, kinds: Mapping[str, str], holds: Mapping[str, str], *, timed: bool = True
) -> None:
    """Refuse features that hold what no tree can use; the words of others are empty.

    ``timed`` says whether the command has an option --time.
    """
    refused = {name: words for name, words in holds.items() if words}
    if not refused:
        return
    shown = ", ".join(f"{name!r} ({words})" for name, words in refused.items())
    drop = " ".join(f"--drop {shlex.quote(name)}" for name in refused)
    features, them = ("a feature", "it") if len(refused) == 1 else ("features", "them")
    raise ValueError(
        f"{path} has {counted(len(refused), 'column')} that cannot be used as {features}: {shown}; "
        f"turn {them} into numbers or a few categories, or leave {them} out with {drop}"
        f"{_time_advice(kinds, refused) if timed else ''}"
    )


def unusable_kind(kind: str) -> str:
    """What a column of a kind that no tree can use holds; empty for other kinds."""
    return "" if kind in USABLE else kind_words(kind)


def many_categories(values: pd.Series) -> str:
    """What to say of text with more values than a tree can tell apart; empty if it has not."""
    n_values = values.nunique()
    return f"text with {n_values:,} different values" if n_values > MOST_CATEGORIES else ""


def unusable_advice(name: str, kind: str) -> str:
    """What to do about a column that cannot be a feature."""
    column = shlex.quote(name)
    rest = f"turn it into numbers, or leave it out with --drop {column}"
    if kind in DATES:
        return f"name it with --time {column} to hold out the last rows by time, {rest}"
    return rest
