"""The encoded rows of a table that is read from its parts each time, for data beyond memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairproj.data.checks import counted, distinct_labels
from fairproj.data.parts import Part, Table, checksum_of, encode_features
from fairproj.data.types import Codes


class FeatureSource(Protocol):
    """Rows that can be read again and again."""

    def features(self, parts: Collection[int]) -> Iterator[tuple[int, Part]]:
        """Some parts, by their numbers and in order; only X is needed."""


@dataclass(frozen=True)
class ChosenRows:
    """Some rows of a part, as one bit for each row.

    Attributes
    ----------
    n_rows, n_chosen : int
    bits : array of bytes, optional
        None: all rows.
    labels : int, optional
        The checksum of the labels of all rows of the part.
    """

    n_rows: int
    n_chosen: int
    bits: NDArray[np.uint8] | None = None
    labels: int | None = None

    @classmethod
    def of(cls, mask: NDArray[np.bool_]) -> ChosenRows:
        if mask.all():
            return cls(len(mask), len(mask))
        return cls(len(mask), int(mask.sum()), np.packbits(mask))

    @property
    def mask(self) -> NDArray[np.bool_]:
        if self.bits is None:
            return np.ones(self.n_rows, dtype=bool)
        return np.unpackbits(self.bits, count=self.n_rows).view(bool)

    def take(self, rows: Codes) -> ChosenRows:
        """Some of the chosen rows, by their places among these."""
        mask = np.zeros(self.n_rows, dtype=bool)
        mask[np.flatnonzero(self.mask)[rows]] = True
        return replace(ChosenRows.of(mask), labels=self.labels)


class BatchMatrix:
    """A matrix of 32-bit floats whose rows are read and encoded when they are asked for.

    Each call of `batches` or `rows` is one pass over the source, with one part in memory at a time.

    Parameters
    ----------
    source : FeatureSource
    table : Table
        What the parts of the source agree on.
    chosen : sequence of ChosenRows
        The rows of each part that belong to the matrix.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, source: FeatureSource, table: Table, chosen: Sequence[ChosenRows]) -> None:
        self._source = source
        self._table = table
        self._chosen = list(chosen)
        self._ends = np.cumsum([0, *(part.n_chosen for part in self._chosen)])

    @property
    def shape(self) -> tuple[int, int]:
        return int(self._ends[-1]), self._table.n_features

    def __len__(self) -> int:
        return self.shape[0]

    def batches(self) -> Iterator[NDArray[np.float32]]:
        """All rows in order, a new array for each part that has some."""
        wanted = [number for number, part in enumerate(self._chosen) if part.n_chosen]
        for number, part in self._read(wanted):
            yield self._encode(part, self._chosen[number])

    def rows(self, rows: Codes) -> NDArray[np.float32]:
        """Some rows, in any order; parts without any of them are not read."""
        order = np.argsort(rows, kind="stable")
        ordered = np.asarray(rows)[order]
        matrix = np.empty((len(ordered), self.shape[1]), dtype=np.float32)
        slices = self._slices(ordered)
        wanted = [number for number, some in enumerate(slices) if some.start < some.stop]
        for number, part in self._read(wanted):
            places = ordered[slices[number]] - self._ends[number]
            distinct, at = np.unique(places, return_inverse=True)
            found = self._encode(part, self._chosen[number].take(distinct))
            matrix[order[slices[number]]] = found[at]
        return matrix

    def take(self, rows: Codes) -> BatchMatrix:
        """The matrix of some rows, in increasing order; nothing is read."""
        rows = np.asarray(rows)
        if (np.diff(rows) <= 0).any():
            raise ValueError(
                "rows that are read in batches can only be selected in increasing order, each "
                "once; sort the rows"
            )
        chosen = [
            part.take(rows[some] - start)
            for part, some, start in zip(
                self._chosen, self._slices(rows), self._ends[:-1], strict=True
            )
        ]
        return BatchMatrix(self._source, self._table, chosen)

    def _slices(self, rows: Codes) -> list[slice]:
        """Where the rows of each part stand among ordered rows."""
        ends = np.searchsorted(rows, self._ends)
        return [slice(*pair) for pair in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]

    def _read(self, wanted: list[int]) -> Iterator[tuple[int, Part]]:
        found = 0
        for number, part in self._source.features(wanted):
            found += 1
            yield number, part
        if found < len(wanted):
            raise ValueError(
                f"the source of the rows had {counted(len(self._chosen), 'part')} when it was "
                "first read and "
                f"ends early now, after {found} of {counted(len(wanted), 'part')} that were asked "
                "for; give "
                "the same rows each time"
            )

    def _encode(self, part: Part, chosen: ChosenRows) -> NDArray[np.float32]:
        n_rows = int(np.shape(part.X)[0])
        if n_rows != chosen.n_rows:
            raise ValueError(
                f"{part.name} had {counted(chosen.n_rows, 'row')} when it was first read and has "
                f"{n_rows:,} "
                "now; give the same rows each time"
            )
        if part.y is not None and chosen.labels not in (
            None,
            checksum_of(*distinct_labels(part.y)),
        ):
            raise ValueError(
                f"{part.name} has other labels, or the same in another order, than when it was "
                "first read; give the same rows in the same order each time"
            )
        mask = None if chosen.bits is None else chosen.mask
        return encode_features(part.X, self._table, mask)

    def __repr__(self) -> str:
        return f"BatchMatrix(shape={self.shape})"
