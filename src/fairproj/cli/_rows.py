"""From a data file to features, labels and groups, and to the rows that a model has not seen."""

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

from fairproj.io.tables import USABLE, DataFile, check_columns, is_text
from fairproj.data.checks import listing
from fairproj.selection import fair_train_test_split

Label = Annotated[str, typer.Option("--label", help="The column to predict; two values.")]
Sensitive = Annotated[
    list[str],
    typer.Option(
        "--sensitive",
        help="A column that tells the groups apart; several are crossed: --sensitive sex "
        "--sensitive race.",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(help="Which label is the positive one; by default the larger in sort order."),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="A column to leave out of the features; may be repeated.")
]
UseSensitive = Annotated[
    bool,
    typer.Option(
        "--use-sensitive",
        help="Let the model see the sensitive columns. Often that is what makes a small gap "
        "possible, and often it is not allowed: you decide.",
    ),
]
TestSize = Annotated[
    float,
    typer.Option(
        help="Share of every group and label to hold out from training, for audit and report; 0 "
        "trains on all rows."
    ),
]
Seed = Annotated[
    int, typer.Option(help="Of every choice of rows to hold out.", min=0, max=2**32 - 1)
]


@dataclass(frozen=True)
class Question:
    """What is to be predicted from what."""

    label: str
    sensitive: list[str]
    positive: str | None = None
    dropped: list[str] | None = None
    use_sensitive: bool = False


@dataclass(frozen=True)
class Rows:
    """Rows of a file: which of them, and whether the model was trained on them."""

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
    asked: Question,
    features: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
) -> Rows:
    """Everything that the question names; by default all other columns are features."""
    file = DataFile.of(path)
    # Groups keep the names they have in the file, where the model reads the column as a number.
    numbers = {name for name in asked.sensitive if not is_text((types or {}).get(name))}
    frame, kinds = file.frame({n: t for n, t in (types or {}).items() if n not in numbers})
    named = [asked.label, *asked.sensitive, *(features or asked.dropped or [])]
    check_columns(path, list(frame.columns), named)
    if asked.label in asked.sensitive:
        raise ValueError(f"{asked.label!r} cannot be both the label and sensitive")
    if len(set(asked.sensitive)) < len(asked.sensitive):
        raise ValueError(f"--sensitive names a column twice: {listing(asked.sensitive)}")
    refuse_missing(path, frame, [asked.label, *asked.sensitive])
    if features is None:
        features = _features(frame, asked)
        if not features:
            raise ValueError(f"{path} has no column left to predict from")
        _refuse_kinds(path, [(name, kind) for name, kind in kinds if name in features])
    y = frame[asked.label].to_numpy()
    return Rows(
        file,
        frame,
        frame[list(features)],
        y,
        frame[asked.sensitive],
        _positive(y, asked),
        {name: kind for name, kind in kinds if name in set(features)},
        file.sha256(),
    )


def refuse_missing(path: Path, frame: pd.DataFrame, names: Sequence[str]) -> None:
    for name in names:
        missing = int(frame[name].isna().sum())
        if missing:
            raise ValueError(
                f"column {name!r} of {path} misses {missing} of {len(frame)} values; drop those "
                "rows, or fill them with a value of their own"
            )


def _refuse_kinds(path: Path, kinds: Sequence[tuple[str, str]]) -> None:
    """Columns that trees cannot use, by what the file has them for."""
    odd = [f"{name!r} ({kind})" for name, kind in kinds if kind not in USABLE]
    if odd:
        raise ValueError(
            f"{path} has columns that trees cannot use: {', '.join(odd)}; turn them into numbers "
            "or text, or leave them out with --drop"
        )


def _features(frame: pd.DataFrame, asked: Question) -> list[str]:
    out = {asked.label, *(asked.dropped or [])}
    if not asked.use_sensitive:
        out |= set(asked.sensitive)
    return [name for name in frame.columns if name not in out]


def _positive(y: NDArray[Any], asked: Question) -> Any:
    labels = pd.unique(y).tolist()
    if len(labels) != 2:
        raise ValueError(
            f"the label {asked.label!r} has {len(labels)} values ({listing(labels)}), and two are "
            "needed"
        )
    if asked.positive is None:
        return max(labels)
    return find_label(asked.positive, labels, f"the values of {asked.label!r}")


def find_label(text: str, labels: list[Any], called: str) -> Any:
    """The label that --positive names."""
    found = [label for label in labels if means(text, label)]
    if not found:
        raise ValueError(f"--positive {text} is not among {called}, which are {listing(labels)}")
    return found[0]


def means(text: str, label: Any) -> bool:
    """Whether a text on the command line stands for this label."""
    if isinstance(label, bool):
        return text.lower() == str(label).lower()
    if isinstance(label, int | float):
        try:
            return float(text) == label
        except ValueError:
            return False
    return text == str(label)


def split_rows(rows: Rows, asked: Question, fraction: float, seed: int) -> tuple[Rows, Rows, str]:
    """Training rows, held-out rows, and a checksum of which rows were held out.

    The split is by the label and the groups that training asked for.
    """
    frame = rows.frame
    train, test, *_ = fair_train_test_split(
        np.arange(len(frame)),
        frame[asked.label].to_numpy(),
        frame[asked.sensitive],
        test_size=fraction,
        random_state=seed,
    )
    test = np.sort(test)
    digest = hashlib.sha256(test.astype("<i8").tobytes()).hexdigest()
    share = f"{100 * fraction:g} %"
    return (
        rows.take(np.sort(train), "training rows", True),
        rows.take(test, f"the {share} of the rows held out from training", False),
        digest,
    )
