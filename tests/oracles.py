"""Slow, plain versions of the formulas, and solvers we did not write."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize


def kl(p, q):
    """KL(p || q) with 0 log 0 = 0."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    inside = p > 0
    return float(np.sum(p[inside] * np.log(p[inside] / q[inside])))


def project_by_cvxpy(mass, features, epsilon):
    """The primal problem as written in Definition 3.2, by a conic solver."""
    w = cp.Variable(len(mass))
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.kl_div(w, mass))),
        [cp.sum(w) == 1, cp.abs(features.T @ w) <= epsilon],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status tells of an inaccurate solution
        problem.solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=500
        )
    return problem.status, problem.value, w.value


def _log_z(lam, mass, features):
    logits = np.log(mass) - features @ lam
    top = logits.max()
    weights = np.exp(logits - top)
    return top + np.log(weights.sum()), weights / weights.sum()


def project_by_smoothing(mass, features, epsilon, mu=1e-8):
    """The paper's first form: L-BFGS-B on log Z + sum eps sqrt(lam^2 + mu)."""

    def objective(lam):
        log_z, w = _log_z(lam, mass, features)
        root = np.sqrt(lam**2 + mu)
        return log_z + epsilon @ root, -features.T @ w + epsilon * lam / root

    start = np.zeros(features.shape[1])
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-12}
    solution = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return _log_z(solution.x, mass, features)[1], solution.x


def project_by_splitting(mass, features, epsilon):
    """The paper's second form: lam = lam_plus - lam_minus, both bounded by zero from below."""
    n = features.shape[1]

    def objective(both):
        log_z, w = _log_z(both[:n] - both[n:], mass, features)
        slope = features.T @ w
        return log_z + epsilon @ (both[:n] + both[n:]), np.r_[epsilon - slope, epsilon + slope]

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-12}
    solution = minimize(
        objective,
        np.zeros(2 * n),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * n),
        options=options,
    )
    lam = solution.x[:n] - solution.x[n:]
    return _log_z(lam, mass, features)[1], lam


def exact_stump(X, y, w):
    """The stump of least weighted Gini impurity, by trying every cut of every column.

    Returns the prediction in {-1, +1} on X (a tie in a leaf goes to -1) and the impurity.
    """
    best = (np.inf, None)
    for column in X.T:
        for cut in np.unique(column)[:-1]:
            left = column <= cut
            impurity, h = 0.0, np.empty(len(y))
            for side in (left, ~left):
                total, positive = w[side].sum(), w[side & (y > 0)].sum()
                if total > 0:
                    impurity += 2 * positive * (total - positive) / total
                h[side] = 1.0 if positive > total - positive else -1.0
            if impurity < best[0] - 1e-15:
                best = (impurity, h)
    return best[1], best[0]


def exponential_weights(y, margin, sample_weight):
    """q of Definition 3.1."""
    logits = np.log(sample_weight) - y * margin
    q = np.exp(logits - logits.max())
    return q / q.sum()


def compared_rates(constraint, y, predicted, groups, weight=None):
    """The rates that a constraint compares, of shape (n_groups, n_rates)."""
    weight = np.ones(len(y)) if weight is None else weight
    positive, everyone = predicted > 0, np.ones(len(y), dtype=bool)
    rates = {  # the rows that a rate is taken over, and what it counts
        "demographic_parity": [(everyone, positive)],
        "equal_opportunity": [(y > 0, positive)],
        "false_positive_rate_parity": [(y < 0, positive)],
        "equalized_odds": [(y > 0, positive), (y < 0, positive)],
        "accuracy_parity": [(everyone, predicted == y)],
    }[constraint]

    def rate(inside, outcome):
        return np.average(outcome[inside], weights=weight[inside])

    return np.array(
        [
            [rate(rows & (groups == g), outcome) for rows, outcome in rates]
            for g in np.unique(groups)
        ]
    )


def gap(constraint, y, predicted, groups, weight=None):
    """The largest difference of one of these rates between two groups."""
    return np.ptp(compared_rates(constraint, y, predicted, groups, weight), axis=0).max()
