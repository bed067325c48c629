"""Growing trees on gradients that change every round.

For labels +-1 and weights w, the split of least weighted Gini impurity is LightGBM's split for
gradient -w y and hessian w without regularisation: the gain of a side is (sum w y)^2 / sum w, and a
leaf's value is sum w y / sum w, in [-1, 1]. Its sign is the discrete vote. Binning, smoothing and
limits on leaves are set such that they change no split unless the user asks for it.

Newton trees have LightGBM's own binning and parameters instead. With the gradients and Hessians of
the logistic loss they are the trees of ``lightgbm.LGBMClassifier``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from fairproj.data.chunks import RowChunks
from fairproj.data.sample import Sample
from fairproj.data.types import Array, Matrix
from fairproj.engines.base import (
    TREE_PARAMETERS,
    Fitted,
    LearnerSettings,
    Saved,
    Targets,
    with_engine_params,
)
from fairproj.engines.lightgbm import text as native
from fairproj.engines.lightgbm.binning import bin_held_out, bin_rows, binning_key
from fairproj.engines.lightgbm.ensemble import TreeEnsemble, saved_ensemble
from fairproj.engines.trees import leaf_to_h, monotonic_signs, threads_for

_MOST_LEAVES = 1 << 17  # LightGBM's own limit


@dataclass(frozen=True)
class TreeLearner:
    """A tree of the booster in training by its number there, or a constant (None)."""

    tree: int | None
    constant: float = 0.0
    max_step: float = math.inf


class LightGBMTrees:
    """The registry's entry for the built-in trees."""

    name = "lightgbm"
    encodes = True
    parameters: Collection[str] = TREE_PARAMETERS
    accepts: Collection[str] = ("missing", "sparse")

    def bind(
        self,
        settings: LearnerSettings,
        sample: Sample,
        held_out: Sample | None = None,
        before: TreeEnsemble | None = None,
    ) -> TreeEngine:
        categories = {} if sample.encoder is None else sample.encoder.categories
        params = tree_parameters(settings, sample.X, categories)

        # Fits on the same rows share what is binned.
        added = tuple(sorted((settings.engine_params or {}).items()))
        key = ("lightgbm", *binning_key(params, len(sample)), *added)
        if key not in sample.cache:
            sample.cache[key] = bin_rows(
                sample.X,
                params,
                sorted(categories),
                settings.feature_names,
                exact=settings.votes != "newton",
            )
        training = sample.cache[key]
        watched = None
        if held_out is not None:
            watched = held_out.cache.get(key)
            if watched is None or watched.reference is not training:
                watched = held_out.cache[key] = bin_held_out(held_out.X, training)
        return TreeEngine(
            training, watched, params, len(sample), settings.votes, categories, before
        )

    def from_payload(self, payload: dict[str, Any], saved: Saved) -> TreeEnsemble:
        return saved_ensemble(payload, saved)


class TreeEngine:
    """Grows trees on binned data.

    Parameters
    ----------
    dataset : lightgbm.Dataset
        The training rows, then possibly a row that `bin_rows` adds.
    held_out : lightgbm.Dataset or None
        Other rows in the same bins.
    params : dict
        LightGBM's parameters.
    n_rows : int
        The number of training rows.
    votes : {"discrete", "confidence", "newton"}
        Whether a leaf predicts the sign of its value or the value itself.
    categories : mapping of int to list
        Columns that hold category codes, and the categories these stand for.
    before : TreeEnsemble, optional
        A model to continue from.
    """

    def __init__(
        self,
        dataset: lgb.Dataset,
        held_out: lgb.Dataset | None,
        params: dict[str, Any],
        n_rows: int,
        votes: str,
        categories: Mapping[int, Sequence[Any]],
        before: TreeEnsemble | None = None,
    ) -> None:
        self._n_rows = n_rows
        self._votes = votes
        self._lambda_l2 = params["lambda_l2"]
        self._before = before
        self._categories = [list(values) for _, values in sorted(categories.items())]
        self._training = _Growth(n_rows)
        self._held_out = None if held_out is None else _Growth(held_out.num_data())
        # A row that is not of training weighs nothing.
        self._gradient, self._hessian = np.zeros((2, dataset.num_data()), dtype=np.float32)
        self._chunks = RowChunks(n_rows)
        # LightGBM refuses to grow trees on data without any split; constants are all there is then.
        columns = range(dataset.num_feature())
        self._splits = any(dataset.feature_num_bin(column) > 1 for column in columns)
        self._booster = lgb.Booster(params, dataset)
        if held_out is not None and self._splits:
            self._booster.add_valid(held_out, "held out")
        self._new_seed = params["seed"] if "feature_fraction_seed" in params else None

    def fit(self, targets: Targets) -> Fitted:
        if not self._splits or not self._grow(targets):
            value = _newton_step(targets, self._lambda_l2 / self._n_rows)
            return self.constant(float(np.clip(value, -targets.max_step, targets.max_step)))
        to_h = partial(leaf_to_h, votes=self._votes, max_step=targets.max_step)
        h = self._training.newest(self._booster.eval_train, to_h)
        held_out = None
        if self._held_out is not None:
            held_out = self._held_out.newest(self._booster.eval_valid, to_h)
        tree = self._booster.num_trees() - 1
        return Fitted(TreeLearner(tree, max_step=targets.max_step), h, held_out)

    def _grow(self, targets: Targets) -> bool:
        """Grow a tree; whether it has a split. LightGBM drops one that has none."""
        n_rows = self._n_rows

        # Costs of mean one: LightGBM's own thresholds are made for that scale.
        def part(rows: slice, _: Array) -> None:
            np.multiply(targets.hessian[rows], n_rows, out=self._hessian[rows], casting="same_kind")
            np.multiply(
                targets.gradient[rows], n_rows, out=self._gradient[rows], casting="same_kind"
            )

        self._chunks(part)
        return not self._booster.update(fobj=self._derivatives)

    def _derivatives(self, score: Array, data: lgb.Dataset) -> tuple[NDArray[Any], NDArray[Any]]:
        """Gradients and Hessians, which `lightgbm.Booster.update` asks for.

        Before it asks for the first time, it sets the objective, and LightGBM draws the columns of
        a tree each time that a parameter is set. A changed seed starts the random numbers again,
        so that the trees have the same columns as with an objective of LightGBM's.
        """
        if self._new_seed is not None:
            self._booster.reset_parameter({"seed": self._new_seed})
            self._new_seed = None
        return self._gradient, self._hessian

    def constant(self, h: float) -> Fitted:
        one = leaf_to_h(np.array([h]), self._votes)
        held_out = None if self._held_out is None else one.repeat(self._held_out.n_rows)
        learner = TreeLearner(None, float(one[0]))
        return Fitted(learner, one.repeat(self._n_rows), held_out, constant=True)

    def ensemble(
        self,
        learners: Sequence[TreeLearner],
        votes: Sequence[float],
        link_scale: float,
        intercept: float = 0.0,
    ) -> TreeEnsemble:
        text = self._booster.model_to_string()
        grown = native.blocks(text)
        before = self._before
        trees = list(before.blocks) if before else []
        for learner, vote in zip(learners, votes, strict=True):
            trees.append(self._folded(learner, vote, grown))
        if intercept:
            trees[0] = native.fold(trees[0], lambda value: intercept + value)
        assembled = native.assemble(text, trees, self._categories, link_scale)
        return TreeEnsemble(
            assembled,
            [*(before.votes if before else []), *votes],
            link_scale,
            (before.intercept if before else 0.0) + intercept,
            self._votes,
        )

    def _folded(self, learner: TreeLearner, vote: float, grown: Sequence[str]) -> str:
        """The tree with leaf values vote h."""
        if learner.tree is None:
            return native.constant_block(self._n_rows, vote * learner.constant)
        return native.fold(
            grown[learner.tree],
            lambda value: vote * leaf_to_h(value, self._votes, learner.max_step),
        )


class _Growth:
    """The booster's score of some rows, and what the newest tree adds to it."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self._score = np.zeros(n_rows)
        self._chunks = RowChunks(n_rows)

    def newest(
        self, evaluate: Callable[[Any], Any], to_h: Callable[[Array], NDArray[Any]]
    ) -> NDArray[Any]:
        """h of the newest tree: the score is the sum of all trees, and grew by that tree's values.

        A metric is LightGBM's public way to the score in double precision; its value is not used.
        """
        h = np.empty(self.n_rows, dtype=to_h(self._score[:1]).dtype)

        def read_score(score: Array, data: lgb.Dataset) -> tuple[str, float, bool]:
            def part(rows: slice, scratch: Array) -> None:
                value = np.subtract(score[rows], self._score[rows], out=scratch)
                self._score[rows] = score[rows]
                h[rows] = to_h(value)

            self._chunks(part)
            return "unused", 0.0, False

        evaluate(read_score)
        return h


def _newton_step(targets: Targets, l2: float) -> float:
    """The value of a tree of one leaf: with gradient -w y and Hessian w, the weighted mean of y."""
    return float(-targets.gradient.sum() / max(targets.hessian.sum() + l2, 1e-15))


_COMMON: dict[str, Any] = {
    "objective": "none",
    "metric": "None",
    "boosting": "gbdt",
    "learning_rate": 1.0,
    "histogram_pool_size": 1024.0,  # MB; deep trees on many rows would take many times that
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
_EXACT: dict[str, Any] = {
    "lambda_l1": 0.0,
    "min_gain_to_split": 0.0,
    "boost_from_average": False,
    "feature_pre_filter": False,
    "min_data_in_bin": 1,
    # One category against the rest, without smoothing: the split of its one-hot column.
    "max_cat_to_onehot": 1 << 30,
    "cat_l2": 0.0,
    "cat_smooth": 0.0,
    "min_data_per_group": 1,
    "seed": 0,
}
_LIGHTGBMS_OWN: dict[str, Any] = {"feature_pre_filter": True, "min_data_in_bin": 3}


def tree_parameters(
    settings: LearnerSettings, matrix: Matrix, categorical: Collection[int] = ()
) -> dict[str, Any]:
    """LightGBM's parameters for trees of the kind and size asked for."""
    n_rows = matrix.shape[0]
    params = {
        **_COMMON,
        **_size(settings.max_depth, settings.max_leaf_nodes, n_rows),
        **(_LIGHTGBMS_OWN if settings.votes == "newton" else _EXACT),
        # LightGBM guesses row counts from Hessians, so with uneven weights this is not a count.
        "min_data_in_leaf": settings.min_samples_leaf,
        "lambda_l2": settings.l2_regularization,
        "max_bin": settings.max_bins,
        "num_threads": threads_for(matrix, settings.n_threads),
        **_sampling(settings),
        **_monotonic(settings, categorical),
    }
    if settings.votes != "newton":
        least_weight = settings.min_weight_fraction_leaf * n_rows
        params["min_sum_hessian_in_leaf"] = max(1e-6, least_weight)
    return with_engine_params(params, settings.engine_params, "lightgbm")


def _size(max_depth: int | None, max_leaf_nodes: int | None, n_rows: int) -> dict[str, int]:
    if max_depth is None and max_leaf_nodes is None:
        max_depth = 1
    depth = -1 if max_depth is None else max_depth
    leaves = max_leaf_nodes or 2 ** min(depth, 17)
    return {"max_depth": depth, "num_leaves": max(2, min(leaves, n_rows, _MOST_LEAVES))}


def _sampling(settings: LearnerSettings) -> dict[str, Any]:
    """Shares of rows and columns, and the seed; no number is drawn where nothing is sampled."""
    params: dict[str, Any] = {}
    if settings.subsample < 1:
        params |= {"bagging_fraction": settings.subsample, "bagging_freq": 1}
    if settings.max_features < 1:
        # No seed of LightGBM's is negative; `TreeEngine` replaces this one.
        params |= {"feature_fraction": settings.max_features, "feature_fraction_seed": -1}
    seed = settings.random_state
    if params and not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
    # Newton trees take a seed in any case: of many rows, LightGBM samples those that it bins by.
    if params or (settings.votes == "newton" and isinstance(seed, Integral)):
        params["seed"] = int(seed)
    return params


def _monotonic(settings: LearnerSettings, categorical: Collection[int]) -> dict[str, Any]:
    signs = monotonic_signs(settings, categorical)
    return {} if signs is None else {"monotone_constraints": signs}
