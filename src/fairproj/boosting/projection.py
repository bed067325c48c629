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
from scipy.optimize import brentq
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fairproj.boosting.dual import ProjectionError, independent, solve_dual, tilted_mass
from fairproj.boosting.parity import BlockProjection, NoRoomError, between_pairs, project_cells
from fairproj.data.types import Array, Codes

NO_FEATURE = 1e-12  # features no larger than this are rounding
_LARGEST_LOG = 1e5  # beyond the logarithm of any mass


@dataclass(frozen=True)
class Projection:
    """The distribution w nearest to q, cell by cell, and what it costs to go there.

    Attributes
    ----------
    multipliers : array of shape (n_constraints,)
        The dual solution lam of Lemma 4.1; zero where a constraint is slack.
    log_factors : array of shape (n_cells,)
        log(w_i / q_i), the same for every row of a cell; ``-inf`` for a cell that no distribution
        within the constraints gives any mass. Multipliers are then those of the other cells.
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

    Returns
    -------
    Projection
        The distribution w by cell, its multipliers, and its distance from q.
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
        size = np.abs(self.features).max(axis=0)
        self.features[:, size <= NO_FEATURE] = 0.0
        self._scale = np.where(size <= NO_FEATURE, 1.0, size)
        self._keep = independent(self.features / self._scale, self.epsilon)
        self._keep &= self.epsilon < self._scale  # |<w, g>| <= max |g|: a wider slack asks nothing

    def __call__(self, log_mass: Array, start: Array | None = None) -> Projection:
        mass = np.exp(log_mass)
        balance = mass @ self.features
        if (np.abs(balance) <= self.epsilon).all():
            nothing = np.zeros(len(balance)), np.zeros(len(mass))
            return Projection(*nothing, mass, balance, balance, kl=0.0, tv=0.0)
        present = np.isfinite(log_mass)
        if self._disjoint is not None and present.all():
            multipliers = self._disjoint.multipliers(log_mass)
            return self._with_multipliers(log_mass, multipliers, present)
        if self._alike is not None:
            log_factors, multipliers = self._alike.solve(log_mass)
            tilted = np.exp(log_mass + log_factors)
            return self._result(log_mass, multipliers, log_factors, tilted, 0)
        return self._general(log_mass, start)

    def _general(self, log_mass: Array, start: Array | None) -> Projection:
        keep, scale = self._keep, self._scale
        lam = np.zeros(len(scale)) if start is None else start * scale
        lam[~keep] = 0.0
        lam[keep], reached, n_steps = solve_dual(
            log_mass, (self.features / scale)[:, keep], (self.epsilon / scale)[keep], lam[keep]
        )
        return self._with_multipliers(log_mass, lam / scale, reached, n_steps)

    def _with_multipliers(
        self, log_mass: Array, multipliers: Array, reached: NDArray[np.bool_], n_steps: int = 0
    ) -> Projection:
        within = np.where(reached, log_mass, -np.inf)
        log_z, tilted = tilted_mass(within, self.features, multipliers)
        log_factors = -(self.features @ multipliers) - log_z
        log_factors[np.isfinite(log_mass) & ~reached] = -np.inf
        return self._result(log_mass, multipliers, log_factors, tilted, n_steps)

    def _result(
        self, log_mass: Array, multipliers: Array, log_factors: Array, tilted: Array, n_steps: int
    ) -> Projection:
        mass = np.exp(log_mass)
        return Projection(
            multipliers=multipliers,
            log_factors=log_factors,
            mass=tilted,
            balance=tilted @ self.features,
            balance_q=mass @ self.features,
            kl=_divergence(tilted, log_factors),
            tv=0.5 * float(np.abs(tilted - mass).sum()),
            n_steps=n_steps,
        )


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
        if not np.isin(features, (-1.0, 0.0, 1.0)).all() or (touched > 1).any():
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
        numbers = numbers.astype(float)  # exact, and so are the sums
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
    ends = first.astype(np.int32), second.astype(np.int32)  # SciPy 1.11 needs 32 bits
    edges = coo_array((np.ones(len(first)), ends), shape=(n_blocks, n_blocks))
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
