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
        "selection_ratio": [(everyone, positive)],
        "predictive_parity": [(positive, y > 0)],
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
    """The largest difference of one of these rates between two groups, or 1 less their ratio."""
    rates = compared_rates(constraint, y, predicted, groups, weight)
    if constraint == "selection_ratio":
        return 1 - rates.min() / rates.max() if rates.max() > 0 else 1.0
    return np.ptp(rates, axis=0).max()


# Signed costs of FairBoostClassifier, row by row. Labels, predictions and the positive label `pos`
# are -1 or +1 here, the weights s sum to one.


def shares(names, y, pos):
    """(name, kind, rows of the event, outcome of predictions) of each distinct rate."""
    positive, everyone = y == pos, np.ones(len(y), dtype=bool)

    def selected(predicted):
        return predicted == pos

    def correct(predicted):
        return predicted == y

    rates = {
        "demographic_parity": [("selection", "difference", everyone, selected)],
        "selection_ratio": [("selection", "ratio", everyone, selected)],
        "equal_opportunity": [("tpr", "difference", positive, selected)],
        "false_positive_rate_parity": [("fpr", "difference", ~positive, selected)],
        "accuracy_parity": [("accuracy", "difference", everyone, correct)],
    }
    rates["equalized_odds"] = rates["equal_opportunity"] + rates["false_positive_rate_parity"]
    names = [names] if isinstance(names, str) else names
    return list({each[:2]: each for name in names for each in rates[name]}.values())


def share_rates(parts, predicted, groups, s):
    """The rate of each group (rows) and part (columns)."""
    return np.array(
        [
            [
                s[inside & (groups == g)]
                @ outcome(predicted)[inside & (groups == g)]
                / s[inside & (groups == g)].sum()
                for _, _, inside, outcome in parts
            ]
            for g in np.unique(groups)
        ]
    ).reshape(len(np.unique(groups)), len(parts))


def share_gaps(parts, rates):
    gaps = []
    for (_, kind, *_), column in zip(parts, rates.T, strict=True):
        low, high = min(column), max(column)
        gaps.append(high - low if kind == "difference" else 1 - (low / high if high else 0.0))
    return np.array(gaps)


def prediction_costs(predicted, parts, lam, nu, y, groups, s, cost, limited):
    """What each row adds to err + sum lam rate + nu (error rate of the limited rows), over s.

    ``cost`` is what an error costs in each row, ``lam`` has a row for each group and a column for
    each part, ``limited`` marks the rows whose errors have a limit.
    """
    wrong = predicted != y
    total = cost * wrong
    for e, (_, _, inside, outcome) in enumerate(parts):
        for a, g in enumerate(np.unique(groups)):
            rows = inside & (groups == g)
            total = total + lam[a, e] * rows * outcome(predicted) / s[rows].sum()
    if limited is not None:
        total = total + nu * limited * wrong / s[limited].sum()
    return total


def signed_costs(parts, lam, nu, y, groups, s, cost, limited=None):
    """zeta of each row, and C_lam, from the costs of both predictions."""
    rest = (parts, lam, nu, y, groups, s, cost, limited)
    ones = np.ones(len(y))
    says_one, says_zero = prediction_costs(ones, *rest), prediction_costs(-ones, *rest)
    return says_zero - says_one, float(s @ np.minimum(says_one, says_zero))


def _move(state, key, violation, rule, unit):
    """The step of one multiplier times its violation; the step adapts first."""
    step, sign = state["steps"].get(key, (rule.first * unit, 0))
    now = int(np.sign(violation))
    step *= {1: rule.growth, 0: 1.0, -1: rule.reduction}[now * sign]
    step = min(max(step, rule.least * unit), rule.largest * unit)
    state["steps"][key] = step, now or sign
    return step * violation


def next_multipliers(state, rates, kinds, allowed, weight, rule, limit_excess=0.0):
    """The multipliers after a round, in plain Python; ``state`` is None before the first.

    ``weight`` has the weight of the rows of each group that each rate counts. ``rule`` has the
    numbers of the rule: first, least and largest step, growth, reduction, band, leak, and the
    largest step of a small group, as a multiple of its weight.
    """
    n_groups = len(rates)
    if state is None:
        state = {"lam": np.zeros((n_groups, len(kinds))), "nu": 0.0, "steps": {}, "pairs": {}}
    for e, kind in enumerate(kinds):
        move_one = _move_difference if kind == "difference" else _move_ratio
        units = [min(1 / n_groups, rule.by_weight * one) for one in weight[:, e]]
        move_one(state, e, rates[:, e], rule.band * allowed[e], rule, units)
    if limit_excess:
        state["nu"] = max(0.0, state["nu"] + _move(state, "limit", limit_excess, rule, 1))
    return state


def _move_difference(state, e, rates, aimed, rule, units):
    middle = (min(rates) + max(rates)) / 2
    beyond = [max(abs(rate - middle) - aimed / 2, 0.0) * np.sign(rate - middle) for rate in rates]
    for a, violation in enumerate(beyond):
        state["lam"][a, e] += _move(state, (a, e), violation, rule, units[a])
    if any(beyond):
        total = sum(state["lam"][:, e])
        for a, unit in enumerate(units):
            state["lam"][a, e] -= total * unit / sum(units)
    else:
        state["lam"][:, e] *= 1 - rule.leak


def _move_ratio(state, e, rates, aimed, rule, units):
    ratio, n_groups = 1 - aimed, len(rates)
    state["lam"][:, e] = 0.0
    for a in range(n_groups):
        for b in range(n_groups):
            if a == b:
                continue
            unit = min(units[a], units[b])
            move = _move(state, (a, b, e), ratio * rates[a] - rates[b], rule, unit)
            pair = max(0.0, state["pairs"].get((a, b, e), 0.0) + move)
            state["pairs"][a, b, e] = pair
            state["lam"][a, e] += ratio * pair
            state["lam"][b, e] -= pair


def useful(y, predicted, s, cost):
    """Whether errors cost less than those of both constants, by the paired standard error."""
    effective = 1 / (s @ s)
    for constant in (-1, 1):
        saved = cost * (1.0 * (y != constant) - 1.0 * (predicted != y))
        mean = s @ saved
        error = np.sqrt(s @ (saved - mean) ** 2 / effective)
        if not mean > error + 1e-9:
            return False
    return True


def says_both(y, predicted, s):
    """Whether the rarer prediction is made for a tenth as many rows as have the rarer label."""
    rarer = min(s @ (predicted == 1), s @ (predicted == -1))
    return bool(rarer >= 0.1 * min(s @ (y == 1), s @ (y == -1)) - 1e-9)


def loss_functions(name):
    """phi and u = -phi' of a margin."""
    if name == "exponential":
        return (lambda m: np.exp(-m)), (lambda m: np.exp(-m))
    return (lambda m: np.log(1 + np.exp(-m))), (lambda m: 1 / (1 + np.exp(m)))
