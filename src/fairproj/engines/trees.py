"""What the engines that grow trees share: predictions from leaf values, and threads."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.types import Array
from fairproj.engines.base import LearnerSettings

# Weights reach the libraries as 32-bit floats, so a leaf whose labels balance exactly may have a
# value of up to 6e-8 either way. A value this close to zero is a tie, and predicts class -1.
LEAF_TIE = 1e-7
ROWS_PER_THREAD = 10_000  # with fewer, threads wait for each other longer than they work
EXPLAINED_PER_THREAD = 100  # a row takes up to a hundred times as long to explain as to predict


def leaf_to_h(value: Array, votes: str, max_step: float = math.inf) -> NDArray[Any]:
    """h from a leaf's value: its sign, as a small integer, or itself."""
    if votes == "newton":
        return np.clip(value, -max_step, max_step)
    if votes == "confidence":
        # A pure leaf may come out as 1 - 1e-15; a learner without mistakes must be seen as such.
        return np.clip(value * (1 + 1e-12), -1.0, 1.0)
    return 2 * (value > LEAF_TIE).view(np.int8) - 1


def threads_for(X: Any, n_threads: int, rows_per_thread: int = ROWS_PER_THREAD) -> int:
    """As many threads as are allowed and pay."""
    return max(1, min(n_threads, int(X.shape[0]) // rows_per_thread))


def monotonic_signs(settings: LearnerSettings, categorical: Collection[int]) -> list[int] | None:
    """1, 0 or -1 for each column; None where nothing is asked for."""
    if settings.monotonic_cst is None:
        return None
    signs = [int(sign) for sign in settings.monotonic_cst]
    by_category = [column for column in categorical if signs[column]]
    if by_category:
        raise ValueError(
            f"monotonic_cst restricts column {by_category[0]}, which holds categories, and these "
            "have no order; set its entry to 0"
        )
    return signs
