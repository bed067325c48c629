"""Clopper and Pearson's exact interval of a rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from fairproj.data.types import Array


def exact_interval(hits: Any, n: Any, confidence: float = 0.95) -> tuple[Array, Array]:
    """Clopper & Pearson's interval of a probability: at least ``confidence`` coverage, always.

    The bounds are quantiles of beta distributions: ``low`` has P(at least hits) = alpha/2, ``high``
    P(at most hits) = alpha/2. Where n is 0 it is (0, 1).

    Parameters
    ----------
    hits, n : int or array-like
        The number of rows that count, and the number of all rows.
    confidence : float, default=0.95

    Returns
    -------
    low, high : array
        The bounds, in the shape of ``hits`` and ``n``.

    Examples
    --------
    >>> from fairproj.inference import exact_interval
    >>> low, high = exact_interval(8, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.444 0.975
    """
    check_confidence(confidence)
    hits, n = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    if not ((hits >= 0) & (hits <= n)).all():
        raise ValueError("hits must lie between 0 and n")
    side = 1 - (1 - confidence) / 2
    return 1 - upper_limit(n - hits, n, side), upper_limit(hits, n, side)


def upper_limit(hits: Any, n: Any, confidence: float) -> Array:
    """The one-sided limit: P(at most ``hits``) = 1 - confidence; 1 where every row is a hit."""
    hits, n = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    misses = np.maximum(n - hits, 1.0)
    limit = special.betaincinv(hits + 1, misses, confidence)
    return np.where(hits < n, limit, 1.0)


def largest_over_pairs(values: Array) -> float:
    """The largest entry of a square matrix with a row and a column for each group, a != b."""
    return float(values[~np.eye(len(values), dtype=bool)].max())


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1 - 1e-9:
        wanted = "confidence must lie between 0 and 1"
        if 0 < confidence < 1:
            wanted += ", by more than a billionth"
        raise ValueError(f"{wanted}, got {confidence!r}")
