"""Which rows a tree is grown on, drawn such that it does not matter which worker holds a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.blocks import Blocks
from fairproj.data.chunks import CHUNK_ROWS

_NUMBERS_A_STEP = 4  # Philox makes four numbers at a time


class RowDraws:
    """One uniform number for each row and round, by the row's position in the whole table.

    Parameters
    ----------
    share : float
        The share of the rows to draw.
    seed : int
    blocks : Blocks
    starts : sequence of int
        The position of each block's first row in the whole table.
    """

    def __init__(self, share: float, seed: int, blocks: Blocks, starts: Sequence[int]) -> None:
        self._share, self._seed = share, seed
        self._blocks = list(zip(blocks.slices, starts, strict=True))

    def drop(self, round_number: int, *arrays: NDArray[Any]) -> None:
        """Set the arrays to zero at the rows that are not drawn in this round."""
        for rows, start in self._blocks:
            numbers = _numbers_from(start, self._seed, round_number)
            for begin in range(rows.start, rows.stop, CHUNK_ROWS):
                chunk = slice(begin, min(begin + CHUNK_ROWS, rows.stop))
                left_out = numbers.random(chunk.stop - begin) >= self._share
                for array in arrays:
                    array[chunk][left_out] = 0


def _numbers_from(position: int, seed: int, round_number: int) -> np.random.Generator:
    """The stream of random numbers of a round, from the given position on."""
    bits = np.random.Philox(key=np.array([seed, round_number], dtype=np.uint64))
    steps, rest = divmod(position, _NUMBERS_A_STEP)
    bits.advance(steps)
    numbers = np.random.Generator(bits)
    numbers.random(rest)
    return numbers
