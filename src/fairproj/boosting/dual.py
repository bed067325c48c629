"""The dual of the projection (Lemma 4.1) for features of any kind.

    min over lam of  F(lam) = log Z(lam) + sum_k epsilon_k |lam_k|,
    Z(lam) = sum_c Q_c exp(-(G lam)_c)

The features are at most 1 in absolute value, and masses are given as logarithms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from scipy.optimize import linprog, nnls

from fairproj.data.types import Array

TOLERANCE = 1e-12  # on the optimality conditions
ROUNDING = 5e-10  # the same where rounding stops F from falling: multipliers in the hundreds
_MAX_STEPS = 200
_FEW_STEPS = 50  # which nearly all problems need
_HALVINGS = 40
_NEAR_ZERO = 1.0  # of multipliers
_NEAR = 1e-3  # residual from where on the multipliers that are not zero are taken to be known
_FIRST_RADIUS = 4.0  # the first step may change a log weight by at most this; doubled when it helps
_WIDE_SPAN = 30.0  # of log masses, from where on the solution is approached in stages
_STRIDES = (2.0, 1.2, 1.03)  # of these stages
_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class ProjectionError(ValueError):
    """No distribution satisfies the constraints."""

    def __init__(
        self,
        message: str = "no distribution on these groups and labels satisfies every constraint; "
        "raise epsilon or drop a constraint",
    ) -> None:
        super().__init__(message)


class _NotConvergedError(ProjectionError):
    """The solver gave up; this says nothing about the constraints."""


class DualSolution(NamedTuple):
    """The multipliers, the cells that they are for, and the number of Newton steps.

    The other cells have no mass under any distribution that satisfies the constraints: their
    multipliers would be infinite.
    """

    multipliers: Array
    reached: NDArray[np.bool_]
    n_steps: int


def solve_dual(log_mass: Array, features: Array, epsilon: Array, start: Array) -> DualSolution:
    """The dual solution.

    Newton's method solves nearly all problems in a few steps. Where it does not, a linear program
    tells whether there is a solution, and on which cells.
    """
    present = np.isfinite(log_mass)
    strides = [math.inf, *_STRIDES] if start.any() else list(_STRIDES)
    try:
        lam, n_steps = _in_stages(log_mass, features, epsilon, start, strides[0], _FEW_STEPS)
        return DualSolution(lam, present, n_steps)
    except _NotConvergedError:
        reached = present.copy()
        reached[present] = reachable(features[present], epsilon)
    if not reached.any():
        raise ProjectionError
    log_mass, features = log_mass[reached], features[reached]
    keep = independent(features, epsilon)  # on fewer cells, fewer are
    features, epsilon = features[:, keep], epsilon[keep]
    lam = np.zeros(len(start))
    for stride in strides:
        try:
            lam[keep], n_steps = _in_stages(
                log_mass, features, epsilon, start[keep], stride, _MAX_STEPS
            )
            return DualSolution(lam, reached, n_steps)
        except _NotConvergedError:
            continue
    raise _NotConvergedError(
        f"the projection did not converge on masses between exp({log_mass.min():.0f}) and "
        f"exp({log_mass.max():.0f}); raise epsilon or merge groups"
    )


def reachable(features: Array, epsilon: Array) -> NDArray[np.bool_]:
    """The cells that have mass under some distribution that satisfies the constraints.

    Solves ``max sum_c s_c  s.t.  |sum_c v_c G_ck| <= eps_k sum_c v_c,  0 <= s_c <= min(v_c, 1)``
    over v, which is any multiple of a distribution. Distributions can be mixed, so one v has
    s_c = 1 for every cell that can have mass, and s_c = 0 for the others. Masses q play no part.
    """
    n_cells = len(features)
    bounds = np.vstack([features.T - epsilon[:, None], -features.T - epsilon[:, None]])
    rows = np.block(
        [[bounds, np.zeros((len(bounds), n_cells))], [-np.eye(n_cells), np.eye(n_cells)]]
    )
    cost = np.repeat([0.0, -1.0], n_cells)
    limits = [(0, None)] * n_cells + [(0, 1)] * n_cells
    solution = linprog(cost, rows, np.zeros(len(rows)), bounds=limits, options=_EXACT)
    if solution.status != 0:  # rather look for a solution in vain than refuse to look
        return np.ones(n_cells, dtype=bool)
    return np.asarray(solution.x[n_cells:] > 1e-3)


def independent(features: Array, epsilon: Array) -> NDArray[np.bool_]:
    """Which constraints to solve for: an equality (no slack) that follows from others is left out.

    Its multiplier would be arbitrary, and could grow without bound.
    """
    keep = np.ones(len(epsilon), dtype=bool)
    equalities = np.flatnonzero(epsilon == 0)
    if len(equalities) > 1:
        _, r, order = qr(features[:, equalities], mode="economic", pivoting=True)
        rank = int((np.abs(np.diag(r)) > 1e-10).sum())
        keep[equalities[order[rank:]]] = False
    return keep


def tilted_mass(log_mass: Array, features: Array, multipliers: Array) -> tuple[float, Array]:
    """log Z(lam) and the masses of the tilted cells, w_c = Q_c exp(-(G lam)_c) / Z(lam)."""
    logits = log_mass - features @ multipliers
    top = logits.max()
    weights = np.exp(logits - top)
    total = weights.sum()
    return float(top + math.log(total)), weights / total


def _in_stages(
    log_mass: Array, features: Array, epsilon: Array, start: Array, stride: float, max_steps: int
) -> tuple[Array, int]:
    """The dual solution, by way of softened masses where some cells are next to empty.

    Masses Q^s with a small s are within reach of one another, and multipliers grow about like s:
    each solution starts the next.
    """
    log_mass = log_mass - log_mass.max()
    span = -log_mass[np.isfinite(log_mass)].min()
    stages = math.ceil(math.log(max(1.0, span / _WIDE_SPAN), stride))
    lam, n_steps = start if stages == 0 else np.zeros(len(start)), 0
    for power in range(stages, -1, -1):
        softened = log_mass / stride**power if power else log_mass
        lam, more = _newton(softened, features, epsilon, lam, max_steps)
        lam, n_steps = stride * lam if power else lam, n_steps + more
    return lam, n_steps


class _Point(NamedTuple):
    """Multipliers with F, the masses w and <w, g>."""

    lam: Array
    value: float
    mass: Array
    balance: Array


def _newton(
    log_mass: Array, features: Array, epsilon: Array, start: Array, max_steps: int
) -> tuple[Array, int]:
    """Minimise F by a proximal Newton method.

    log Z has gradient -<w, g> and Hessian Cov_w(g). A step goes to the minimum of that quadratic
    model plus the absolute values themselves, and is halved until F falls.
    """

    def at(lam: Array) -> _Point:
        log_z, mass = tilted_mass(log_mass, features, lam)
        return _Point(lam, float(log_z + epsilon @ np.abs(lam)), mass, mass @ features)

    # -F never exceeds KL(p || q) for a feasible p, and no p has a larger KL than this (the masses
    # need not sum to one here).
    largest_kl = np.logaddexp.reduce(log_mass) - log_mass[np.isfinite(log_mass)].min()
    point, radius, stalled = at(start), _FIRST_RADIUS, False
    for n_steps in range(max_steps):
        residual = _residual(point, epsilon)
        if residual <= (ROUNDING if stalled else TOLERANCE):
            return point.lam, n_steps
        if -point.value > largest_kl + 1e-6 * (1 + largest_kl):
            raise ProjectionError
        if residual < _NEAR:
            trial = at(point.lam + _correction(point, features, epsilon))
            if _residual(trial, epsilon) < residual / 2:
                point = trial
                continue
        step = _step(point, features, epsilon, radius, residual)
        noise = 1e-15 * (1 + abs(point.value))
        for halving in range(_HALVINGS):
            trial = at(step.end if halving == 0 else point.lam + step.change * 0.5**halving)
            fall = point.value - trial.value
            promised = point.balance @ (trial.lam - point.lam)
            promised += epsilon @ (np.abs(point.lam) - np.abs(trial.lam))
            if fall >= 1e-4 * promised - noise:
                break
        stalled = bool(fall <= noise)
        point = trial
        radius = 2 * radius if step.limited and halving == 0 else _FIRST_RADIUS
    raise _NotConvergedError


def _residual(point: _Point, epsilon: Array) -> float:
    """How far optimality is from holding: <w, g_k> = eps_k sign(lam_k), or inside if lam_k = 0."""
    tight = np.abs(point.balance - epsilon * np.sign(point.lam))
    outside = np.maximum(np.abs(point.balance) - epsilon, 0.0)
    return float(np.where(point.lam != 0, tight, outside).max(initial=0.0))


def _correction(point: _Point, features: Array, epsilon: Array) -> Array:
    """The change of the multipliers that are not zero which makes their constraints tight.

    Solves ``H d = balance - eps sign(lam)`` for these, H = A'A as in `_model_minimum`, in the least
    squares sense. Being a change, it has no rounding in proportion to lam.
    """
    active = point.lam != 0
    balance = point.balance[active]
    spread = np.sqrt(point.mass)[:, None] * (features[:, active] - balance)
    _, size, axes = svd(spread, full_matrices=False, check_finite=False)
    known = size > 1e-12 * size.max(initial=0.0)
    axes, size = axes[known], size[known]
    wanted = balance - epsilon[active] * np.sign(point.lam[active])
    change = np.zeros(len(point.lam))
    change[active] = axes.T @ ((axes @ wanted) / size**2)
    return change


class _Step(NamedTuple):
    """The change of the multipliers, where it ends, and whether the radius made it shorter."""

    change: Array
    end: Array
    limited: bool


def _step(point: _Point, features: Array, epsilon: Array, radius: float, residual: float) -> _Step:
    """The step to the minimum of the model, or as far as the radius allows.

    The radius bounds the change of any log weight, because far from the solution log Z is linear
    and tells no distance. Where the model would go farther, cells of little mass, which have no say
    in H, get a least mass in it: so much that they stay about within the radius, while the others
    keep their step.
    """
    near = np.abs(point.lam) <= _NEAR_ZERO
    for least in (0.0, residual / radius):
        mass = np.maximum(point.mass, least)
        target, height = _model_minimum(point, near, mass, features, epsilon)
        direction = target - height * np.where(near, point.lam, 0.0)
        change = float(np.abs(features @ direction).max())
        if change <= radius * height:
            break
    reach = max(change / radius, _crossing(point.lam, near, direction))
    if reach > height:
        return _Step(direction / reach, point.lam + direction / reach, limited=True)
    # The end is the same but for rounding, with its zeros exact.
    end = np.where(near, target / height, point.lam + direction / height)
    return _Step(direction / height, end, limited=least > 0)


def _crossing(lam: Array, near: NDArray[np.bool_], direction: Array) -> float:
    """1 / the length of a step after which a multiplier far from zero is a tenth of itself."""
    towards = ~near & (direction * lam < 0)
    return float(np.max(-direction[towards] / lam[towards], initial=0.0)) / 0.9


def _model_minimum(
    point: _Point, near: NDArray[np.bool_], mass: Array, features: Array, epsilon: Array
) -> tuple[Array, float]:
    """Where the quadratic model plus the absolute values is least: at ``target / height``.

    min over m of  -balance (m - lam) + 1/2 (m - lam) H (m - lam) + sum_k eps_k |m_k|,  H = A'A,
    A = sqrt(w) (G - <w, G>), has the dual  min |x|^2  s.t.  |balance + H lam - A'x| <= eps:
    a least-distance problem, which non-negative least squares solves exactly (Lawson & Hanson
    1974, chapter 23). It copes with the linear dependence that all pairs of groups bring. Where H
    is too small to say how far to go, ``height`` is tiny or zero and ``target`` a good direction.

    For multipliers that are not near zero, ``target / height`` is the change m - lam: their
    absolute values are straight lines, which add ``eps sign(lam)`` to the slope. In hundreds, they
    would otherwise leave nothing of the small change but rounding.
    """
    n_cells, n_constraints = features.shape
    spread = np.sqrt(mass)[:, None] * (features - point.balance)
    goal = point.balance + spread.T @ (spread @ np.where(near, point.lam, 0.0))
    goal -= np.where(near, 0.0, epsilon * np.sign(point.lam))
    slack = np.where(near, epsilon, 0.0)
    system = np.empty((n_cells + 1, 2 * n_constraints))  # [A, -A; goal - slack, -goal - slack]
    system[:-1, :n_constraints] = spread
    system[:-1, n_constraints:] = -spread
    system[-1, :n_constraints] = goal - slack
    system[-1, n_constraints:] = -goal - slack
    unit = np.zeros(n_cells + 1)
    unit[-1] = 1.0
    solution, _ = nnls(system, unit)
    target = solution[:n_constraints] - solution[n_constraints:]
    return target, max(0.0, 1.0 - float(system[-1] @ solution))
