"""Features, labels and groups from a data file, and the split into training and held-out rows."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from numbers import Real
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from fairproj.data.checks import check_groups, counted, in_words, listing
from fairproj.data.periods import MISSING
from fairproj.data.ranges import check_cuts, cut_columns, number_text, propose_cuts
from fairproj.data.time_split import TimeCut, Times
from fairproj.data.types import Array, Codes
from fairproj.data.user_warning import UserNote, warn_user
from fairproj.estimators.base import ENCODING_PARAMETERS
from fairproj.io.number_texts import Problem
from fairproj.io.table_types import (
    DATES,
    NUMBERS,
    USABLE,
    is_text,
    kind_words,
    with_date_texts,
)
from fairproj.io.tables import DataFile, check_columns
from fairproj.selection import fair_train_test_split

DATA_GROUP = "Data"
_MOST_LABELS = 5  # different ones that may be one label too many
MOST_CATEGORIES = ENCODING_PARAMETERS["max_bins"]
MOST_NUMBERS = 12  # different ones in a sensitive column that is not cut into ranges

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


@dataclass(frozen=True)
class Rows:
    """Rows of a file, a description of which ones, and whether the model was trained on them.

    ``decimals`` are the signs before decimals of columns of numbers, where a CSV file has them.
    """

    file: DataFile
    frame: pd.DataFrame
    X: pd.DataFrame
    y: NDArray[Any]
    groups: pd.DataFrame
    weight: Array | None
    positive: Any
    kinds: dict[str, str]
    sha256: str
    decimals: dict[str, str] = field(default_factory=dict)
    which: str = ""
    seen: bool | None = None

    def take(self, rows: Any, which: str, seen: bool | None) -> Rows:
        frame, X, groups = (
            part.iloc[rows].reset_index(drop=True) for part in (self.frame, self.X, self.groups)
        )
        weight = None if self.weight is None else self.weight[rows]
        taken = replace(self, frame=frame, X=X, y=self.y[rows], groups=groups, weight=weight)
        return replace(taken, which=which, seen=seen)


def read_rows(
    path: Path,
    task: Task,
    features: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    sha256: str | None = None,
) -> Rows:
    """Read the columns of a task; by default all columns that it does not name are features.

    ``sha256`` is the checksum of the file, where it is known already.
    """
    file = DataFile.from_path(path)
    unused = task.dropped or []
    if features is not None:
        used = {*features, *task.keys, *task.others}
        unused = [name for name in file.column_names() if name not in used]
    known = without_numbers(types or {}, task)
    frame, kinds, problems, decimals = file.read_any_frame(known, unused)
    for name in [*task.keys, *task.others, *(features or [])]:
        if name in problems:
            raise file.unread(problems[name])
    rows = make_rows(file, frame, kinds, task, features, sha256)
    used = {*rows.kinds, *task.keys, *task.others}
    rows = replace(rows, decimals={name: decimals[name] for name in decimals if name in used})
    if features is None:
        check_features(rows, problems)
    return rows


def make_rows(
    file: DataFile,
    frame: pd.DataFrame,
    kinds: Mapping[str, str],
    task: Task,
    features: Sequence[str] | None = None,
    sha256: str | None = None,
) -> Rows:
    """The columns of a task, out of the table of a file."""
    path = file.path
    named = [*(features or task.dropped or []), *task.others]
    check_columns(path, list(frame.columns), [*task.keys, *named])
    check_task(task)
    frame = with_complete_rows(path, frame, kinds, task.complete)
    check_missing(path, frame, task)
    check_kinds(path, kinds, task.keys, "give another column")
    check_ranged(path, kinds, task)
    if features is None:
        features = choose_features(list(frame.columns), task, path)
        kinds = with_date_texts(kinds, frame, features)
    y = frame[task.label].to_numpy()
    return Rows(
        file,
        frame,
        frame[list(features)],
        y,
        _read_groups(frame, kinds, task),
        _read_weights(path, frame, kinds, task),
        positive_label(pd.unique(y).tolist(), task),
        {name: kinds[name] for name in features},
        sha256 or file.sha256(),
    )


def with_complete_rows(
    path: object, frame: pd.DataFrame, kinds: Mapping[str, str], names: Sequence[str]
) -> pd.DataFrame:
    """The rows in which these columns have values."""
    missing = frame[list(names)].isna().any(axis=1)
    if not missing.any():
        return frame
    warn_user(left_out_words(path, names, int(missing.sum()), len(frame)), UserNote)
    return known_rows(frame, kinds, names, ~missing)


def known_rows(
    frame: pd.DataFrame, kinds: Mapping[str, str], names: Sequence[str], known: pd.Series
) -> pd.DataFrame:
    """The rows where columns have values; missing values had made whole numbers floats."""
    frame = frame[known].reset_index(drop=True)
    return frame.astype({name: "int64" for name in names if kinds[name] == "whole number"})


def left_out_words(path: object, names: Sequence[str], missing: int, n_rows: int) -> str:
    """A note on rows that are left out, or an error if all are."""
    where = f"{missing:,} of {counted(n_rows, 'row')} of {path} without a value of "
    where += in_words([repr(name) for name in names], "or")
    if missing == n_rows:
        raise ValueError(f"{where} would be left out, and none is left; fill in the groups")
    return f"{where} {'is' if missing == 1 else 'are'} left out"


def _read_groups(frame: pd.DataFrame, kinds: Mapping[str, str], task: Task) -> pd.DataFrame:
    groups = cut_columns(frame[task.sensitive], task.ranges)
    if task.missing_groups is not MissingGroups.own:
        return groups
    return groups.assign(**{name: _named(groups[name], kinds[name]) for name in task.sensitive})


def _named(values: pd.Series, kind: str) -> pd.Series:
    """Groups of a column, of which missing values are one."""
    if not values.isna().any():
        return values
    if isinstance(values.dtype, pd.CategoricalDtype):
        new = [MISSING] if MISSING not in values.cat.categories else []
        return values.cat.add_categories(new).fillna(MISSING)
    known = values.dropna()
    if kind == "whole number":  # missing values made them floats
        known = known.astype("int64")
    return known.astype(object).reindex(values.index, fill_value=MISSING)


def _read_weights(
    path: object, frame: pd.DataFrame, kinds: Mapping[str, str], task: Task
) -> Array | None:
    name = task.weights
    if name is None:
        return None
    weights: Any = None
    if kinds[name] in NUMBERS:
        weights = frame[name].to_numpy(dtype=float)
    check_weights(path, name, kinds[name], weights)
    check_some_weight(path, name, weights.max())
    return np.asarray(weights)


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


def without_numbers(types: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Types of features; groups keep their names in the file where a model reads numbers."""
    named = [name for name in task.sensitive if name not in task.ranges]
    numbers = {name for name in named if not is_text(types.get(name))}
    return {name: kind for name, kind in types.items() if name not in numbers}


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


def check_ranged(path: object, kinds: Mapping[str, str], task: Task) -> None:
    """Refuse ranges of columns that hold no numbers."""
    for name, cuts in task.ranges.items():
        if kinds[name] not in NUMBERS:
            raise ValueError(
                f"column {name!r} of {path} holds {kind_words(kinds[name])}, and only numbers "
                f"are cut into ranges; leave out {_cut_text(cuts)!r}"
            )


def cut_option(name: str, cuts: Sequence[float]) -> str:
    """What --sensitive must be for these cuts."""
    return shlex.quote(name + _cut_text(cuts))


def _cut_text(cuts: Sequence[float]) -> str:
    """The cuts as --sensitive has them."""
    return ":" + ",".join(map(number_text, cuts))


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
    check_no_missing(path, groups, len(frame), f"{_FILL}, or {choice}")
    check_no_missing(path, _count_missing(frame, [task.label, *task.others]), len(frame))


def _count_missing(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, int]:
    return {name: int(frame[name].isna().sum()) for name in names}


_FILL = "drop those rows, or fill them with a value of their own"


def check_no_missing(
    path: object, missing: Mapping[str, int], n_rows: int, advice: str = _FILL
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


def check_features(rows: Rows, problems: Mapping[str, Problem]) -> None:
    """Refuse all columns that no tree can use, with the options that leave them out."""
    holds = {
        name: problems[name].holds if name in problems else _unusable_words(rows, name)
        for name in rows.kinds
    }
    refused = [name for name, words in holds.items() if words]
    if len(refused) == 1 and refused[0] in problems:
        raise rows.file.unread(problems[refused[0]])
    check_usable(rows.file.path, rows.kinds, holds)


def check_usable(path: object, kinds: Mapping[str, str], holds: Mapping[str, str]) -> None:
    """Refuse features that hold what no tree can use; the words of others are empty."""
    refused = {name: words for name, words in holds.items() if words}
    if not refused:
        return
    shown = ", ".join(f"{name!r} ({words})" for name, words in refused.items())
    drop = " ".join(f"--drop {shlex.quote(name)}" for name in refused)
    features, them = ("a feature", "it") if len(refused) == 1 else ("features", "them")
    raise ValueError(
        f"{path} has {counted(len(refused), 'column')} that cannot be used as {features}: {shown}; "
        f"turn {them} into numbers or a few categories, or leave {them} out with {drop}"
        f"{_time_advice(kinds, refused)}"
    )


def _unusable_words(rows: Rows, name: str) -> str:
    """What a column holds that no tree can use; empty if one can."""
    kind = rows.kinds[name]
    return many_categories(rows.X[name]) if kind == "text" else unusable_kind(kind)


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


def choose_features(columns: list[str], task: Task, path: object) -> list[str]:
    """All columns that the task does not name."""
    excluded = {task.label, *task.others, *(task.dropped or [])}
    if not task.use_sensitive:
        excluded |= set(task.sensitive)
    features = [name for name in columns if name not in excluded]
    if not features:
        raise ValueError(f"{path} has no column left to predict from; drop fewer columns")
    return features


def positive_label(labels: list[Any], task: Task) -> Any:
    """The positive one of the labels of a file, which must be two."""
    if len(labels) != 2:
        raise ValueError(
            f"the label {task.label!r} has {_number_of_values(labels)} ({listing(labels)}), and "
            f"two are needed; {_label_advice(labels, task)}"
        )
    if task.positive is None:
        return max(labels)
    return find_label(task.positive, labels, f"the values of {task.label!r}")


def _number_of_values(labels: list[Any]) -> str:
    return "one value" if len(labels) == 1 else f"{len(labels):,} different values"


def _label_advice(labels: list[Any], task: Task) -> str:
    """What to do about a label that does not have two values; missing ones are refused before."""
    other = "name another column with --label"
    if len(labels) == 1:
        return f"give rows with another label, or {other}"
    if len(labels) > _MOST_LABELS:
        return other
    kept = task.positive if task.positive is not None else labels[0]
    rest = [label for label in labels if not is_spelling(str(kept), label)]
    return (
        f"for example remove the rows with {listing(rest[1:])}, write the same value for all "
        f"labels but one, or {other}"
    )


def find_label(text: str, labels: list[Any], source: str) -> Any:
    """The label that --positive names."""
    for label in labels:
        if is_spelling(text, label):
            return label
    raise ValueError(
        f"--positive {text} is not among {source}, which are {listing(labels)}; give one of these"
    )


def is_spelling(text: str, label: Any) -> bool:
    """Whether a text, of the command line or of another file, means this label."""
    if isinstance(label, bool):
        return text.lower() == str(label).lower()
    if isinstance(label, int | float):
        try:
            return float(text) == label
        except ValueError:
            return False
    return text == str(label)


def split_rows(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows, str]:
    """Training rows, held-out rows, and a checksum of the positions of the held-out rows.

    The split is stratified by the label and the groups.
    """
    train, test, *_ = fair_train_test_split(
        np.arange(len(rows.y)), rows.y, rows.groups, test_size=fraction, random_state=seed
    )
    return take_parts(rows, train, test, held_out_words(fraction))


def find_cut(rows: Rows, column: str, fraction: float) -> TimeCut:
    """The point in time from which on about this share of the rows is held out."""
    times = Times(column)
    times.add(rows.frame[column])
    return times.cut(fraction)


def split_by_time(rows: Rows, cut: TimeCut) -> tuple[Rows, Rows, str]:
    """The same for rows before and from a point in time on."""
    held_out = cut.mask(rows.frame[cut.column])
    return take_parts(rows, np.flatnonzero(~held_out), np.flatnonzero(held_out), cut.which)


def check_sides_of_rows(rows: Rows, cut: TimeCut) -> None:
    """Refuse a split by time that has one label on a side, as for large data."""
    groups = check_groups(rows.groups, len(rows.y))
    labels, codes = np.unique(rows.y, return_inverse=True)
    shape = (2, len(groups.values), len(labels))
    held_out = cut.mask(rows.frame[cut.column]).astype(np.intp)
    places = np.ravel_multi_index((held_out, groups.codes, codes), shape)
    counts = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)
    check_sides(cut, counts, groups.names, [str(label) for label in labels])


def check_sides(
    cut: TimeCut, counts: NDArray[np.intp], groups: Sequence[str], labels: Sequence[str]
) -> None:
    """Refuse a split by time with one label on a side; warn of groups that a side lacks.

    ``counts`` has shape (2, n_groups, n_labels): training rows first, then held-out ones.
    """
    advice = "name another column with --time or another --test-size"
    for side, sizes in zip((f"before {cut.start}", f"from {cut.start} on"), counts, strict=True):
        by_label = sizes.sum(axis=0)
        if not by_label.all():
            present = labels[int(by_label.argmax())]
            raise ValueError(
                f"the rows {side}, by {cut.column}, all have the label {present}, and training and "
                f"audit need two; {advice}"
            )
        absent = [name for name, rows in zip(groups, sizes, strict=True) if not rows.sum()]
        if len(absent) > len(groups) - 2:
            raise ValueError(
                f"the rows {side}, by {cut.column}, belong to one group, and a gap needs two; "
                f"{advice}"
            )
        if absent:
            warn_user(
                f"no row of the groups {listing(absent)} is among those {side}, by {cut.column}, "
                "so that nothing is learnt or said of them there"
            )


def take_parts(rows: Rows, train: Codes, test: Codes, which: str) -> tuple[Rows, Rows, str]:
    test = np.sort(test)
    digest = hashlib.sha256(position_bytes(test)).hexdigest()
    training = rows.take(np.sort(train), "training rows", True)
    return training, rows.take(test, which, False), digest


def held_out_words(fraction: float) -> str:
    """What to call rows that are held out at random."""
    return f"the {100 * fraction:g} % of the rows held out from training"


def position_bytes(positions: NDArray[Any]) -> bytes:
    """The positions of rows as they enter a checksum."""
    return positions.astype("<i8").tobytes()
