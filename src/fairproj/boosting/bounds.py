"""Bounds on the training loss from the record of a run (paper, section 5)."""

from __future__ import annotations

import numpy as np

from fairproj.data.types import Array

GAP_TIE = 1e-9  # a gap that exceeds its limit by no more than this counts as within it


def log_bounds(
    edge_q: Array, edge_w: Array, fairness_cost: Array, tv: Array, learning_rate: float = 1.0
) -> dict[str, Array]:
    """Bounds on log L(f_t) / L(f_0) after each round, L the exponential loss.

    A round with edge gamma under q and vote ``learning_rate * alpha`` has
    E_q[exp(-vote y h)] <= exp(-2 learning_rate gamma^2): for the whole vote because
    sqrt(1 - 4 gamma^2) <= exp(-2 gamma^2), for a part of it because the expectation is convex in
    the vote and 1 at vote zero. With |edge_w - edge_q| <= TV <= fairness_cost (Lemma 5.2) follow

    ==========  =============================================================================
    edge        exp(-2 eta sum_t edge_q^2): AdaBoost's own bound
    tv          exp(-2 eta sum_t max(0, edge_w - TV)^2)
    cost        exp(-2 eta sum_t max(0, edge_w - fairness_cost)^2)
    theorem     the same where edge_w > fairness_cost in every round so far (Theorem 5.4); else NaN
    ==========  =============================================================================
    """
    rate = -2 * learning_rate
    cost = rate * np.cumsum(np.maximum(0.0, edge_w - fairness_cost) ** 2)
    premise = np.logical_and.accumulate(edge_w > fairness_cost)
    return {
        "edge": rate * np.cumsum(edge_q**2),
        "tv": rate * np.cumsum(np.maximum(0.0, edge_w - tv) ** 2),
        "cost": cost,
        "theorem": np.where(premise, cost, np.nan),
    }


def log_tilted_bound(edge_w: Array, tilt_cost: Array, learning_rate: float = 1.0) -> Array:
    """Bound on the log of the tilted loss L^t(f_t) after each round of the closed loop.

    L^t(f) is the mean of b^t_i exp(-y_i f(x_i)), b^t the tilt of round t. A round whose vote is
    computed under w, which is proportional to b^t_i exp(-y_i f(x_i)), has
    L^t(f_t) <= L^t(f_{t-1}) exp(-2 learning_rate edge_w^2); a change of the tilt before it adds
    kappa_t = log L^t(f_{t-1}) - log L^{t-1}(f_{t-1}), exactly. So::

        log L^T(f_T) <= sum_t (kappa_t - 2 learning_rate edge_w,t^2)
    """
    bound: Array = np.cumsum(tilt_cost - 2 * learning_rate * edge_w**2)
    return bound
