"""Every command that writes a file, on small data, and how to tell a whole file from half a one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fairproj import load
from fairproj.cli import _demo
from fairproj.datasets import load_adult
from fairproj.io.tables import DataFile
from safety.data_tables import table, write_model

ROWS = 300
TASK = ["--label", "y", "--sensitive", "sex"]
DATA = ["data.csv", *TASK, "--drop", "predicted"]


@dataclass(frozen=True)
class Command:
    """The arguments of a command, the files that it writes, and how often it is killed at most."""

    arguments: list[str]
    outputs: list[str]
    most_kills: int | None = None


def _writing(arguments: list[str], output: str, *more: str) -> Command:
    return Command([*arguments, "-o", output, "--force"], [output, *more])


COMMANDS = {
    "train": _writing(["train", *DATA, "--rounds", "3", "--jobs", "1"], "out.fairproj"),
    "train --method paper": _writing(
        ["train", *DATA, "--rounds", "3", "--method", "paper"], "out.fairproj"
    ),
    "train --out-of-core": _writing(
        ["train", "data.parquet", *DATA[1:], "--rounds", "3", "--out-of-core"], "out.fairproj"
    ),
    "predict, CSV": _writing(["predict", "model.fairproj", "data.csv", "--keep", "sex"], "out.csv"),
    "predict, Parquet": _writing(["predict", "model.fairproj", "data.csv"], "out.parquet"),
    "report": _writing(
        ["report", "model.fairproj", "data.csv", *TASK, "--card", "out.md"], "out.html", "out.md"
    ),
    "audit --plot": Command(
        [
            *["audit", "data.csv", "--predictions", "predicted", *TASK, "--by", "ok"],
            *["--plot", "out.svg", "--force"],
        ],
        ["out.svg"],
    ),
    "frontier": _writing(
        ["frontier", *DATA, "--folds", "2", "--rounds", "2", "--jobs", "1"], "out.csv"
    ),
    "alternatives": _writing(
        ["alternatives", *DATA, "--rounds", "2", "--jobs", "1", "--model", "out.fairproj"],
        "out.html",
        "out.fairproj",
    ),
    "export": _writing(["export", "model.fairproj"], "out.txt"),
    "demo": Command(["demo", "-o", ".", "--force"], ["adult.csv", "model.fairproj", "report.html"]),
    # Each worker process imports everything, which takes seconds.
    "alternatives --jobs 2": Command(
        ["alternatives", *DATA, "--rounds", "2", "--jobs", "2", "-o", "out.html", "--force"],
        ["out.html"],
        most_kills=60,
    ),
}


def prepare(folder: Path) -> None:
    """The data and the model that the commands read."""
    frame = table(ROWS)
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_parquet(folder / "data.parquet", row_group_size=100)
    write_model(folder)


def shorten_demo() -> None:
    """The demo on fewer rows of the same data, in this process: it takes a minute otherwise."""
    adult = load_adult()
    adult.frame = adult.frame.iloc[:ROWS]
    _demo.load_adult = lambda: adult


def is_whole(path: Path) -> bool:
    """Whether a file is one that a command has written to its end."""
    try:
        return _CHECKS[path.suffix](path)
    except Exception as error:
        print(f"{path}: {type(error).__name__}: {error}")
        return False


def _rows_of(path: Path) -> int:
    return int(DataFile.from_path(path).read().num_rows)


_CHECKS: dict[str, Callable[[Path], Any]] = {
    ".fairproj": lambda path: load(path).certificate_.n_rounds > 0,
    ".parquet": lambda path: pq.read_table(path).num_rows == ROWS,
    ".csv": lambda path: path.read_bytes().endswith(b"\n") and _rows_of(path) > 1,
    ".html": lambda path: path.read_text("utf-8").rstrip().endswith("</html>"),
    ".svg": lambda path: path.read_text("utf-8").rstrip().endswith("</svg>"),
    ".md": lambda path: path.read_text("utf-8").endswith("\n"),
    ".json": lambda path: json.loads(path.read_text("utf-8")),
    ".txt": lambda path: "pandas_categorical:" in path.read_text("utf-8").splitlines()[-1],
}
