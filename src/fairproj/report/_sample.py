"""Random samples of rows that come in chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.types import Codes


class RowSample:
    """At most ``most`` rows of a stream, drawn at random, in their order; all if there are fewer.

    Each row draws a number, and the rows with the smallest numbers stay. The sample therefore does
    not depend on the chunks that the rows come in.
    """

    def __init__(self, most: int) -> None:
        self.n_rows = 0
        self._most = most
        self._draws = np.random.Philox(0)
        self._limit = np.iinfo(np.uint64).max  # rows that draw more cannot stay
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def add(self, *columns: NDArray[Any], places: Codes | None = None) -> None:
        """Draw from all rows of the columns, or from those at some places."""
        drawn = self._draws.random_raw(len(columns[0]) if places is None else len(places))
        self.n_rows += len(drawn)
        near = drawn <= self._limit
        taken = near if places is None else places[near]
        self._parts.append((drawn[near], *(column[taken] for column in columns)))
        if sum(len(part[0]) for part in self._parts) > 1.25 * self._most:
            self._shrink()

    def _shrink(self) -> None:
        drawn, *columns = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        if len(drawn) > self._most:
            kept = np.sort(np.argsort(drawn, kind="stable")[: self._most])
            drawn, columns = drawn[kept], [column[kept] for column in columns]
            self._limit = drawn.max()
        self._parts = [(drawn, *columns)]

    def columns(self) -> list[NDArray[Any]]:
        """The columns of the rows that were drawn."""
        self._shrink()
        return list(self._parts[0][1:])


class GroupSample:
    """A sample of the rows of each group, so that small groups have rows too.

    Parameters
    ----------
    n_groups : int
    most : int
        Rows of all groups together; each group may have the same number, but at least 20.
    """

    def __init__(self, n_groups: int, most: int) -> None:
        self.most_of_each = max(20, most // max(1, n_groups))
        self._samples: dict[int, RowSample] = {}

    def add(self, codes: Codes, rows: NDArray[Any]) -> None:
        """Draw from rows of these groups."""
        for code in np.unique(codes).tolist():
            sample = self._samples.setdefault(code, RowSample(self.most_of_each))
            sample.add(rows, places=np.flatnonzero(codes == code))

    def by_group(self) -> dict[int, NDArray[Any]]:
        """The rows that were drawn, for each group that has any."""
        return {code: sample.columns()[0] for code, sample in sorted(self._samples.items())}
