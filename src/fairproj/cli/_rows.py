"""From a data file to features, labels and groups, and to the rows that a model has not seen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from fairproj._data_files import DataFile, check_columns
from fairproj._validation import listing
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
Seed = Annotated[int, typer.Option(help="Of the choice of rows to hold out.")]


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
    X: pd.DataFrame
    y: NDArray[Any]
    groups: pd.DataFrame
    positive: Any
    kinds: dict[str, str]
    sha256: str
    which: str = ""
    seen: bool | None = None

    def take(self, rows: Any, which: str, seen: bool | None) -> Rows:
        return replace(
            self,
            X=self.X.iloc[rows].reset_index(drop=True),
            y=self.y[rows],
            groups=self.groups.iloc[rows].reset_index(drop=True),
            which=which,
            seen=seen,
        )


def read_rows(path: Path, asked: Question, extra: list[str] | None = None) -> Rows:
    """Everything that the question names; ``extra`` columns stay among the features."""
    file = DataFile.of(path)
    frame, kinds = file.frame()
    named = [asked.label, *asked.sensitive, *(asked.dropped or []), *(extra or [])]
    check_columns(path, list(frame.columns), named)
    if asked.label in asked.sensitive:
        raise ValueError(f"{asked.label!r} cannot be both the label and sensitive")
    out = {asked.label, *(asked.dropped or [])}
    if not asked.use_sensitive:
        out |= set(asked.sensitive)
    for name in [asked.label, *asked.sensitive]:
        missing = int(frame[name].isna().sum())
        if missing:
            raise ValueError(
                f"column {name!r} of {path} misses {missing} of {len(frame)} values; drop those "
                "rows, or fill them with a value of their own"
            )
    features = [name for name in frame.columns if name not in out]
    if not features:
        raise ValueError(f"{path} has no column left to predict from")
    y = frame[asked.label].to_numpy()
    return Rows(
        file,
        frame[features],
        y,
        frame[asked.sensitive],
        _positive(y, asked),
        {name: kind for name, kind in kinds if name in features},
        file.sha256(),
    )


def _positive(y: NDArray[Any], asked: Question) -> Any:
    labels = pd.unique(y)
    if len(labels) != 2:
        raise ValueError(
            f"the label {asked.label!r} has {len(labels)} values ({listing(labels.tolist())}), and "
            "two are needed"
        )
    if asked.positive is None:
        return max(labels.tolist())
    found = [label for label in labels.tolist() if str(label) == asked.positive]
    if not found:
        raise ValueError(
            f"--positive {asked.positive} is not a value of {asked.label!r}, which has "
            f"{listing(labels.tolist())}"
        )
    return found[0]


def split_rows(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows, str]:
    """Training rows, held-out rows, and a checksum of which rows were held out."""
    positions = np.arange(len(rows.y))
    train, test, *_ = fair_train_test_split(
        positions, rows.y, rows.groups, test_size=fraction, random_state=seed
    )
    test = np.sort(test)
    digest = hashlib.sha256(test.astype("<i8").tobytes()).hexdigest()
    return (
        rows.take(np.sort(train), "training rows", True),
        rows.take(test, f"the {fraction:.0%} of the rows held out from training", False),
        digest,
    )


def question_of(model: Any) -> Question:
    """What a model from `fairproj train` was asked."""
    found = getattr(model, "metadata_", {}).get("question")
    if not isinstance(found, dict) or not {"label", "sensitive"} <= set(found):
        raise ValueError(
            "the model file does not say what it was trained for, as those of fairproj train do; "
            "name --label and --sensitive"
        )
    return Question(
        str(found["label"]),
        [str(name) for name in found["sensitive"]],
        None if found.get("positive") is None else str(found["positive"]),
        [str(name) for name in found.get("dropped") or []],
        bool(found.get("use_sensitive")),
    )


def unseen_rows(model: Any, rows: Rows) -> Rows:
    """Of the file that the model was trained from, the rows that were held out; else all rows."""
    made_from = getattr(model, "metadata_", {}).get("data", {})
    if made_from.get("sha256") != rows.sha256:
        return rows
    held_out = getattr(model, "metadata_", {}).get("held_out")
    if not held_out:
        return replace(rows, which="the rows it was trained on", seen=True)
    _, test, digest = split_rows(rows, float(held_out["fraction"]), int(held_out["seed"]))
    if digest != held_out["sha256"]:
        raise ValueError(
            "the rows held out from training cannot be told any more: this version of "
            "scikit-learn splits otherwise; audit on a file of rows the model has not seen"
        )
    return test


def training_rows(model: Any, rows: Rows) -> Rows | None:
    """Of the file that the model was trained from, the rows it was trained on; else None."""
    made_from = getattr(model, "metadata_", {}).get("data", {})
    held_out = getattr(model, "metadata_", {}).get("held_out")
    if made_from.get("sha256") != rows.sha256:
        return None
    if not held_out:
        return rows
    return split_rows(rows, float(held_out["fraction"]), int(held_out["seed"]))[0]
