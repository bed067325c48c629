"""Features, labels and groups from a data file, and the split into training and held-out rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from fairproj.data.checks import counted, listing
from fairproj.io.table_types import USABLE, is_text
from fairproj.io.tables import DataFile, check_columns
from fairproj.selection import fair_train_test_split

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
        "compares every combination.",
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
TestSize = Annotated[
    float,
    typer.Option(
        help="Share of each group and label to hold out from training, for audit and report; 0 "
        "to train on all rows.",
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
    """What to predict from which columns."""

    label: str
    sensitive: list[str]
    positive: str | None = None
    dropped: list[str] | None = None
    use_sensitive: bool = False


@dataclass(frozen=True)
class Rows:
    """Rows of a file, a description of which ones, and whether the model was trained on them."""

    file: DataFile
    frame: pd.DataFrame
    X: pd.DataFrame
    y: NDArray[Any]
    groups: pd.DataFrame
    positive: Any
    kinds: dict[str, str]
    sha256: str
    which: str = ""
    seen: bool | None = None

    def take(self, rows: Any, which: str, seen: bool | None) -> Rows:
        frame, X, groups = (
            part.iloc[rows].reset_index(drop=True) for part in (self.frame, self.X, self.groups)
        )
        return replace(
            self, frame=frame, X=X, y=self.y[rows], groups=groups, which=which, seen=seen
        )


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
    frame, kinds = file.read_frame(without_numbers(types or {}, task.sensitive))
    keys = [task.label, *task.sensitive]
    check_columns(path, list(frame.columns), [*keys, *(features or task.dropped or [])])
    check_task(task)
    check_no_missing(path, {name: int(frame[name].isna().sum()) for name in keys}, len(frame))
    check_kinds(path, kinds, [task.label, *task.sensitive], "give another column")
    if features is None:
        features = choose_features(list(frame.columns), task, path)
        check_kinds(path, kinds, features, "or leave them out with --drop")
    y = frame[task.label].to_numpy()
    return Rows(
        file,
        frame,
        frame[list(features)],
        y,
        frame[task.sensitive],
        positive_label(pd.unique(y).tolist(), task),
        {name: kinds[name] for name in features},
        sha256 or file.sha256(),
    )


def without_numbers(types: Mapping[str, Any], sensitive: Sequence[str]) -> dict[str, Any]:
    """Types of features; groups keep their names in the file where a model reads numbers."""
    numbers = {name for name in sensitive if not is_text(types.get(name))}
    return {name: kind for name, kind in types.items() if name not in numbers}


def check_task(task: Task) -> None:
    if task.label in task.sensitive:
        raise ValueError(f"{task.label!r} cannot be both the label and sensitive")
    if len(set(task.sensitive)) < len(task.sensitive):
        raise ValueError(f"--sensitive names a column twice: {listing(task.sensitive)}")


def check_no_missing(path: object, missing: Mapping[str, int], n_rows: int) -> None:
    """Refuse columns that have missing values."""
    for name, count in missing.items():
        if count:
            raise ValueError(
                f"column {name!r} of {path} has {counted(count, 'missing value')} in "
                f"{counted(n_rows, 'row')}; drop "
                "those rows, or fill them with a value of their own"
            )


def check_kinds(path: object, kinds: Mapping[str, str], names: Sequence[str], advice: str) -> None:
    """Refuse columns that hold anything but numbers, booleans and text."""
    refused = [f"{name!r} ({kinds[name]})" for name in names if kinds[name] not in USABLE]
    if refused:
        raise ValueError(
            f"{path} has columns of kinds that cannot be used: {', '.join(refused)}; turn them "
            f"into numbers or text, {advice}"
        )


def choose_features(columns: list[str], task: Task, path: object) -> list[str]:
    """All columns that the task does not name."""
    excluded = {task.label, *(task.dropped or [])}
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
            f"the label {task.label!r} has {counted(len(labels), 'different value')} "
            f"({listing(labels)}), and "
            "two are needed; name another column with --label"
        )
    if task.positive is None:
        return max(labels)
    return find_label(task.positive, labels, f"the values of {task.label!r}")


def find_label(text: str, labels: list[Any], source: str) -> Any:
    """The label that --positive names."""
    for label in labels:
        if is_spelling(text, label):
            return label
    raise ValueError(f"--positive {text} is not among {source}, which are {listing(labels)}")


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


def split_rows(rows: Rows, task: Task, fraction: float, seed: int) -> tuple[Rows, Rows, str]:
    """Training rows, held-out rows, and a checksum of the positions of the held-out rows.

    The split is stratified by the label and the groups of the task.
    """
    frame = rows.frame
    train, test, *_ = fair_train_test_split(
        np.arange(len(frame)),
        frame[task.label].to_numpy(),
        frame[task.sensitive],
        test_size=fraction,
        random_state=seed,
    )
    test = np.sort(test)
    digest = hashlib.sha256(position_bytes(test)).hexdigest()
    share = f"{100 * fraction:g} %"
    return (
        rows.take(np.sort(train), "training rows", True),
        rows.take(test, f"the {share} of the rows held out from training", False),
        digest,
    )


def position_bytes(positions: NDArray[Any]) -> bytes:
    """The positions of rows as they enter a checksum."""
    return positions.astype("<i8").tobytes()
