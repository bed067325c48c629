"""Passes over the rows in chunks that fit into the processor's cache.

Threads were tried and did not pay: the passes are bound by memory bandwidth, and LightGBM's threads
still spin while they run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from fairproj.data.types import Array

T = TypeVar("T")

CHUNK_ROWS = 32_768


class RowChunks:
    """Calls a function on slices of the rows, each time with a scratch array of their length."""

    def __init__(self, n_rows: int, chunk_rows: int = CHUNK_ROWS) -> None:
        # Without rows there is one empty chunk, so that sums over chunks have their shape.
        starts = range(0, max(n_rows, 1), chunk_rows)
        self._chunks = [slice(start, min(start + chunk_rows, n_rows)) for start in starts]
        self._scratch = np.empty(min(chunk_rows, n_rows))

    def __call__(self, function: Callable[[slice, Array], T]) -> list[T]:
        """The results of all chunks, in the order of the rows."""
        return [function(rows, self._scratch[: rows.stop - rows.start]) for rows in self._chunks]
