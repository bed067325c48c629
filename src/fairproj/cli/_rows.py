"""Features, labels, groups and weights from a data file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairproj.cli._columns import (
    check_kinds,
    check_missing,
    check_ranged,
    check_some_weight,
    check_usable,
    check_weights,
    many_categories,
    unusable_kind,
)
from fairproj.cli._labels import positive_label
from fairproj.cli._task import MissingGroups, Task, check_task
from fairproj.data.checks import counted, in_words
from fairproj.data.periods import MISSING
from fairproj.data.ranges import cut_columns
from fairproj.data.types import Array
from fairproj.data.user_warning import UserNote, warn_user
from fairproj.io.number_texts import Problem
from fairproj.io.table_types import (
    NUMBERS,
    is_text,
    with_date_texts,
)
from fairproj.io.tables import DataFile, check_columns


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
    *,
    timed: bool = True,
) -> Rows:
    """Read the columns of a task; by default all columns that it does not name are features.

    ``sha256`` is the checksum of the file, where it is known already; ``timed`` says whether the
    command has an option --time, which an error may propose.
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
        check_features(rows, problems, timed=timed)
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
    check_kinds(path, kinds, task.keys, "or give another column")
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


def without_numbers(types: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Types of features; groups keep their names in the file where a model reads numbers."""
    named = [name for name in task.sensitive if name not in task.ranges]
    numbers = {name for name in named if not is_text(types.get(name))}
    return {name: kind for name, kind in types.items() if name not in numbers}


def check_features(rows: Rows, problems: Mapping[str, Problem], *, timed: bool) -> None:
    """Refuse all columns that no tree can use, with the options that leave them out."""
    holds = {
        name: problems[name].holds if name in problems else _unusable_words(rows, name)
        for name in rows.kinds
    }
    refused = [name for name, words in holds.items() if words]
    if len(refused) == 1 and refused[0] in problems:
        raise rows.file.unread(problems[refused[0]])
    check_usable(rows.file.path, rows.kinds, holds, timed=timed)


def _unusable_words(rows: Rows, name: str) -> str:
    """What a column holds that no tree can use; empty if one can."""
    kind = rows.kinds[name]
    return many_categories(rows.X[name]) if kind == "text" else unusable_kind(kind)


def choose_features(columns: list[str], task: Task, path: object) -> list[str]:
    """All columns that the task does not name."""
    excluded = {task.label, *task.others, *(task.dropped or [])}
    if not task.use_sensitive:
        excluded |= set(task.sensitive)
    features = [name for name in columns if name not in excluded]
    if not features:
        advice = "drop fewer columns" if task.dropped else "add columns of features"
        raise ValueError(f"{path} has no column left to predict from; {advice}")
    return features
