"""Passes over the rows, chunk by chunk: what fits in the cache is not fetched twice.

Apart because everything of the size of the data goes through here: the loop's own work in a round
is a handful of such passes beside the one tree that LightGBM grows. (Threads were tried and did
not pay: the passes are bound by memory, and LightGBM's threads still spin while they run.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from fairproj._validation import Array

T = TypeVar("T")

CHUNK = 32_768


class RowPasses:
    """Calls a function on slices of the rows, each time with a scratch array of their length."""

    def __init__(self, n_rows: int, chunk: int = CHUNK) -> None:
        self._chunks = [
            slice(start, min(start + chunk, n_rows)) for start in range(0, n_rows, chunk)
        ]
        self._scratch = np.empty(min(chunk, n_rows))

    def __call__(self, part: Callable[[slice, Array], T]) -> list[T]:
        """The results of all chunks, in the order of the rows."""
        return [part(rows, self._scratch[: rows.stop - rows.start]) for rows in self._chunks]
