"""XGBoost's parameters for trees of the kind and size asked for."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from fairproj.data.user_warning import warn_user
from fairproj.engines.base import LearnerSettings, with_engine_params
from fairproj.engines.trees import monotonic_signs
from fairproj.engines.xgboost.imports import locally, xgboost

_MOST_LEAVES = 1 << 17  # as with LightGBM
_HISTOGRAM_BYTES = 1 << 30
# What the engine sets each round, and other names of what it sets.
_OF_ROUNDS = ("min_child_weight", "seed", "random_state", "subsample")
_OTHER_NAMES = (
    "learning_rate",
    "reg_lambda",
    "n_jobs",
    "updater",
    "process_type",
    "multi_strategy",
    "num_class",
    "missing",
    "objective",
    "validate_parameters",
)


def tree_parameters(
    settings: LearnerSettings, n_features: int, categorical: Collection[int], n_threads: int
) -> dict[str, Any]:
    params: dict[str, Any] = {
        "booster": "gbtree",
        "tree_method": "hist",
        "eta": 1.0,
        "base_score": 0.0,
        "num_parallel_tree": 1,
        "disable_default_eval_metric": True,
        "verbosity": 0,
        **_size(settings.max_depth, settings.max_leaf_nodes),
        "lambda": settings.l2_regularization,
        "max_bin": settings.max_bins,
        "nthread": n_threads,
        "colsample_bytree": settings.max_features,
        "max_cached_hist_node": _kept_histograms(n_features, settings.max_bins),
    }
    if settings.votes != "newton":
        params["max_cat_to_onehot"] = 1 << 30  # one category against the rest
    signs = monotonic_signs(settings, categorical)
    if signs is not None:
        params["monotone_constraints"] = "(" + ",".join(map(str, signs)) + ")"
    given = settings.engine_params or {}
    reserved = dict.fromkeys((*_OF_ROUNDS, *_OTHER_NAMES))
    with_engine_params(reserved, given, "xgboost")
    params = with_engine_params(params, given, "xgboost")
    if given:
        _check_given(params, given, n_features)
    return params


def _size(max_depth: int | None, max_leaf_nodes: int | None) -> dict[str, Any]:
    if max_depth is None and max_leaf_nodes is None:
        max_depth = 1
    policy = "depthwise" if max_leaf_nodes is None else "lossguide"
    return {
        "max_depth": max_depth or 0,
        "max_leaves": max_leaf_nodes or _MOST_LEAVES,
        "grow_policy": policy,
    }


def _kept_histograms(n_features: int, max_bins: int) -> int:
    """XGBoost keeps one for each of 65,536 nodes; of deep trees they would fill the memory."""
    return max(64, min(1 << 16, _HISTOGRAM_BYTES // (16 * n_features * max_bins)))


def _check_given(params: dict[str, Any], given: Mapping[str, Any], n_features: int) -> None:
    """Let XGBoost grow a tree on two rows, to hear what it says of the user's parameters."""
    library = xgboost()

    def grow() -> None:
        with library.config_context(verbosity=1):
            rows = np.repeat([[0.0], [1.0]], n_features, axis=1)
            matrix = library.QuantileDMatrix(rows, max_bin=params["max_bin"])
            booster = library.Booster(params | {"verbosity": 1}, cache=[matrix])
            booster.boost(matrix, 0, grad=np.array([-1.0, 1.0]), hess=np.ones(2))

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            locally(grow, n_threads=1)
        except library.core.XGBoostError as error:
            raise ValueError(
                f"engine_params={dict(given)!r} is refused by XGBoost: {_sentence(error)}"
            ) from None
    for warning in heard:
        words = _sentence(warning.message)
        if "are not used" in words:
            raise ValueError(f"engine_params has names that XGBoost does not know: {words}")
        warn_user(f"XGBoost says of engine_params: {words}")


def _sentence(error: Any) -> str:
    """What XGBoost says, without the time, the place in its source and the stack."""
    words = " ".join(str(error).split("Stack trace:")[0].split())
    return re.sub(r"^\[[\d:]+\] (WARNING: )?\S+:\d+: ", "", words)
