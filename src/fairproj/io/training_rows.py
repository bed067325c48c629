"""Parquet files without the rows that are held out from training."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fairproj.data.held_out import HeldOutRule
from fairproj.data.parts import Part
from fairproj.data.types import Codes
from fairproj.io.cell_codes import CellCoder
from fairproj.io.parquet import ParquetSource


@dataclass(frozen=True)
class TrainingRows:
    """A source of the rows to train on, for one machine or for the workers of a cluster.

    Attributes
    ----------
    source : ParquetSource
        All rows.
    coder : CellCoder
    rule : HeldOutRule
        Says which rows are left out.
    before : array of shape (n_parts, n_cells)
        The number of rows of each cell in the parts before each part.
    """

    source: ParquetSource
    coder: CellCoder
    rule: HeldOutRule
    before: NDArray[np.intp]
    _masks: dict[int, NDArray[np.uint8]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_parts(self) -> int | None:
        return self.source.n_parts

    def parts(self, numbers: Iterable[int] | None = None) -> Iterator[Part]:
        """All parts, or some by their numbers and in order."""
        wanted = sorted(range(len(self.before)) if numbers is None else numbers)
        for number, part in zip(wanted, self.source.parts(wanted), strict=True):
            held_out = self.rule.mask(part_cells(part, self.coder), self.before[number])
            self._masks[number] = np.packbits(~held_out)
            kept = np.flatnonzero(~held_out)
            yield replace(
                part,
                X=part.X.iloc[kept],
                y=part.y.iloc[kept],
                sensitive_features=part.sensitive_features.iloc[kept],
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
