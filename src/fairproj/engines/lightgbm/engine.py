"""Growing trees on gradients that change every round.

For labels +-1 and weights w, the split of least weighted Gini impurity is LightGBM's split for
gradient -w y and hessian w without regularisation: the gain of a side is (sum w y)^2 / sum w, and a
leaf's value is sum w y / sum w, in [-1, 1]. Its sign is the discrete vote.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from fairproj.data.chunks import RowChunks
from fairproj.data.sample import Sample
from fairproj.data.types import Array, Matrix
from fairproj.engines.base import Fitted, LearnerSettings, Saved, Targets
from fairproj.engines.lightgbm import text as native
from fairproj.engines.lightgbm.binning import bin_rows
from fairproj.engines.lightgbm.ensemble import TreeEnsemble, saved_ensemble, threads_for

# Weights reach LightGBM as 32-bit floats, so a leaf whose labels balance exactly may have a value
# of up to 6e-8 either way. A value this close to zero is a tie, and predicts class -1.
LEAF_TIE = 1e-7
_MOST_LEAVES = 1 << 17  # LightGBM's own limit


@dataclass(frozen=True)
class TreeLearner:
    """A tree of the booster in training by its number there, or a constant (None)."""

    tree: int | None
    constant: float = 0.0


class LightGBMTrees:
    """The registry's entry for the built-in trees."""

    name = "lightgbm"
    encodes = True
    parameters: Collection[str] = ("max_depth", "max_leaf_nodes", "min_weight_fraction_leaf")
    accepts: Collection[str] = ("missing", "sparse")

    def bind(
        self,
        settings: LearnerSettings,
        sample: Sample,
        held_out: Sample | None = None,
        before: TreeEnsemble | None = None,
    ) -> TreeEngine:
        params = tree_parameters(settings, sample.X)
        categories = {} if sample.encoder is None else sample.encoder.categories

        # Fits on the same rows share what is binned, with the held-out rows it was binned with.
        key = ("lightgbm", settings.max_bins, params["num_threads"])
        binned_with, dataset = sample.cache.get(key, (None, None))
        if dataset is None or binned_with is not held_out:
            rows = None if held_out is None else held_out.X
            dataset = bin_rows(sample.X, params, sorted(categories), settings.feature_names, rows)
            sample.cache[key] = held_out, dataset
        n_held_out = 0 if held_out is None else len(held_out)
        return TreeEngine(
            dataset, params, len(sample), n_held_out, settings.votes, categories, before
        )

    def from_payload(self, payload: dict[str, Any], saved: Saved) -> TreeEnsemble:
        categories = [values for _, values in sorted(saved.categories.items())]
        return saved_ensemble(payload, saved.votes, saved.link_scale, saved.n_features, categories)


class TreeEngine:
    """Grows trees on binned data.

    Parameters
    ----------
    dataset : lightgbm.Dataset
        The training rows, then those held out, then possibly a row that `bin_rows` adds.
    params : dict
        LightGBM's parameters.
    n_rows, n_held_out : int
    votes : {"discrete", "confidence"}
        Whether a leaf predicts the sign of its value or the value itself.
    categories : mapping of int to list
        Columns that hold category codes, and the categories these stand for.
    before : TreeEnsemble, optional
        A model to go on from.
    """

    def __init__(
        self,
        dataset: lgb.Dataset,
        params: dict[str, Any],
        n_rows: int,
        n_held_out: int,
        votes: str,
        categories: Mapping[int, Sequence[Any]],
        before: TreeEnsemble | None = None,
    ) -> None:
        self._n_rows, self._n_held_out = n_rows, n_held_out
        self._votes = votes
        self._before = before
        self._categories = [list(values) for _, values in sorted(categories.items())]
        n_features = dataset.num_feature()
        self._splits = any(dataset.feature_num_bin(column) > 1 for column in range(n_features))
        # All rows but those of training weigh nothing.
        self._gradient, self._hessian = np.zeros((2, dataset.num_data()), dtype=np.float32)
        if not self._splits:  # LightGBM refuses such data; any other will do to hold constants
            dataset = lgb.Dataset(np.arange(2.0 * n_features).reshape(2, -1), params=params)
        self._booster = lgb.Booster(params, dataset)
        self._chunks = RowChunks(n_rows)
        self._all_chunks = RowChunks(n_rows + n_held_out)
        self._score = np.zeros(n_rows + n_held_out)

    def fit(self, targets: Targets) -> Fitted:
        if not self._splits:
            return self.constant(_newton_step(targets))
        n_rows = self._n_rows

        # Costs of mean one: LightGBM's own thresholds are made for that scale.
        def part(rows: slice, _: Array) -> None:
            np.multiply(targets.hessian[rows], n_rows, out=self._hessian[rows], casting="same_kind")
            np.multiply(
                targets.gradient[rows], n_rows, out=self._gradient[rows], casting="same_kind"
            )

        self._chunks(part)
        if self._booster.update(fobj=lambda score, data: (self._gradient, self._hessian)):
            return self.constant(_newton_step(targets))
        h = leaf_to_h(np.zeros(len(self._score)), self._votes)

        def read_score(score: Array, data: lgb.Dataset) -> tuple[str, float, bool]:
            """The training score is the sum of all trees; the newest is what it grew by.

            This is LightGBM's public way to the score in double precision; the metric is not used.
            """

            def newest(rows: slice, scratch: Array) -> None:
                value = np.subtract(score[rows], self._score[rows], out=scratch)
                self._score[rows] = score[rows]
                h[rows] = leaf_to_h(value, self._votes)

            self._all_chunks(newest)
            return "unused", 0.0, False

        self._booster.eval_train(read_score)
        return self._fitted(TreeLearner(self._booster.num_trees() - 1), h)

    def constant(self, h: float) -> Fitted:
        everywhere = leaf_to_h(np.full(len(self._score), h), self._votes)
        return self._fitted(TreeLearner(None, h), everywhere)

    def _fitted(self, learner: TreeLearner, h: NDArray[Any]) -> Fitted:
        held_out = h[self._n_rows :] if self._n_held_out else None
        return Fitted(learner, h[: self._n_rows], held_out)

    def ensemble(
        self, learners: Sequence[TreeLearner], votes: Sequence[float], link_scale: float
    ) -> TreeEnsemble:
        text = self._booster.model_to_string()
        grown = native.blocks(text)
        trees = list(self._before.blocks) if self._before else []
        for learner, vote in zip(learners, votes, strict=True):
            if learner.tree is None:
                block = native.constant_block(self._n_rows)
                block = native.fold(block, lambda value, h=learner.constant: value + h)  # type: ignore[misc]
            else:
                block = grown[learner.tree]
            trees.append(
                native.fold(block, lambda value, vote=vote: vote * leaf_to_h(value, self._votes))  # type: ignore[misc]
            )
        earlier = [] if self._before is None else self._before.votes
        assembled = native.assemble(text, trees, self._categories, link_scale)
        return TreeEnsemble(assembled, [*earlier, *votes], link_scale)


def _newton_step(targets: Targets) -> float:
    """The value of a tree of one leaf: with gradient -w y and Hessian w, the weighted mean of y."""
    return float(-targets.gradient.sum() / targets.hessian.sum())


def leaf_to_h(value: Array, votes: str) -> NDArray[Any]:
    """h from a leaf's value: its sign, as a small integer, or itself."""
    if votes == "confidence":
        # A pure leaf may come out as 1 - 1e-15; a learner without mistakes must be seen as such.
        return np.clip(value * (1 + 1e-12), -1.0, 1.0)
    return 2 * (value > LEAF_TIE).view(np.int8) - 1


_EXACT: dict[str, Any] = {
    "objective": "none",
    "metric": "None",
    "boosting": "gbdt",
    "learning_rate": 1.0,
    "lambda_l1": 0.0,
    "lambda_l2": 0.0,
    "min_gain_to_split": 0.0,
    "boost_from_average": False,
    "feature_pre_filter": False,
    "min_data_in_bin": 1,
    # Row counts are guessed from hessians, so only a bound on the weight means what it says.
    "min_data_in_leaf": 0,
    # One category against the rest, without smoothing: the split of its one-hot column.
    "max_cat_to_onehot": 1 << 30,
    "cat_l2": 0.0,
    "cat_smooth": 0.0,
    "min_data_per_group": 1,
    "histogram_pool_size": 1024.0,  # MB; deep trees on many rows would take many times that
    "deterministic": True,
    "force_row_wise": True,
    "seed": 0,
    "verbosity": -1,
}


def tree_parameters(settings: LearnerSettings, matrix: Matrix) -> dict[str, Any]:
    """LightGBM's parameters for exact trees of the size asked for."""
    n_rows = matrix.shape[0]
    return {
        **_size(settings.max_depth, settings.max_leaf_nodes, n_rows),
        **_EXACT,
        "min_sum_hessian_in_leaf": max(1e-6, settings.min_weight_fraction_leaf * n_rows),
        "max_bin": settings.max_bins,
        "num_threads": threads_for(matrix, settings.n_threads),
    }


def _size(max_depth: int | None, max_leaf_nodes: int | None, n_rows: int) -> dict[str, int]:
    if max_depth is None and max_leaf_nodes is None:
        max_depth = 1
    depth = -1 if max_depth is None else max_depth
    leaves = max_leaf_nodes or 2 ** min(depth, 17)
    return {"max_depth": depth, "num_leaves": max(2, min(leaves, n_rows, _MOST_LEAVES))}
