"""Rows to hold out from a table that is read part by part, the same share of each cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairproj.data.types import Codes

_WINDOW = 4096


@dataclass(frozen=True)
class HeldOutRule:
    """Says which rows are held out, from a seed and the number of rows of each cell.

    The rows of a (group, label) cell are numbered in the order of the table. Of each 4,096
    consecutive ones the same share is held out: those with the smallest of 64-bit numbers that a
    Philox generator draws for the seed, the cell and the place of these rows. Which rows are held
    out thus depends neither on the parts that the table is read in nor on who reads them, and it
    can be found again. At least one row of a cell is kept, and of two rows or more at least one is
    held out.

    Attributes
    ----------
    fraction : float
        The share of the rows to hold out, above 0 and below 1.
    seed : int
        Zero or more.
    sizes : tuple of int
        The number of rows of each cell in the whole table.
    """

    fraction: float
    seed: int
    sizes: tuple[int, ...]

    def mask(self, cells: Codes, before: Codes) -> NDArray[np.bool_]:
        """Which of some consecutive rows are held out.

        Parameters
        ----------
        cells : array of shape (n_rows,)
            The cell of each row.
        before : array of shape (n_cells,)
            How many rows of each cell come before them in the table.
        """
        held_out = np.zeros(len(cells), dtype=bool)
        for cell in np.unique(cells).tolist():
            rows = np.flatnonzero(cells == cell)
            start = int(before[cell])
            held_out[rows[self._numbers(cell, start, start + len(rows)) - start]] = True
        return held_out

    def n_held_out(self, cell: int) -> int:
        """How many rows of a cell are held out."""
        size = self.sizes[cell]
        return max(0, min(max(1, round(self.fraction * size)), size - 1))

    def _numbers(self, cell: int, start: int, end: int) -> Codes:
        """The numbers of a cell's held-out rows, from ``start`` to before ``end``."""
        windows = range(start // _WINDOW, -(-end // _WINDOW))
        numbers = np.concatenate([self._in_window(cell, window) for window in windows])
        return numbers[(numbers >= start) & (numbers < end)]

    def _in_window(self, cell: int, window: int) -> Codes:
        start = window * _WINDOW
        end = min(start + _WINDOW, self.sizes[cell])
        n_chosen = self._n_before(cell, end) - self._n_before(cell, start)
        # The raw numbers of a bit generator, unlike permutations, are the same in every NumPy.
        drawn = np.random.Philox([self.seed, cell, window]).random_raw(end - start)
        return start + np.argsort(drawn, kind="stable")[:n_chosen]

    def _n_before(self, cell: int, number: int) -> int:
        """How many of a cell's first rows are held out; whole numbers, so nothing is rounded."""
        size = self.sizes[cell]
        return (self.n_held_out(cell) * number + size // 2) // size
