"""How the commands open a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairproj import FairProjClassifier, load
from fairproj.io.tables import is_data_name

ModelFile = Annotated[Path, typer.Argument(help="A file of fairproj train or model.save().")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        help="A type that the file may make objects of, for learners given as estimator=; may be "
        "repeated."
    ),
]


def refuse_swapped(model: Path, data: Path) -> None:
    if is_data_name(model) and not is_data_name(data):
        raise ValueError(f"{model} is data: the model comes first, then the data")


def open_model(path: Path, trust: list[str] | None) -> FairProjClassifier:
    return load(path, trusted=trust or [])
