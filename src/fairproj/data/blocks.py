"""Where the rows of one worker stand in the whole table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fairproj.data.reduction import Reduction
from fairproj.data.types import Array, Codes


@dataclass(frozen=True)
class Blocks:
    """Consecutive parts of a table that one worker holds, in the order of the table.

    Attributes
    ----------
    numbers : tuple of int
        The numbers of the parts in the table, increasing.
    lengths : tuple of int
        How many rows of each part are here.
    n_parts : int
        The number of parts of the table, on all workers.
    """

    numbers: tuple[int, ...]
    lengths: tuple[int, ...]
    n_parts: int

    @classmethod
    def whole(cls, n_rows: int) -> Blocks:
        """All rows of a table."""
        return cls((0,), (n_rows,), 1)

    @property
    def slices(self) -> list[slice]:
        """The rows of each block, counted on this worker."""
        ends = np.cumsum((0, *self.lengths)).tolist()
        return [slice(*pair) for pair in pairwise(ends)]

    def take(self, rows: Codes) -> Blocks:
        """The blocks of some of the rows, given in increasing order."""
        ends = np.searchsorted(rows, np.cumsum((0, *self.lengths)))
        return Blocks(self.numbers, tuple(np.diff(ends).tolist()), self.n_parts)

    def before(self, counts: Array, reduction: Reduction) -> tuple[Array, Array]:
        """Sums over the parts before each block, and over all parts.

        ``counts`` has an entry for each block along axis 0. All workers must call this.
        """
        by_part = np.zeros((self.n_parts, *counts.shape[1:]))
        by_part[list(self.numbers)] = counts
        by_part = reduction.sum(by_part)
        ends = np.cumsum(by_part, axis=0)
        return (ends - by_part)[list(self.numbers)], by_part.sum(axis=0)

    def starts(self, reduction: Reduction) -> tuple[list[int], int]:
        """The position of each block's first row in the whole table, and the table's length."""
        starts, total = self.before(np.array(self.lengths, dtype=float), reduction)
        return starts.astype(int).tolist(), int(total)

    def find(self, positions: Codes, starts: list[int]) -> tuple[NDArray[np.bool_], Codes]:
        """Which of some positions in the whole table are here, and their rows on this worker.

        ``positions`` are increasing; ``starts`` are those that the method `starts` returns.
        """
        here = np.zeros(len(positions), dtype=bool)
        rows = [np.zeros(0, dtype=np.intp)]
        for block, start, length in zip(self.slices, starts, self.lengths, strict=True):
            first, last = np.searchsorted(positions, [start, start + length])
            here[first:last] = True
            rows.append(positions[first:last] - start + block.start)
        return here, np.concatenate(rows).astype(np.intp)
