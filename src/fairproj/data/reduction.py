"""Sums over all rows, wherever the rows are.

The boosting loop never adds up rows by itself: it adds up the rows at hand and passes the result
to a `Reduction`. On one machine that is the identity. On a cluster, where each worker holds some
of the rows, it is an all-reduce, and the loop is the same.
"""

from __future__ import annotations

from typing import Protocol

from fairproj.data.types import Array


class Reduction(Protocol):
    """Combines an array over all workers; every worker gets the same result."""

    def sum(self, values: Array) -> Array: ...

    def max(self, values: Array) -> Array: ...


class LocalReduction:
    """One worker holds all rows."""

    def sum(self, values: Array) -> Array:
        return values

    def max(self, values: Array) -> Array:
        return values
