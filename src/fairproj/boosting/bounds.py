"""Bounds on the training loss from the record of a run (paper, section 5)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fairproj.data.types import Array

LARGEST = float(np.finfo(float).max)
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


def cost_loss_bound(
    kind: Literal["multiplicative", "additive"] | None,
    edge_w: Array,
    log_cost_loss: Array,
    cost_change: Array,
    slope_mass: Array,
    learning_rate: float = 1.0,
) -> Array:
    """Bound on L_lam(f_t) after each first-order round; NaN where nothing is proved.

    L_lam(f) = sum_i s_i |worth_c| phi(y~_i f(x_i)) / phi(0) is 1 before training, while
    all multipliers are zero. A round with edge gamma under w, which is proportional to
    s |worth| u, and vote ``learning_rate * alpha`` has
    E_w[exp(-vote y~ h)] <= 1 - eta (1 - sqrt(1 - 4 gamma^2)) <= exp(-2 eta gamma^2). A change of
    the costs before it multiplies L_lam by exp(kappa), exactly.

    ==============  ===========================================================================
    multiplicative  exponential loss, where a round multiplies L_lam by that expectation:
                    log L_lam <= sum_t (kappa_t - 2 eta gamma_t^2)
    additive        logistic loss, since ln(1 + exp(-m - d)) <= ln(1 + exp(-m)) + u (exp(-d) - 1):
                    a round lowers L_lam by at least eta S (1 - sqrt(1 - 4 gamma^2)) with
                    S = sum_i s_i |worth_c| u_i / phi(0)
    ==============  ===========================================================================
    """
    if kind is None:
        return np.full(len(edge_w), np.nan)
    if kind == "multiplicative":
        log_bound = np.cumsum(cost_change - 2 * learning_rate * edge_w**2)
        with np.errstate(over="ignore"):
            return np.minimum(np.exp(log_bound), LARGEST)  # JSON has no infinity
    after = np.exp(log_cost_loss)
    earlier = np.concatenate([[1.0], after[:-1]])
    changes = earlier * np.expm1(cost_change)
    gains = learning_rate * slope_mass * (1 - np.sqrt(np.maximum(0.0, 1 - 4 * edge_w**2)))
    bound: Array = 1.0 + np.cumsum(changes - gains)
    return bound
