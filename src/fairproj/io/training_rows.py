"""Parquet files without the rows that are held out from training."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fairproj.data.held_out import HeldOutRule
from fairproj.data.parts import Part
from fairproj.data.time_split import TimeCut
from fairproj.data.types import Codes
from fairproj.io.cell_codes import CellCoder
from fairproj.io.parquet import ParquetSource


class HeldOutParts(Protocol):
    """Says which rows of the parts of a table are held out."""

    def masks(
        self, numbers: Sequence[int], parts: Iterable[Part]
    ) -> Iterator[tuple[Part, NDArray[np.bool_]]]:
        """Parts that have these numbers, each with whether its rows are held out."""


@dataclass(frozen=True)
class HeldOutByCell:
    """A share of each cell.

    Attributes
    ----------
    coder : CellCoder
    rule : HeldOutRule
        Says which rows are left out.
    before : array of shape (n_parts, n_cells)
        The number of rows of each cell in the parts before each part.
    """

    coder: CellCoder
    rule: HeldOutRule
    before: NDArray[np.intp]

    def masks(
        self, numbers: Sequence[int], parts: Iterable[Part]
    ) -> Iterator[tuple[Part, NDArray[np.bool_]]]:
        for number, part in zip(numbers, parts, strict=True):
            yield part, self.rule.mask(part_cells(part, self.coder), self.before[number])


@dataclass(frozen=True)
class HeldOutByTime:
    """The rows from a point in time on.

    Attributes
    ----------
    times : ParquetSource
        The same rows, with their times as the only feature.
    cut : TimeCut
    """

    times: ParquetSource
    cut: TimeCut

    def masks(
        self, numbers: Sequence[int], parts: Iterable[Part]
    ) -> Iterator[tuple[Part, NDArray[np.bool_]]]:
        for part, times in zip(parts, self.times.parts(numbers), strict=True):
            yield part, self.cut.mask(times.X[self.cut.column])


@dataclass(frozen=True)
class TrainingRows:
    """A source of the rows to train on, for one machine or for the workers of a cluster.

    Attributes
    ----------
    source : ParquetSource
        All rows.
    held_out : HeldOutParts
        Says which rows are left out.
    """

    source: ParquetSource
    held_out: HeldOutParts
    _masks: dict[int, NDArray[np.uint8]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_parts(self) -> int | None:
        return self.source.n_parts

    def parts(self, numbers: Iterable[int] | None = None) -> Iterator[Part]:
        """All parts, or some by their numbers and in order."""
        wanted = sorted(range(self.n_parts or 0) if numbers is None else numbers)
        masked = self.held_out.masks(wanted, self.source.parts(wanted))
        for number, (part, held_out) in zip(wanted, masked, strict=True):
            self._masks[number] = np.packbits(~held_out)
            kept = np.flatnonzero(~held_out)
            weight = part.sample_weight
            yield replace(
                part,
                X=part.X.iloc[kept],
                y=part.y.iloc[kept],
                sensitive_features=part.sensitive_features.iloc[kept],
                sample_weight=None if weight is None else weight.iloc[kept],
            )

    def features(self, parts: Collection[int]) -> Iterator[tuple[int, Part]]:
        """Some parts, by their numbers and in order, with X only."""
        for number, part in self.source.features(parts):
            kept = np.flatnonzero(np.unpackbits(self._masks[number], count=len(part.X)))
            yield number, replace(part, X=part.X.iloc[kept])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_masks": {}}


def part_cells(part: Part, coder: CellCoder) -> Codes:
    """The (group, label) cell of each row of a part."""
    label, *sensitive = coder.columns
    columns = {label: part.y} | {name: part.sensitive_features[name] for name in sensitive}
    return coder.cells(pa.table({name: pa.array(values) for name, values in columns.items()}))
