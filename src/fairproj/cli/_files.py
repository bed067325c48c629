"""Opening model files, and checks of the files that a command names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj import load
from fairproj.cli._record import read_record
from fairproj.io.atomic import check_writable, keep_existing
from fairproj.io.table_types import column_types
from fairproj.io.tables import is_data_path, is_pattern

DataPath = Annotated[Path, typer.Argument(help="A CSV, Parquet, Feather or Arrow file.")]
DataPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA",
        help="A CSV, Parquet, Feather or Arrow file; with --out-of-core or --scheduler Parquet "
        "files, also a folder or a pattern such as 'data/*.parquet'.",
    ),
]
ModelPath = Annotated[
    Path, typer.Argument(help="A model file, written by fairproj train or model.save().")
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        help="For models with an estimator of your own: a type that opening the file may create. "
        "May be repeated."
    ),
]


def open_model(path: Path, trust: list[str] | None) -> Any:
    return load(path, trusted=trust or [])


def names_data(path: Path) -> bool:
    """Whether a path is a data file, a folder or a pattern."""
    return is_data_path(path) or is_pattern(path)


def check_order(model: Path, data: Path) -> None:
    if is_data_path(model) and not names_data(data):
        raise ValueError(f"{model} is a data file; give the model first, then the data")


def feature_names(model: Any, path: Path) -> list[str]:
    """The columns that a model reads from a data file."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"the model {path} was trained on an array without column names, so it cannot be "
            "applied to a file; use fairproj.load in Python"
        )
    return [str(name) for name in names]


def feature_types(model: Any, features: list[str]) -> dict[str, Any]:
    """The types to read columns with, so that values mean what they meant in training."""
    encoding = model.encoding_
    if encoding is None:
        return {}
    return column_types(features, encoding.categories, encoding.booleans, trained_decimals(model))


def trained_decimals(model: Any) -> dict[str, str]:
    """The signs before the decimals of columns of numbers in the file of training."""
    record = read_record(model)
    return {} if record is None else record.decimals


def check_outputs(
    outputs: Iterable[Path | None], *, force: bool, inputs: Iterable[Path] = ()
) -> None:
    """Refuse outputs that exist, unless --force is given, and any that cannot be written.

    An output is never one of the inputs, and no two outputs are the same file.
    """
    taken = {os.path.realpath(path): "an input" for path in inputs}
    for path in outputs:
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"{path} is {taken[place]} already; name another file")
        taken[place] = "an output"
        _check_output(path, force)


def _check_output(path: Path, force: bool) -> None:
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file")
    if path.is_file() and not force:
        raise ValueError(f"{path} exists already; add --force to replace it")
    if not force:
        keep_existing(path)
    if not path.absolute().parent.is_dir():
        raise ValueError(f"the folder {path.parent} does not exist; create it first")
    check_writable(path)
