"""Multipliers that follow the rates of the predictions: they rise while a limit is exceeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairproj.data.types import Array

ROUNDING = 1e-12  # sums of rates are off by less, and differences of counts are larger


@dataclass(frozen=True)
class StepRule:
    """How multipliers move; the defaults come from a study, benchmarks/steps.py.

    Attributes
    ----------
    first, least, largest : float
        The first step, and the bounds of all steps, in units of the multiplier: see `units`.
    growth, reduction : float
        The factors of a step whose violation keeps or changes its sign.
    band : float
        The share of the allowed gap that the multipliers aim at.
    leak : float
        The share that multipliers lose each round while the gap is within that band, so that
        accuracy is won back.
    by_weight : float
        The largest unit of a multiplier, as a multiple of the weight of its rows.
    """

    first: float = 1.0
    least: float = 0.02
    largest: float = 5.0
    growth: float = 1.05
    reduction: float = 0.5
    band: float = 0.8
    leak: float = 0.005
    by_weight: float = 2.0

    def units(self, weight: Array) -> Array:
        """The unit of each multiplier's steps, min(1 / G, by_weight S(a, e)), for G groups.

        S(a, e) is the weight of the rows of group a that the rate counts. A multiplier lam changes
        the cost of each of these rows by lam / S(a, e), so the costs of small groups would jump if
        the unit were 1 / G for all.
        """
        return np.minimum(1 / len(weight), self.by_weight * weight)


class AdaptiveSteps:
    """One step size for each multiplier.

    A step grows while the violation keeps its sign and is reduced when the sign changes. A
    violation of zero keeps step and sign.

    Parameters
    ----------
    rule : StepRule
    unit : array
        The unit of each step.
    """

    def __init__(self, rule: StepRule, unit: Any) -> None:
        self._rule, self._unit = rule, np.asarray(unit, dtype=float)
        self._step = rule.first * self._unit
        self._sign = np.zeros(self._unit.shape)

    def __call__(self, violation: Array) -> Array:
        """By how much to move each multiplier."""
        rule, sign = self._rule, np.sign(violation)
        same = self._sign * sign
        factor = np.where(same > 0, rule.growth, np.where(same < 0, rule.reduction, 1.0))
        step = np.maximum(self._step * factor, rule.least * self._unit)
        self._step = np.minimum(step, rule.largest * self._unit)
        self._sign = np.where(sign == 0, self._sign, sign)
        move: Array = self._step * violation
        return move


class Multipliers:
    """The multipliers of all requirements and of a global limit.

    =============  ==================================================================
    difference     lam(a, e) of each group, with sum_a lam(a, e) = 0; moved by the part of the
                   group's rate that lies outside of the band; then their sum is subtracted, from
                   each in proportion to the unit of its steps; shrunk while all lie within
    ratio r        nu(a, b) >= 0 of each pair, moved by r rate(a) - rate(b)
    global limit   nu >= 0, moved by the rate less its limit
    =============  ==================================================================

    Parameters
    ----------
    kinds : sequence of {"difference", "ratio"}
        One for each requirement.
    weight : array of shape (n_groups, n_requirements)
        S(a, e), the weight of the rows of each group that a rate counts; all rows have weight one.
    rule : StepRule, optional

    Attributes
    ----------
    by_group : array of shape (n_groups, n_requirements)
        What each group's rate is multiplied by in the Lagrangian.
    limit : float
        The multiplier of the global limit.
    """

    def __init__(
        self,
        kinds: Sequence[Literal["difference", "ratio"]],
        weight: Array,
        rule: StepRule | None = None,
    ) -> None:
        self._kinds, self._rule = kinds, rule or StepRule()
        unit = self._rule.units(weight)
        ratios = [e for e, kind in enumerate(kinds) if kind == "ratio"]
        by_pair = {e: np.minimum.outer(unit[:, e], unit[:, e]) for e in ratios}
        self._pairs = {e: np.zeros_like(pairs) for e, pairs in by_pair.items()}
        self._pair_steps = {e: AdaptiveSteps(self._rule, pairs) for e, pairs in by_pair.items()}
        self._share = unit / unit.sum(axis=0)
        self._steps = AdaptiveSteps(self._rule, unit)
        self._limit_step = AdaptiveSteps(self._rule, 1.0)
        self.by_group = np.zeros_like(unit)
        self.limit = 0.0

    def update(self, rates: Array, allowed: Array, limit_excess: float = 0.0) -> None:
        """Move all multipliers after a round.

        ``rates`` has shape (n_groups, n_requirements); ``allowed`` has the limit of each
        requirement.
        """
        aimed = self._rule.band * allowed
        violation = violations(rates, aimed)
        move = self._steps(violation)
        for e, kind in enumerate(self._kinds):
            if kind == "ratio":
                self._move_pairs(e, rates[:, e], 1 - aimed[e])
            elif violation[:, e].any():
                moved = self.by_group[:, e] + move[:, e]
                self.by_group[:, e] = moved - moved.sum() * self._share[:, e]
            else:
                self.by_group[:, e] *= 1 - self._rule.leak
        if limit_excess:
            self.limit = max(0.0, self.limit + float(self._limit_step(np.array(limit_excess))))

    def _move_pairs(self, e: int, rates: Array, ratio: float) -> None:
        excess = ratio * rates[:, None] - rates[None, :]
        np.fill_diagonal(excess, 0.0)
        move = self._pair_steps[e](without_rounding(excess))
        pairs = np.maximum(0.0, self._pairs[e] + move)
        self._pairs[e] = pairs
        self.by_group[:, e] = ratio * pairs.sum(axis=1) - pairs.sum(axis=0)


def violations(rates: Array, allowed: Array) -> Array:
    """How far each rate lies outside the band of the allowed width around the middle.

    violation(a, e) = rate(a, e) - mid_e, soft-thresholded at allowed_e / 2, with mid_e halfway
    between the largest and the smallest rate. All zero where the gap is at most the allowed one.
    """
    off = rates - (rates.min(axis=0) + rates.max(axis=0)) / 2
    beyond: Array = np.sign(off) * np.maximum(np.abs(off) - allowed / 2, 0.0)
    return without_rounding(beyond)


def without_rounding(violation: Array) -> Array:
    """Zero where a violation is no more than rounding: its sign decides how steps change."""
    return np.where(np.abs(violation) <= ROUNDING, 0.0, violation)
