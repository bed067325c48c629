"""The KL projection of the paper (Definition 3.2, Lemma 4.1), on cell masses.

It knows neither rows nor groups; its size is the number of cells. Masses are given as logarithms,
so that a cell of mass exp(-1400), which margins of +-700 produce, needs no special treatment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from scipy.optimize import brentq, nnls
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fairproj.boosting.parity import BlockProjection, NoRoomError, between_pairs, project_cells
from fairproj.data.types import Array, Codes

TOLERANCE = 1e-12  # on the optimality conditions, features scaled to at most 1
NO_FEATURE = 1e-12  # features no larger than this are rounding
ROUNDING = 5e-10  # the same where rounding stops F from falling: multipliers in the hundreds
_MAX_STEPS = 200
_HALVINGS = 40
_NEAR_ZERO = 1.0  # of multipliers, features scaled to at most 1
_NEAR = 1e-3  # residual from where on the multipliers that are not zero are taken to be known
_FIRST_RADIUS = 4.0  # the first step may change a log weight by at most this; doubled when it helps
_LARGEST_LOG = 1e5  # beyond the logarithm of any mass
_WIDE_SPAN = 30.0  # of log masses, from where on the solution is approached in stages


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


@dataclass(frozen=True)
class Projection:
    """The distribution w nearest to q, cell by cell, and what it costs to go there.

    Attributes
    ----------
    multipliers : array of shape (n_constraints,)
        The dual solution lam of Lemma 4.1; zero where a constraint is slack.
    log_factors : array of shape (n_cells,)
        log(w_i / q_i), the same for every row of a cell.
    mass : array of shape (n_cells,)
        The cells' masses under w.
    balance, balance_q : array of shape (n_constraints,)
        <w, g_k>, at most epsilon_k in absolute value, and <q, g_k>.
    kl, tv : float
        KL(w || q) and the total variation between w and q.
    n_steps : int
        Newton steps taken; 0 when q was inside already or a closed form applied.
    """

    multipliers: Array
    log_factors: Array
    mass: Array
    balance: Array
    balance_q: Array
    kl: float
    tv: float
    n_steps: int = 0

    @cached_property
    def factors(self) -> Array:
        """w_i / q_i for every cell (may overflow where ``log_factors`` does not)."""
        return np.exp(self.log_factors)

    @property
    def fairness_cost(self) -> float:
        """delta = sqrt(KL(w || q) / 2)."""
        return math.sqrt(self.kl / 2)


def project(
    log_mass: Array, features: Array, epsilon: Array, start: Array | None = None
) -> Projection:
    """Project q on the distributions w with ``|<w, g_k>| <= epsilon_k``.

    Solves ``min KL(w || q)  s.t.  |sum_c w_c G_ck| <= epsilon_k`` over the simplex through its
    dual::

        lam* = argmin  log Z(lam) + sum_k epsilon_k |lam_k|,   Z(lam) = sum_c Q_c exp(-(G lam)_c)

    and returns ``w_c = Q_c exp(-(G lam*)_c) / Z(lam*)``.

    Parameters
    ----------
    log_mass : array of shape (n_cells,)
        log Q_c, with ``sum_c Q_c = 1``; ``-inf`` for an empty cell.
    features : array of shape (n_cells, n_constraints)
        G, the constraint features of each cell.
    epsilon : array of shape (n_constraints,)
        Slack of each constraint, zero or more.
    start : array of shape (n_constraints,), optional
        Multipliers to start from, usually the last round's.
    """
    return Projector(features, epsilon)(log_mass, start)


def tilt(log_mass: Array, log_factors: Array) -> Projection:
    """The distribution w_c proportional to Q_c exp(log_factors_c), whatever the factors."""
    normalised = log_factors - np.logaddexp.reduce(log_mass + log_factors)
    mass = np.exp(log_mass + normalised)
    return Projection(
        multipliers=np.zeros(0),
        log_factors=normalised,
        mass=mass,
        balance=np.zeros(0),
        balance_q=np.zeros(0),
        kl=_divergence(mass, normalised),
        tv=float(np.abs(mass - np.exp(log_mass)).sum() / 2),
    )


class Projector:
    """`project` for fixed constraints: chooses the way of solving once, then solves many times."""

    def __init__(self, features: Array, epsilon: Array) -> None:
        self.features = np.array(features, dtype=float)
        self.epsilon = np.asarray(epsilon, dtype=float)
        self._disjoint = _Disjoint.of(self.features, self.epsilon)
        self._alike = _AlikeBlocks.of(self.features, self.epsilon)
        if self._alike is not None:
            return
        # Features of rounding noise are none: scaled to one they would be impossible constraints.
        self.features[:, np.abs(self.features).max(axis=0, initial=0.0) <= NO_FEATURE] = 0.0
        self._scale = np.abs(self.features).max(axis=0, initial=0.0)
        self._scale[self._scale == 0] = 1.0
        self._keep = _independent(self.features / self._scale, self.epsilon)
        self._keep &= self.epsilon < self._scale  # |<w, g>| <= max |g|: a wider slack asks nothing

    def __call__(self, log_mass: Array, start: Array | None = None) -> Projection:
        mass = np.exp(log_mass)
        balance = mass @ self.features
        if (np.abs(balance) <= self.epsilon).all():
            nothing = np.zeros(len(balance)), np.zeros(len(mass))
            return Projection(*nothing, mass, balance, balance, kl=0.0, tv=0.0)
        if self._disjoint is not None and np.isfinite(log_mass).all():
            multipliers, n_steps = self._disjoint.multipliers(log_mass), 0
        elif self._alike is not None:
            return self._of_blocks(log_mass, mass, balance)
        else:
            multipliers, n_steps = self._general(log_mass, start)
        log_z, tilted = _tilted(log_mass, self.features, multipliers)
        log_factors = -(self.features @ multipliers) - log_z
        kl = _divergence(tilted, log_factors)
        tv = 0.5 * float(np.abs(tilted - mass).sum())
        after = tilted @ self.features
        return Projection(multipliers, log_factors, tilted, after, balance, kl, tv, n_steps)

    def _of_blocks(self, log_mass: Array, mass: Array, balance: Array) -> Projection:
        assert self._alike is not None
        log_factors, multipliers = self._alike.solve(log_mass)
        tilted = np.exp(log_mass + log_factors)
        kl, tv = _divergence(tilted, log_factors), 0.5 * float(np.abs(tilted - mass).sum())
        after = tilted @ self.features
        return Projection(multipliers, log_factors, tilted, after, balance, kl, tv)

    def _general(self, log_mass: Array, start: Array | None) -> tuple[Array, int]:
        keep, scale = self._keep, self._scale
        lam = np.zeros(len(scale)) if start is None else start * scale
        lam[~keep] = 0.0
        lam[keep], n_steps = _solve(
            log_mass, (self.features / scale)[:, keep], (self.epsilon / scale)[keep], lam[keep]
        )
        return lam / scale, n_steps


class BlockProjector:
    """The projection for many groups whose masses must be alike; see `fairproj.boosting.parity`.

    Each block b of an event has the balance ``2 (M_b - middle)``, where the middle is halfway
    between the largest and the smallest M of the event: the largest balance of an event is the
    largest difference between two blocks. With the multipliers, which are half of log(Q_b / Z) -
    log M_b and add up to 0 in each event, Lemma 4.1 holds as it stands.

    Parameters
    ----------
    block : array of shape (n_cells,)
        The block of each cell; ``len(event)`` for a cell that is in none.
    event : array of shape (n_blocks,)
    epsilon : array of shape (n_blocks,)
        The same for all blocks of an event.
    """

    def __init__(self, block: Codes, event: Codes, epsilon: Array) -> None:
        self._block, self._event = block, event
        self._epsilon = np.full(event.max(initial=-1) + 1, -1.0)
        self._epsilon[event] = epsilon
        if (self._epsilon[event] != epsilon).any():
            raise ValueError(
                "epsilon must be the same for all groups of a rate, where there are so many groups"
            )

    def __call__(self, log_mass: Array, start: Array | None = None) -> Projection:
        mass = np.exp(log_mass)
        balance = self._balance(mass)
        if (np.abs(balance) <= self._epsilon[self._event]).all():
            nothing = np.zeros(len(balance)), np.zeros(len(mass))
            return Projection(*nothing, mass, balance, balance, kl=0.0, tv=0.0)
        log_factors, blocks = _project_cells(log_mass, self._block, self._event, self._epsilon)
        tilted = np.exp(log_mass + log_factors)
        return Projection(
            multipliers=blocks.excess / 2,
            log_factors=log_factors,
            mass=tilted,
            balance=self._balance(tilted),
            balance_q=balance,
            kl=_divergence(tilted, log_factors),
            tv=0.5 * float(np.abs(tilted - mass).sum()),
        )

    def _balance(self, mass: Array) -> Array:
        masses = np.bincount(self._block, mass, len(self._event) + 1)[:-1].astype(float)
        n_events = len(self._epsilon)
        low, high = np.full(n_events, np.inf), np.full(n_events, -np.inf)
        np.minimum.at(low, self._event, masses)
        np.maximum.at(high, self._event, masses)
        return np.asarray(2 * masses - (low + high)[self._event])


def _project_cells(
    log_mass: Array, block: Codes, event: Codes, epsilon: Array
) -> tuple[Array, BlockProjection]:
    try:
        return project_cells(log_mass, block, event, epsilon)
    except NoRoomError:
        raise ProjectionError from None


def _divergence(mass: Array, log_factors: Array) -> float:
    """KL(w || q). A cell without mass adds nothing.

    Lemma 4.1 gives -log Z - sum eps |lam|, which is the same number with the cancellation of two
    large terms.
    """
    return max(0.0, float(mass @ np.where(mass > 0, log_factors, 0.0)))


def _tilted(log_mass: Array, features: Array, multipliers: Array) -> tuple[float, Array]:
    """log Z(lam) and the masses of the tilted cells, w_c = Q_c exp(-(G lam)_c) / Z(lam)."""
    logits = log_mass - features @ multipliers
    top = logits.max()
    weights = np.exp(logits - top)
    total = weights.sum()
    return float(top + math.log(total)), weights / total


@dataclass(frozen=True)
class _Disjoint:
    """Constraints with g in {-1, 0, 1} that share no cell: one constraint, or two groups' odds.

    Let P_k > M_k be the masses of g_k = +1 and -1 (else swap them; lam_k changes its sign) and N
    the mass that no constraint touches. A tight constraint satisfies, with x_k = exp(-lam_k),

        P_k x_k - M_k / x_k = eps_k Z,     P_k x_k + M_k / x_k = sqrt(eps_k^2 Z^2 + 4 P_k M_k) = z_k

    so every multiplier is explicit once Z = sum_k z_k + N is known. For one constraint Z is
    explicit too; for more it is the root of a decreasing function of log Z.
    """

    plus: list[list[int]]
    minus: list[list[int]]
    rest: list[int]
    log_epsilon: list[float]

    @classmethod
    def of(cls, features: Array, epsilon: Array) -> _Disjoint | None:
        touched = (features != 0).sum(axis=1)
        if not np.isin(features, (-1.0, 0.0, 1.0)).all() or touched.max(initial=0) > 1:
            return None
        if (epsilon >= 1).any() or not ((features > 0).any(0) & (features < 0).any(0)).all():
            return None
        cells = [np.flatnonzero(column > 0).tolist() for column in features.T]
        others = [np.flatnonzero(column < 0).tolist() for column in features.T]
        logs = [math.log(e) if e > 0 else -math.inf for e in epsilon.tolist()]
        return cls(cells, others, np.flatnonzero(touched == 0).tolist(), logs)

    def multipliers(self, log_mass: Array) -> Array:
        log_q = log_mass.tolist()
        sides = [
            (_log_sum([log_q[c] for c in p]), _log_sum([log_q[c] for c in m]))
            for p, m in zip(self.plus, self.minus, strict=True)
        ]
        log_rest = _log_sum([log_q[c] for c in self.rest])
        log_z = self._log_z(sides, log_rest)
        lam = []
        for (plus, minus), log_epsilon in zip(sides, self.log_epsilon, strict=True):
            tight = _log_tight(plus, minus, log_epsilon + log_z)
            if tight >= _log_add(plus, minus):
                lam.append(0.0)
            else:
                root = _log_add(tight, log_epsilon + log_z) - math.log(2)
                lam.append(plus - root if plus > minus else root - minus)
        return np.array(lam)

    def _log_z(self, sides: list[tuple[float, float]], log_rest: float) -> float:
        if len(sides) == 1:  # (1 - eps^2) Z^2 - 2 N Z + N^2 - 4 P M = 0
            (log_epsilon,) = self.log_epsilon
            shrink = math.log1p(-math.exp(2 * log_epsilon))
            root = _log_add(2 * (log_epsilon + log_rest), math.log(4) + shrink + sum(sides[0]))
            return _log_add(log_rest, root / 2) - shrink

        def log_total(log_z: float) -> float:
            """log(sum_k z_k(Z) + N), which grows with Z, but less than Z."""
            total = log_rest
            for (plus, minus), log_epsilon in zip(sides, self.log_epsilon, strict=True):
                tight = _log_tight(plus, minus, log_epsilon + log_z)
                total = _log_add(total, min(tight, _log_add(plus, minus)))
            return total

        low = max(log_total(-math.inf), -_LARGEST_LOG)  # and Z is at most 1
        if log_total(low) <= low:
            return low
        if log_total(0.0) >= 0:
            return 0.0
        return float(brentq(lambda z: log_total(z) - z, low, 0.0, xtol=1e-15, rtol=1e-15))


@dataclass(frozen=True)
class _AlikeBlocks:
    """Constraints that are all pairs of some blocks of cells, for each of several events.

    Attributes
    ----------
    block : array of shape (n_cells,)
        The block of each cell; that of the last number is the rest.
    event : array of shape (n_blocks,)
    first, second : array of shape (n_constraints,)
        The blocks of each pair.
    epsilon : array of shape (n_events,)
    """

    block: Codes
    event: Codes
    first: Codes
    second: Codes
    epsilon: Array

    @classmethod
    def of(cls, features: Array, epsilon: Array) -> _AlikeBlocks | None:
        """None where the features are others."""
        n_constraints = features.shape[1]
        if not n_constraints or not np.isin(features, (-1.0, 0.0, 1.0)).all():
            return None
        # Cells of a block have equal features; sums of distinct integers tell them apart.
        numbers = np.random.default_rng(0).integers(1, 2**53 // n_constraints, n_constraints)
        touched = features.any(axis=1)
        _, cells, block = np.unique(
            features[touched] @ numbers, return_index=True, return_inverse=True
        )
        rows = features[touched][cells]
        one_each = ((rows > 0).sum(axis=0) == 1) & ((rows < 0).sum(axis=0) == 1)
        if not one_each.all() or not np.array_equal(rows[block], features[touched]):
            return None
        first, second = (rows < 0).argmax(axis=0), (rows > 0).argmax(axis=0)
        event = _complete_graphs(len(rows), first, second)
        if event is None:
            return None
        slack = np.full(event.max() + 1, -1.0)
        slack[event[first]] = epsilon
        if (slack[event[first]] != epsilon).any():
            return None
        blocks = np.full(len(features), len(rows), dtype=np.intp)
        blocks[touched] = block
        return cls(blocks, event, first, second, slack)

    def solve(self, log_mass: Array) -> tuple[Array, Array]:
        """log(w / q) of the cells, and the multipliers of the pairs."""
        log_factors, blocks = _project_cells(log_mass, self.block, self.event, self.epsilon)
        return log_factors, between_pairs(blocks.excess, self.event, self.first, self.second)


def _complete_graphs(n_blocks: int, first: Codes, second: Codes) -> Codes | None:
    """The event of each block, if every two blocks of an event are a pair, once; else None."""
    edges = coo_array((np.ones(len(first)), (first, second)), shape=(n_blocks, n_blocks))
    n_events, event = connected_components(edges, directed=False)
    size = np.bincount(event, minlength=n_events)
    distinct = len(np.unique(np.minimum(first, second) * n_blocks + np.maximum(first, second)))
    if len(first) != distinct or distinct != int((size * (size - 1) // 2).sum()):
        return None
    return np.asarray(event, dtype=np.intp)


def _log_tight(plus: float, minus: float, log_slack: float) -> float:
    """log sqrt(eps^2 Z^2 + 4 P M), below log(P + M) exactly when the constraint is violated."""
    return _log_add(2 * log_slack, math.log(4) + plus + minus) / 2


def _log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b)): for two floats, many times faster than NumPy."""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


def _log_sum(values: list[float]) -> float:
    return reduce(_log_add, values, -math.inf)


def _independent(features: Array, epsilon: Array) -> NDArray[np.bool_]:
    """Which constraints to solve for: an equality (no slack) that follows from others is left out.

    Its multiplier would be arbitrary, and could grow without bound.
    """
    keep = np.ones(len(epsilon), dtype=bool)
    equalities = np.flatnonzero(epsilon == 0)
    if len(equalities) > 1:
        _, r, order = qr(features[:, equalities], mode="economic", pivoting=True)
        rank = int((np.abs(np.diag(r)) > 1e-10 * abs(r[0, 0])).sum())
        keep[equalities[order[rank:]]] = False
    return keep


def _solve(log_mass: Array, features: Array, epsilon: Array, start: Array) -> tuple[Array, int]:
    """The dual solution, by way of softened masses where some cells are next to empty.

    Masses Q^s with a small s are within reach of one another, and multipliers grow about like s:
    each solution starts the next.
    """
    log_mass = log_mass - log_mass.max()
    span = -log_mass[np.isfinite(log_mass)].min()
    for stride in (math.inf if start.any() else 2.0, 2.0, 1.2, 1.03):
        stages = math.ceil(math.log(max(1.0, span / _WIDE_SPAN), stride))
        lam, n_steps = start if stages == 0 else np.zeros(len(start)), 0
        try:
            for power in range(stages, 0, -1):
                lam, more = _newton(log_mass / stride**power, features, epsilon, lam)
                lam, n_steps = stride * lam, n_steps + more
            lam, more = _newton(log_mass, features, epsilon, lam)
            return lam, n_steps + more
        except _NotConvergedError:
            continue
    raise _NotConvergedError(
        f"the projection did not converge on masses between exp({-span:.0f}) and 1; "
        "raise epsilon or merge groups"
    )


def _newton(log_mass: Array, features: Array, epsilon: Array, start: Array) -> tuple[Array, int]:
    """Minimise F(lam) = log Z(lam) + sum_k eps_k |lam_k| by a proximal Newton method.

    log Z has gradient -<w, g> and Hessian Cov_w(g). A step goes to the minimum of that quadratic
    model plus the absolute values themselves, and is halved until F falls. A radius bounds the
    change of any log weight, because far from the solution log Z is linear and tells no distance.
    Where the model would go farther, cells of little mass, which have no say in H, get a least mass
    in it: so much that they stay within the radius, while the others keep their step.
    """
    lam = start
    log_z, mass = _tilted(log_mass, features, lam)
    value = log_z + epsilon @ np.abs(lam)
    # -F never exceeds KL(p || q) for a feasible p, and no p has a larger KL than this (the masses
    # need not sum to one here).
    largest_kl = np.logaddexp.reduce(log_mass) - log_mass[np.isfinite(log_mass)].min()
    radius, stalled = _FIRST_RADIUS, False
    for n_steps in range(_MAX_STEPS):
        balance = mass @ features
        residual = _residual(lam, balance, epsilon)
        if residual <= (ROUNDING if stalled else TOLERANCE):
            return lam, n_steps
        if residual < _NEAR:
            trial = lam + _correction(lam, mass, features, balance, epsilon)
            log_z, tilted = _tilted(log_mass, features, trial)
            if _residual(trial, tilted @ features, epsilon) < residual / 2:
                lam, mass, value = trial, tilted, log_z + epsilon @ np.abs(trial)
                continue
        if -value > largest_kl + 1e-6 * (1 + largest_kl):
            raise ProjectionError
        near = np.abs(lam) <= _NEAR_ZERO
        for least in (0.0, residual / radius):
            target, height = _model_minimum(
                lam, near, np.maximum(mass, least), features, balance, epsilon
            )
            direction = target - height * np.where(near, lam, 0.0)
            change = np.abs(features @ direction).max()
            if change <= radius * height:
                break
        reach = max(change / radius, _crossing(lam, near, direction))
        whole = reach <= height
        length = 1 / height if whole else 1 / reach
        noise = 1e-15 * (1 + abs(value))
        for halving in range(_HALVINGS):
            trial = lam + direction * (length * 0.5**halving)
            if whole and halving == 0:  # the same but for rounding, with its zeros exact
                trial = np.where(near, target / height, trial)
            log_z, mass = _tilted(log_mass, features, trial)
            fall = value - log_z - epsilon @ np.abs(trial)
            promised = balance @ (trial - lam) + epsilon @ (np.abs(lam) - np.abs(trial))
            if fall >= 1e-4 * promised - noise:
                break
        stalled = bool(fall <= noise)
        lam, value = trial, value - fall
        radius = 2 * radius if not whole and halving == 0 else _FIRST_RADIUS
    raise _NotConvergedError


def _residual(multipliers: Array, balance: Array, epsilon: Array) -> float:
    """How far optimality is from holding: <w, g_k> = eps_k sign(lam_k), or inside if lam_k = 0."""
    tight = np.abs(balance - epsilon * np.sign(multipliers))
    outside = np.maximum(np.abs(balance) - epsilon, 0.0)
    return float(np.where(multipliers != 0, tight, outside).max())


def _correction(lam: Array, mass: Array, features: Array, balance: Array, epsilon: Array) -> Array:
    """The change of the multipliers that are not zero which makes their constraints tight.

    Solves ``H d = balance - eps sign(lam)`` for these, H = A'A as in `_model_minimum`, in the least
    squares sense. Being a change, it has no rounding in proportion to lam.
    """
    active = lam != 0
    spread = np.sqrt(mass)[:, None] * (features[:, active] - balance[active])
    _, size, axes = svd(spread, full_matrices=False, check_finite=False)
    axes = axes[size > 1e-12 * size.max(initial=0.0)]
    size = size[size > 1e-12 * size.max(initial=0.0)]
    wanted = balance[active] - epsilon[active] * np.sign(lam[active])
    change = np.zeros(len(lam))
    change[active] = axes.T @ ((axes @ wanted) / size**2)
    return change


def _crossing(lam: Array, near: NDArray[np.bool_], direction: Array) -> float:
    """1 / the length of a step after which a multiplier far from zero has come near it."""
    towards = ~near & (direction * lam < 0)
    return float(np.max(-direction[towards] / lam[towards], initial=0.0)) / 0.9


def _model_minimum(
    lam: Array,
    near: NDArray[np.bool_],
    mass: Array,
    features: Array,
    balance: Array,
    epsilon: Array,
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
    spread = np.sqrt(mass)[:, None] * (features - balance)
    goal = balance + spread.T @ (spread @ np.where(near, lam, 0.0))
    goal -= np.where(near, 0.0, epsilon * np.sign(lam))
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
