"""How the commands open a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairproj import FairProjClassifier, load

ModelFile = Annotated[Path, typer.Argument(help="A file of fairproj train or model.save().")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        help="A type that the file may make objects of, for learners given as estimator=; may be "
        "repeated."
    ),
]


def open_model(path: Path, trust: list[str] | None) -> FairProjClassifier:
    return load(path, trusted=trust or [])
