"""Sums over workers through XGBoost's own communicator."""

from __future__ import annotations

import numpy as np

from fairproj.data.types import Array
from fairproj.engines.xgboost.imports import xgboost


class CollectiveReduction:
    """Combines an array over the workers of the communicator that is open in this thread."""

    def sum(self, values: Array) -> Array:
        return self._combine(values, "SUM")

    def max(self, values: Array) -> Array:
        return self._combine(values, "MAX")

    def _combine(self, values: Array, operation: str) -> Array:
        collective = xgboost().collective
        # XGBoost combines in place; the caller's array stays as it is.
        flat = np.array(values, dtype=np.float64).ravel()
        combined = collective.allreduce(flat, collective.Op[operation])
        return np.asarray(combined, dtype=np.float64).reshape(np.shape(values))
