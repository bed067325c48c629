"""One data file with faults: read it, check it, and run commands on it."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from fairproj import load
from fairproj.cli import app
from fairproj.cli._files import feature_types
from fairproj.cli._rows import read_rows
from fairproj.cli._task import Task
from fairproj.io.tables import DataFile
from safety.arrow_mutants import arrow_mutant
from safety.csv_mutants import csv_mutant
from safety.data_tables import FEATURES, write_model
from safety.effects import EffectMonitor
from safety.trials import Outcome

TITLE = "Damaged data files"
DONE, SENTENCE = "done", "sentence"
MEANING = {DONE: "read, and the command done", SENTENCE: "one sentence"}
COLUMN = "file"
WORDS = (
    "CSV files have faults of structure (quotes, separators, encodings, line ends, names, "
    "ragged rows, long fields, odd numbers) and are plain or compressed; Parquet, Feather and "
    "Arrow files have odd types (decimals, lists, structs, dictionaries, zones, extensions, "
    "extreme values) and layouts (empty row groups, odd metadata); many have bytes changed "
    "besides, in footers and pages too. Most are read at once, in chunks, or as the rows of a "
    "task, in the process; the others are given to `predict`, `audit`, `check`, `train` and "
    "`report`. A failure is a crash, a hang, an exception of another kind than a command "
    "reports in one sentence, another exit code, more than one line of error, or an effect "
    "beside the output."
)
# What a command reports in one sentence.
REPORTED = (ImportError, OSError, ValueError, MemoryError)
TASK = ["--label", "y", "--sensitive", "sex"]
# In a thousand files; commands take much longer.
SHARES = {
    "read": 400,
    "chunks": 300,
    "rows": 220,
    "predict": 30,
    "audit": 20,
    "audit model": 5,
    "train": 10,
    "train paper": 5,
    "check": 5,
    "report": 5,
}
_USUAL = ("compile", "exec", "os.chmod", "os.rename", "os.remove", "os.link")  # typer; outputs


def prepare(folder: Path) -> None:
    """What every worker needs, made once."""
    write_model(folder)


def data_mutant(seed: int, index: int) -> tuple[str, bytes, str]:
    """The suffix of a file, its content, and what to do with it; always the same."""
    rng = random.Random(f"{seed}-{index}")
    suffix, raw = (csv_mutant if rng.random() < 0.6 else arrow_mutant)(rng)
    return suffix, raw, rng.choices(list(SHARES), list(SHARES.values()))[0]


class Trial:
    """Tries files, in a process that may die."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        warnings.simplefilter("ignore")
        self._model, self._scratch = folder / "model.fairproj", scratch
        types = feature_types(load(self._model), FEATURES)
        self._reads: dict[str, Callable[[Path], Any]] = {
            "read": lambda path: DataFile.from_path(path).read_frame(),
            "chunks": lambda path: [
                *DataFile.from_path(path).chunks(FEATURES, types, ["sex", "y"])
            ],
            "rows": lambda path: read_rows(path, Task("y", ["sex"])),
        }
        self._monitor = EffectMonitor(scratch)
        self._for_commands = EffectMonitor(scratch, _USUAL)
        for use in SHARES:  # whatever is imported late is imported now
            self._path, self._use = scratch / "good.csv", use
            self._path.write_text("age,pay,job,ok,sex,y,predicted\n1,2,a,true,f,no,no\n", "utf-8")
            self.run()

    def make(self, seed: int, index: int) -> tuple[str, Path]:
        """Write the file; its kind and its path."""
        suffix, raw, self._use = data_mutant(seed, index)
        self._path = self._scratch / f"data{suffix}"
        self._path.write_bytes(raw)
        return suffix, self._path

    def run(self) -> Outcome:
        """Try the file that was made last."""
        is_read = self._use in self._reads
        with (self._monitor if is_read else self._for_commands).watch() as seen:
            end, message = self._read() if is_read else self._command()
        if seen:
            return "the file had an effect", f"{self._use}: {'; '.join(seen)}"
        return end, message if end in MEANING else f"{self._use}: {message}"

    def _read(self) -> Outcome:
        try:
            self._reads[self._use](self._path)
        except REPORTED as error:
            return SENTENCE, str(error)
        except BaseException as error:
            return f"exception {type(error).__name__}", str(error)
        return DONE, ""

    def _command(self) -> Outcome:
        result = CliRunner().invoke(app, [str(part) for part in self._arguments()])
        if result.exception and not isinstance(result.exception, SystemExit):
            return f"exception {type(result.exception).__name__}", str(result.exception)
        if result.exit_code in (0, 3, 4, 5):  # the gap, the rows or the use of the model
            return DONE, ""
        notes = ("warning: ", "note: ")
        errors = [row for row in result.stderr.splitlines() if not row.startswith(notes)]
        if result.exit_code == 1 and len(errors) == 1 and errors[0].startswith("error: "):
            return SENTENCE, errors[0]
        return f"exit code {result.exit_code}", result.output

    def _arguments(self) -> list[Any]:
        path, out = self._path, self._scratch / "out"
        train = [
            "train",
            path,
            *TASK,
            "--rounds",
            2,
            "--jobs",
            1,
            "-o",
            f"{out}.fairproj",
            "--force",
        ]
        return {
            "train": train,
            "train paper": [*train, "--method", "paper"],
            "predict": ["predict", self._model, path, "--jobs", 1, "-o", f"{out}.csv", "--force"],
            "audit": ["audit", path, "--predictions", "predicted", *TASK],
            "audit model": ["audit", self._model, path, *TASK],
            "check": ["check", path, *TASK],
            "report": ["report", self._model, path, *TASK, "-o", f"{out}.html", "--force"],
        }[self._use]
