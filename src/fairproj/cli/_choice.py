"""Which rows of a file of any size to use: all of them, or those held out from training."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from fairproj.cli._record import HeldOut, TrainingRecord
from fairproj.cli._split import position_bytes
from fairproj.cli._streams import Keys, find_keys, with_complete_rows
from fairproj.cli._task import Task
from fairproj.data.cells import Cells
from fairproj.data.held_out import HeldOutRule
from fairproj.data.time_split import TimeCut
from fairproj.data.types import Codes
from fairproj.io.cell_codes import CellCoder
from fairproj.io.tables import DataFiles
from fairproj.selection.splits import split_rows

Mask = NDArray[np.bool_]


class Chooser(Protocol):
    """Chooses rows in one pass over the chunks."""

    def mask(self, chunk: pa.Table) -> Mask | None:
        """Which rows of the next chunk to use; None for all."""

    def finish(self) -> str:
        """The checksum of the positions of the chosen rows; empty if all were chosen."""


class _All:
    def mask(self, chunk: pa.Table) -> Mask | None:
        return None

    def finish(self) -> str:
        return ""


@dataclass
class _Listed:
    """Rows that are known before the pass."""

    chosen: Mask
    at: int = 0

    def mask(self, chunk: pa.Table) -> Mask | None:
        self.at += chunk.num_rows
        return self.chosen[self.at - chunk.num_rows : self.at]

    def finish(self) -> str:
        return hashlib.sha256(position_bytes(np.flatnonzero(self.chosen))).hexdigest()


@dataclass
class RuleChooser:
    """Rows that are held out by `HeldOutRule`, found while reading."""

    rule: HeldOutRule
    coder: CellCoder
    at: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._before = np.zeros(len(self.rule.sizes), dtype=np.intp)
        self._digest = hashlib.sha256()

    def mask(self, chunk: pa.Table) -> Mask | None:
        return self.choose(self.coder.cells(chunk))

    def choose(self, cells: Codes) -> Mask:
        """Which of the next rows are held out, from their cells."""
        chosen = self.rule.mask(cells, self._before)
        self._before += np.bincount(cells, minlength=len(self._before))
        self._digest.update(position_bytes(self.at + np.flatnonzero(chosen)))
        self.at += len(cells)
        return chosen

    @property
    def before(self) -> NDArray[np.intp]:
        """How many rows of each cell were read."""
        return self._before.copy()

    def finish(self) -> str:
        return self._digest.hexdigest()


@dataclass
class TimeChooser:
    """Rows from a point in time on."""

    cut: TimeCut
    at: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._digest = hashlib.sha256()

    def mask(self, chunk: pa.Table) -> Mask | None:
        return self.choose(chunk.column(self.cut.column).to_pandas())

    def choose(self, times: pd.Series) -> Mask:
        """Which of the next rows are held out, from their times."""
        chosen = self.cut.mask(times)
        self._digest.update(position_bytes(self.at + np.flatnonzero(chosen)))
        self.at += len(chosen)
        return chosen

    def finish(self) -> str:
        return self._digest.hexdigest()


@dataclass(frozen=True)
class Choice:
    """The rows to audit.

    Attributes
    ----------
    which : str
        What to call them.
    seen : bool or None
        Whether the model was trained on them; None where that is not known.
    held_out : HeldOut or None
        The split that they come from.
    chosen : array of bool or None
        Which of the rows they are, where that is known before reading.
    rule, coder : HeldOutRule and CellCoder, or None
        What finds them while reading.
    types : dict
        The types of the columns that are read for it.
    complete : list of str
        Columns of training whose missing values leave a row out before any is chosen.
    """

    which: str = ""
    seen: bool | None = None
    held_out: HeldOut | None = None
    chosen: Mask | None = None
    rule: HeldOutRule | None = None
    coder: CellCoder | None = None
    types: dict[str, Any] = field(default_factory=dict)
    complete: list[str] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """Columns that are needed to find the rows."""
        if self.time is not None:
            return [self.time.column, *self.complete]
        return self.complete if self.coder is None else self.coder.columns

    @property
    def time(self) -> TimeCut | None:
        """The point in time from which on they are."""
        return None if self.held_out is None else self.held_out.time

    def begin(self) -> Chooser:
        """What chooses the rows in a new pass."""
        if self.time is not None:
            return TimeChooser(self.time)
        if self.chosen is not None:
            return _Listed(self.chosen)
        if self.coder is None or self.rule is None:
            return _All()
        return RuleChooser(self.rule, self.coder)

    def check(self, sha256: str) -> None:
        """Refuse rows that are not those of training."""
        if self.held_out is not None:
            self.held_out.check(sha256)


def make_rule(fraction: float, seed: int, keys: Keys, task: Task, coder: CellCoder) -> HeldOutRule:
    """The rule for the cells of some rows, each of which must have two."""
    sizes = keys.cell_sizes(task, coder)
    few = np.flatnonzero(sizes == 1)
    if len(few):
        raise ValueError(
            f"{coder.cell_name(int(few[0]))} has 1 row, and a split needs 2; merge the group with "
            "another or drop it"
        )
    return HeldOutRule(fraction, seed, tuple(sizes.tolist()))


def unseen_rows(keys: Keys, sha256: str, record: TrainingRecord, types: Any) -> Choice:
    """The held-out rows, if this is what the model was trained from; else all rows.

    ``keys`` are those of the groups that are audited; training may have had others.
    """
    if not record.is_data(sha256):
        return Choice()
    held_out, complete = record.held_out, record.task.complete
    if held_out is None:
        types = _texts(complete)
        return Choice("the rows it was trained on", True, types=types, complete=complete)
    if held_out.time is not None:
        types = _texts([held_out.time.column, *complete])
        return Choice(held_out.which, False, held_out, types=types, complete=complete)
    data, task = keys.data, record.task
    if not keys.are_of(task):
        keys = find_keys(data, task, types)
    keys.check(task)
    coder = keys.coder(task)
    if held_out.streamed:
        rule = make_rule(held_out.fraction, held_out.seed, keys, task, coder)
        return Choice(held_out.which, False, held_out, None, rule, coder, keys.types)
    chosen = _shuffled(data, held_out, coder, keys.types, complete)
    types = _texts(complete)
    return Choice(held_out.which, False, held_out, chosen, types=types, complete=complete)


def _texts(names: Sequence[str]) -> dict[str, Any]:
    """Types of columns of a CSV file that are read as text: others depend on its first rows."""
    return dict.fromkeys(names, pa.string())


def _shuffled(
    data: DataFiles,
    held_out: HeldOut,
    coder: CellCoder,
    types: dict[str, Any],
    complete: Sequence[str],
) -> Mask:
    """The rows that `fair_train_test_split` held out; takes about 50 bytes a row for a moment."""
    small = np.min_scalar_type(coder.n_cells)
    chunks = data.chunks(coder.columns, types)
    kept = (with_complete_rows(chunk, complete) for chunk in chunks)
    index = np.concatenate([coder.cells(chunk).astype(small) for chunk in kept if len(chunk)])
    groups = coder.groups
    cells = Cells(index, groups.values, groups.names, np.array(coder.labels), 1)
    chosen = np.zeros(len(index), dtype=bool)
    chosen[split_rows(cells, held_out.fraction, held_out.seed)[1]] = True
    return chosen
