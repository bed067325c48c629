"""The projection for groups that must hold alike masses, in time linear in the number of groups.

Cells are joined to blocks: the cells of a group within an event. Every pair of blocks of an event e
may differ by at most epsilon_e, which is the same as

    t_e <= M_b <= t_e + epsilon_e    for every block b of e and some t_e,

so one number for each event takes the place of a constraint for each pair. No cell may be in two
blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairproj.data.types import Array, Codes

_MAX_STEPS = 400
_TINY = 1e-15  # relative change of a root that counts as none
_CLOSE = 1e-12  # how close to 1 the largest sum of masses counts as 1


class NoRoomError(ValueError):
    """The blocks cannot hold all of the mass."""


@dataclass(frozen=True)
class BlockProjection:
    """The masses nearest to Q with blocks that are alike, as logarithms.

    Attributes
    ----------
    log_mass : array of shape (n_blocks,)
        log M_b; ``-inf`` for a block that is empty or must be.
    log_z : float
        log Z: masses that no bound holds are Q / Z.
    excess : array of shape (n_blocks,)
        log(Q_b / Z) - log M_b, above 0 for a block that is held down and below 0 for one that is
        held up. The sum over the blocks of an event is 0. It is 0 for a block that must be empty,
        whose excess would be infinite.
    """

    log_mass: Array
    log_z: float
    excess: Array


def project_blocks(
    log_mass: Array, event: Codes, log_rest: float, epsilon: Array, start: float = 0.0
) -> BlockProjection:
    """Project Q on the masses M with ``|M_a - M_b| <= epsilon_e`` for all blocks a, b of an event.

    Given Z and the lower ends t_e, the masses are ``M_b = clip(Q_b / Z, t_e, t_e + epsilon_e)``.
    What holds blocks down and up within an event must add up to nothing,

        sum_b max(0, log(Q_b / Z) - log(t_e + epsilon_e)) = sum_b max(0, log t_e - log(Q_b / Z)),

    of which t_e is the root; and Z is the root of ``N / Z + sum_b M_b(Z) = 1``, with N the mass of
    the rest. Both are monotone functions of one number, solved by Newton's method in a bracket.

    Parameters
    ----------
    log_mass : array of shape (n_blocks,)
        log Q_b; ``-inf`` for an empty block.
    event : array of shape (n_blocks,)
        The event of each block, 0, 1, ...; each has a block at least.
    log_rest : float
        log N, of the cells that are in no block.
    epsilon : array of shape (n_events,)
    start : float, default=0.0
        Where to look for log Z first.
    """
    bands = [
        _Band(np.flatnonzero(event == e), log_mass[event == e], epsilon[e])
        for e in range(len(epsilon))
    ]
    _check_room(bands, log_rest)
    log_z = _root(bands, log_rest, start)
    logs, excess = np.empty(len(log_mass)), np.empty(len(log_mass))
    for band in bands:
        held = band.held(log_z)
        logs[band.blocks], excess[band.blocks] = held.logs, held.excess
    return BlockProjection(logs - _log_sum(np.append(logs, log_rest - log_z)), log_z, excess)


def project_cells(
    log_mass: Array, block: Codes, event: Codes, epsilon: Array
) -> tuple[Array, BlockProjection]:
    """`project_blocks` for cells: log(w / q) of each cell, and the blocks' masses.

    ``block`` is the block of each cell, or ``len(event)`` for a cell that is in none.
    """
    n_blocks = len(event)
    logs = log_sums(log_mass, block, n_blocks + 1)
    blocks = project_blocks(logs[:-1], event, float(logs[-1]), epsilon)
    gone = np.isneginf(blocks.log_mass) & np.isfinite(logs[:-1])
    factors = np.append(np.where(gone, -np.inf, -blocks.excess - blocks.log_z), -blocks.log_z)
    return factors[block], blocks


def log_sums(log_mass: Array, block: Codes, n_blocks: int) -> Array:
    """The logarithm of the mass of each block."""
    top = np.full(n_blocks, -np.inf)
    np.maximum.at(top, block, log_mass)
    shift = np.where(np.isfinite(top), top, 0.0)
    total = np.bincount(block, np.exp(log_mass - shift[block]), n_blocks)
    return shift + np.log(total, out=np.full(n_blocks, -np.inf), where=total > 0)


def between_pairs(excess: Array, event: Codes, first: Codes, second: Codes) -> Array:
    """Multipliers of pairs of blocks that have the same effect as ``excess``.

    Within an event, blocks that are held down are matched with blocks that are held up, in order,
    each until it is used up (the north-west corner rule). Fewer pairs than blocks get a multiplier
    other than 0, and sum_k |lam_k| is the least possible. The feature of a pair is +1 on its
    ``second`` and -1 on its ``first`` block.
    """
    multipliers = np.zeros(len(first))
    n_blocks = len(event)
    number, sign = np.zeros((2, n_blocks * n_blocks))
    number[first * n_blocks + second], sign[first * n_blocks + second] = range(len(first)), -1.0
    number[second * n_blocks + first], sign[second * n_blocks + first] = range(len(first)), 1.0
    for e in range(event.max() + 1):
        down, up, size = _matched(np.where(event == e, excess, 0.0))
        place = down * n_blocks + up
        np.add.at(multipliers, number[place].astype(np.intp), sign[place] * size)
    return multipliers


def _matched(excess: Array) -> tuple[Codes, Codes, Array]:
    """Pairs of a block held down and a block held up, and how much they have in common."""
    down, up = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    if not len(down) or not len(up):
        return down[:0], up[:0], np.zeros(0)
    given, taken = np.cumsum(excess[down]), np.cumsum(-excess[up])
    taken *= given[-1] / taken[-1]
    cuts = np.union1d(given, taken)
    giver = np.minimum(np.searchsorted(given, cuts), len(down) - 1)
    taker = np.minimum(np.searchsorted(taken, cuts), len(up) - 1)
    return down[giver], up[taker], np.diff(cuts, prepend=0.0)


class _Held(NamedTuple):
    """The logarithms of Q / Z, of t and of t + epsilon."""

    free: Array
    low: float
    high: float

    @property
    def logs(self) -> Array:
        """log M."""
        return np.clip(self.free, self.low, self.high)

    @property
    def excess(self) -> Array:
        """By how much blocks are held down."""
        logs, excess = self.logs, np.zeros(len(self.free))
        np.subtract(self.free, logs, out=excess, where=np.isfinite(logs))
        if self.low == -math.inf:  # an empty block is below the others, and holds them down
            excess[self.free.argmin()] = -excess.sum()
        return excess

    def slope(self, top: float) -> float:
        """The derivative of the sum of M by log Z, divided by exp(top)."""
        over, under = self.free > self.high, self.free < self.low
        slope = -float(np.exp(self.free[~(over | under)] - top).sum())
        n_over, n_under = int(over.sum()), int(under.sum())
        if n_under:
            share = math.exp(self.low - self.high)
            t = math.exp(self.low - top)
            slope -= t * (n_over + n_under) ** 2 / (n_over * share + n_under)
        return slope


class _Band:
    """The blocks of an event; finds t for a given Z."""

    def __init__(self, blocks: Codes, log_mass: Array, epsilon: float) -> None:
        self.blocks = blocks
        self.epsilon = float(epsilon)
        self.present = np.isfinite(log_mass)
        self._log_mass = log_mass
        self._lowest = float(log_mass.min())
        self._highest = float(log_mass.max())
        self._log_epsilon = math.log(epsilon) if epsilon > 0 else -math.inf
        self._log_t = 0.0

    @property
    def capacity(self) -> float:
        """The most mass that the blocks can hold: without an empty one, any."""
        if self.present.all():
            return math.inf
        return self.epsilon * int(self.present.sum())

    def held(self, log_z: float) -> _Held:
        """The masses for a given Z."""
        free = self._log_mass - log_z
        low = self._lower_end(free, log_z)
        return _Held(free, low, float(np.logaddexp(low, self._log_epsilon)))

    def _lower_end(self, free: Array, log_z: float) -> float:
        """log t. Where nothing is out of reach of one another, that of the least mass."""
        low, high = self._lowest - log_z, self._highest - log_z
        if low == -math.inf or high <= np.logaddexp(low, self._log_epsilon):
            return low
        if self._log_epsilon == -math.inf:
            return float(free.mean())
        log_t = self._log_t if low < self._log_t < high else (low + high) / 2
        for _ in range(_MAX_STEPS):
            top = float(np.logaddexp(log_t, self._log_epsilon))
            over, under = np.maximum(free - top, 0.0), np.maximum(log_t - free, 0.0)
            sum_over, sum_under = float(over.sum()), float(under.sum())
            excess = sum_over - sum_under
            low, high = (log_t, high) if excess > 0 else (low, log_t)
            share = math.exp(log_t - top)
            slope = np.count_nonzero(over) * share + np.count_nonzero(under)
            if abs(excess) <= _TINY * (sum_over + sum_under):
                break
            step = excess / slope if slope else math.inf
            following = log_t + step
            if not low < following < high:
                following = (low + high) / 2
            if abs(following - log_t) <= _TINY * (1 + abs(log_t)):
                break
            log_t = following
        self._log_t = log_t
        return log_t


def _check_room(bands: list[_Band], log_rest: float) -> None:
    """Refuse blocks that cannot hold all mass: each event has an empty block, and no rest is."""
    if log_rest == -math.inf and sum(band.capacity for band in bands) < 1 - _CLOSE:
        raise NoRoomError


def _root(bands: list[_Band], log_rest: float, start: float) -> float:
    """log Z, at which the masses add up to one."""
    low, high, log_z = -math.inf, math.inf, start
    for _ in range(_MAX_STEPS):
        value, slope = _log_total(bands, log_rest, log_z)
        low, high = (log_z, high) if value > 0 else (low, log_z)
        if abs(value) <= _TINY * (1 + abs(log_z)):
            break
        farthest = 2 + 2 * abs(log_z)  # where nothing grows, the slope tells no distance
        step = -value / slope if slope < 0 else math.copysign(farthest, value)
        step = max(-farthest, min(step, farthest))
        if not low < log_z + step < high:
            step = (low + high) / 2 - log_z
        if abs(step) <= _TINY * (1 + abs(log_z)) or not math.isfinite(step):
            break  # an end that is not known is passed by less than rounding
        log_z += step
    return log_z


def _log_total(bands: list[_Band], log_rest: float, log_z: float) -> tuple[float, float]:
    """log(N / Z + sum_b M_b) and its derivative by log Z."""
    held = [band.held(log_z) for band in bands]
    logs = np.concatenate([[log_rest - log_z], *(one.logs for one in held)])
    log_total = _log_sum(logs)
    slope = sum(one.slope(log_total) for one in held)
    return log_total, slope - math.exp(log_rest - log_z - log_total)


def _log_sum(values: Array) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))
