"""The registry's entry for XGBoost's trees."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairproj.data.sample import Sample
from fairproj.engines.base import TREE_PARAMETERS, LearnerSettings, Saved
from fairproj.engines.trees import threads_for
from fairproj.engines.xgboost.engine import BinnedRows, XGBoostEngine
from fairproj.engines.xgboost.ensemble import XGBoostEnsemble, saved_ensemble
from fairproj.engines.xgboost.matrices import Bins, bin_rows, find_bins
from fairproj.engines.xgboost.parameters import tree_parameters


class XGBoostTrees:
    """Trees of XGBoost.

    Columns are read as 32-bit floats. X must be dense: XGBoost reads what a sparse matrix leaves
    out as missing, not as zero.
    """

    name = "xgboost"
    encodes = True
    parameters: Collection[str] = TREE_PARAMETERS
    accepts: Collection[str] = ("missing", "batches")

    def bind(
        self,
        settings: LearnerSettings,
        sample: Sample,
        held_out: Sample | None = None,
        before: XGBoostEnsemble | None = None,
    ) -> XGBoostEngine:
        categories = {} if sample.encoder is None else sample.encoder.categories
        n_threads = threads_for(sample.X, settings.n_threads)
        params = tree_parameters(settings, sample.X.shape[1], categories, n_threads)
        key = ("xgboost", settings.max_bins)
        if key not in sample.cache:  # fits on the same rows share what is binned
            bins = find_bins(sample, categories, settings.max_bins, n_threads)
            sample.cache[key] = bins, bin_rows(sample.X, bins)
        bins, training = sample.cache[key]
        watched = None if held_out is None else _bin_held_out(held_out, bins, key)
        rows = BinnedRows(bins, training, watched)
        seed = _seed(settings, sample)
        return XGBoostEngine(rows, sample, settings, params, categories, seed, before)

    def from_payload(self, payload: dict[str, Any], saved: Saved) -> XGBoostEnsemble:
        return saved_ensemble(payload, saved)


def _bin_held_out(held_out: Sample, bins: Bins, key: Any) -> Any:
    cached = held_out.cache.get(key)
    if cached is None or cached[0] is not bins:
        cached = held_out.cache[key] = bins, bin_rows(held_out.X, bins)
    return cached[1]


def _seed(settings: LearnerSettings, sample: Sample) -> int:
    """The seed of what is drawn at random, the same on every worker."""
    if settings.subsample >= 1 and settings.max_features >= 1:
        return 0
    seed = settings.random_state
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
    return int(sample.reduction.max(np.array([float(seed)]))[0])
