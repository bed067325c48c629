"""Figures that lenders report of models, and how far two models on the same rows differ in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairproj.constraints import RATES, Statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import Groups
from fairproj.data.ranking import RankedScores
from fairproj.data.types import Array, Codes
from fairproj.metrics.lending import mean_differences, ratios_to

TOTALS = ("roc_auc", "accuracy", "ks", "selection_rate", "gap")


@dataclass(frozen=True)
class ModelFigures:
    """What is reported of a model's scores and predictions for some rows.

    Attributes
    ----------
    actual, predicted : array of bool
        Which labels and which predictions are positive.
    score : array
        The probability of the positive label, or another score.
    groups : Groups
    statistic : Statistic
        The gap.
    reference : int
        The position of the group that the others are compared with.
    """

    actual: NDArray[np.bool_]
    predicted: NDArray[np.bool_]
    score: Array
    groups: Groups
    statistic: Statistic
    reference: int

    @cached_property
    def _ranked(self) -> RankedScores:
        return RankedScores.of(self.actual, self.score)

    def counts(self, weight: Array | None = None) -> CellCounts:
        return CellCounts.of_rows(self.actual, self.predicted, self.groups, weight)

    def totals(self, weight: Array | None = None) -> Array:
        """The figures that `TOTALS` names; one that lacks rows is NaN."""
        weight = np.ones(len(self.actual)) if weight is None else weight
        counts = self.counts(weight)
        auc, ks = self._ranked.auc_and_ks(weight)
        selected = float(counts.predicted.sum() / counts.size.sum())
        return np.array([auc, counts.accuracy, ks, selected, self.statistic.value(counts)])

    def impact_ratios(self, weight: Array | None = None) -> Array:
        """The adverse impact ratio of each group."""
        rates = RATES["selection_rate"].values(self.counts(weight))
        return ratios_to(rates, self.reference)

    def mean_differences(self, weight: Array | None = None) -> Array:
        """The standardized mean difference of each group's scores."""
        weight = np.ones(len(self.actual)) if weight is None else weight
        return mean_differences(self.score, self.groups, weight, self.reference)


@dataclass(frozen=True)
class Resamples:
    """Figures of models on resamples of their rows.

    Attributes
    ----------
    totals : array of shape (n_resamples, n_models, 5)
        The figures that `TOTALS` names.
    mean_differences : array of shape (n_resamples, n_models, n_groups)
    """

    totals: Array
    mean_differences: Array


def resample(models: Sequence[ModelFigures], n_resamples: int, seed: int) -> Resamples:
    """Figures of models on bootstrap resamples, each of which is the same for all models.

    A resample draws as many rows of each group as there are, with replacement. All models must be
    about the same rows, so that differences between models are paired.
    """
    rng = np.random.default_rng(seed)
    members = _members(models[0].groups)
    totals, differences = [], []
    for _ in range(n_resamples):
        weight = _draw(members, len(models[0].actual), rng)
        totals.append([model.totals(weight) for model in models])
        differences.append([model.mean_differences(weight) for model in models])
    return Resamples(np.array(totals), np.array(differences))


def _members(groups: Groups) -> list[Codes]:
    """The rows of each group."""
    return [np.flatnonzero(groups.codes == group) for group in range(len(groups.values))]


def _draw(members: Sequence[Codes], n_rows: int, rng: np.random.Generator) -> Array:
    """How often each row is drawn."""
    drawn = [rows[rng.integers(len(rows), size=len(rows))] for rows in members if len(rows)]
    return np.bincount(np.concatenate(drawn), minlength=n_rows).astype(float)


def percentile_interval(values: Array, confidence: float) -> tuple[Array, Array]:
    """Percentile intervals over the first axis.

    Resamples in which a figure lacks rows are left out; NaN where it lacks them in all.
    """
    side = (1 - confidence) / 2
    known = ~np.isnan(values).all(axis=0)
    low, high = np.full((2, *values.shape[1:]), np.nan)
    low[known], high[known] = np.nanquantile(values[:, known], [side, 1 - side], axis=0)
    return low, high
