"""Growing trees with XGBoost on gradients that change every round.

A booster of one tree is made each round. The prediction of the training rows is then in XGBoost's
cache, and nothing of earlier rounds is kept in it.

With gradient -w y and Hessian w, and without regularisation, a leaf's value is the weighted mean of
its labels; discrete and confidence trees are those of the LightGBM engine on the same bins. Newton
trees have XGBoost's own treatment of categories. With the gradients and Hessians of the logistic
loss they are the trees of ``xgboost.XGBClassifier``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.chunks import RowChunks
from fairproj.data.sample import Sample
from fairproj.data.types import Array
from fairproj.engines.base import Fitted, LearnerSettings, Targets
from fairproj.engines.trees import leaf_to_h
from fairproj.engines.xgboost.ensemble import XGBoostEnsemble
from fairproj.engines.xgboost.imports import locally, quietly, xgboost
from fairproj.engines.xgboost.matrices import Bins
from fairproj.engines.xgboost.subsample import RowDraws
from fairproj.engines.xgboost.tree import Tree, constant_tree, from_native, native_model

_EVALUATED = 8  # trees in one pass; four bytes a row for each of them
_LEAST_HESSIAN = {"newton": 1e-3, "confidence": 1e-6, "discrete": 1e-6}


@dataclass(frozen=True)
class BinnedRows:
    """Training rows and rows held out, in the same bins."""

    bins: Bins
    training: Any
    held_out: Any = None


class XGBoostEngine:
    """Grows trees on binned rows.

    Parameters
    ----------
    rows : BinnedRows
    sample : Sample
        The training rows; their features are not kept.
    settings : LearnerSettings
    params : dict
        XGBoost's parameters.
    categories : mapping of int to list
        Columns that hold category codes, and the categories these stand for.
    seed : int
        Of the rows and columns that each tree is grown on.
    before : XGBoostEnsemble, optional
        A model to continue from.
    """

    def __init__(
        self,
        rows: BinnedRows,
        sample: Sample,
        settings: LearnerSettings,
        params: dict[str, Any],
        categories: Mapping[int, Sequence[Any]],
        seed: int,
        before: XGBoostEnsemble | None = None,
    ) -> None:
        self._rows, self._params, self._votes = rows, params, settings.votes
        self._categories = {column: len(values) for column, values in categories.items()}
        self._n_features = sample.X.shape[1]
        self._n_rows, self._reduction = sample.n_rows, sample.reduction
        self._least_rows = settings.min_samples_leaf
        self._least_weight = settings.min_weight_fraction_leaf * self._n_rows
        self._gradient, self._hessian = np.zeros((2, len(sample)), dtype=np.float32)
        self._chunks = RowChunks(len(sample))
        self._seed, self._round = seed, 0
        self._draws = None
        if settings.subsample < 1:
            starts, _ = sample.blocks.starts(sample.reduction)
            self._draws = RowDraws(settings.subsample, seed, sample.blocks, starts)
        self._before = before

    def fit(self, targets: Targets) -> Fitted:
        totals = self._read(targets)
        booster = quietly(partial(self._grow, self._params_of_round(totals)))
        self._round += 1
        grown = json.loads(bytes(booster.save_raw("json")))["learner"]
        tree = from_native(grown["gradient_booster"]["model"]["trees"][0], self._rows.bins.last_cut)
        if tree.constant:
            value = -totals.gradient / max(totals.hessian + self._params["lambda"], 1e-15)
            return self.constant(float(np.clip(value, -targets.max_step, targets.max_step)))
        to_h = partial(leaf_to_h, votes=self._votes, max_step=targets.max_step)
        tree = replace(tree, h=np.where(tree.is_leaf, to_h(tree.h), 0.0))
        return self._fitted(tree, booster, to_h)

    def _read(self, targets: Targets) -> _Totals:
        """Take over gradients and Hessians, as costs of mean one, and their sums over all rows."""
        n_rows = self._n_rows

        def part(rows: slice, _: Array) -> Array:
            gradient, hessian = targets.gradient[rows], targets.hessian[rows]
            np.multiply(gradient, n_rows, out=self._gradient[rows], casting="same_kind")
            np.multiply(hessian, n_rows, out=self._hessian[rows], casting="same_kind")
            return np.array([gradient.sum(), hessian.sum()])

        gradient, hessian = n_rows * self._reduction.sum(np.sum(self._chunks(part), axis=0))
        if self._draws is None:
            return _Totals(gradient, hessian, hessian, n_rows)
        self._draws.drop(self._round, self._gradient, self._hessian)
        sums = [np.sum(self._hessian, dtype=np.float64), np.count_nonzero(self._hessian)]
        return _Totals(gradient, hessian, *self._reduction.sum(np.array(sums, dtype=np.float64)))

    def _params_of_round(self, totals: _Totals) -> dict[str, Any]:
        """XGBoost does not count rows; as LightGBM does, we guess their number from Hessians."""
        rows = (self._least_rows - 0.5) * totals.drawn_hessian / max(totals.n_drawn, 1)
        least = max(_LEAST_HESSIAN[self._votes], self._least_weight, rows)
        return {**self._params, "min_child_weight": least, "seed": self._seed + self._round}

    def _grow(self, params: dict[str, Any]) -> Any:
        matrix = self._rows.training
        booster = xgboost().Booster(params, cache=[matrix])
        # The cache that growing the tree then updates.
        booster.predict(matrix, output_margin=True, training=True)
        booster.boost(matrix, 0, grad=self._gradient, hess=self._hessian)
        return booster

    def _fitted(self, tree: Tree, booster: Any, to_h: Callable[[Any], NDArray[Any]]) -> Fitted:
        parts = [
            None if matrix is None else self._predict(booster, matrix, to_h)
            for matrix in (self._rows.training, self._rows.held_out)
        ]
        assert parts[0] is not None
        return Fitted(tree, parts[0], parts[1])

    def _predict(
        self, booster: Any, matrix: Any, to_h: Callable[[Any], NDArray[Any]]
    ) -> NDArray[Any]:
        raw = quietly(partial(booster.predict, matrix, output_margin=True))
        h = np.empty(len(raw), dtype=to_h(np.zeros(1)).dtype)

        def part(rows: slice, scratch: Array) -> None:
            scratch[:] = raw[rows]
            h[rows] = to_h(scratch)

        RowChunks(len(raw))(part)
        return h

    def constant(self, h: float) -> Fitted:
        one = leaf_to_h(np.array([h]), self._votes)
        return self._constant(constant_tree(float(one[0]), self._n_rows))

    def _constant(self, tree: Tree) -> Fitted:
        one = leaf_to_h(tree.h, self._votes)
        matrix = self._rows.held_out
        held_out = None if matrix is None else one.repeat(matrix.num_row())
        return Fitted(tree, one.repeat(len(self._gradient)), held_out, constant=True)

    def evaluate(self, learners: Sequence[Tree]) -> Iterator[Fitted]:
        """Trees of earlier rounds, several in one pass over the rows."""
        for start in range(0, len(learners), _EVALUATED):
            trees = learners[start : start + _EVALUATED]
            leaves = locally(
                lambda: self._leaves(trees),  # noqa: B023 (called at once)
                self._params["nthread"],
            )
            for position, tree in enumerate(trees):
                self._round += 1
                yield self._at_leaves(tree, [part[:, position] for part in leaves])

    def _leaves(self, trees: Sequence[Tree]) -> list[NDArray[np.float32]]:
        """The leaf of each row in each tree, on the training rows and on those held out."""
        model = native_model(
            trees, [tree.h for tree in trees], self._n_features, sorted(self._categories)
        )
        booster = xgboost().Booster({"nthread": self._params["nthread"], "verbosity": 0})
        booster.load_model(bytearray(json.dumps(model).encode()))
        matrices = [self._rows.training, self._rows.held_out]
        return [
            booster.predict(matrix, pred_leaf=True).reshape(-1, len(trees))
            for matrix in matrices
            if matrix is not None
        ]

    def _at_leaves(self, tree: Tree, leaves: list[NDArray[np.float32]]) -> Fitted:
        if tree.constant:
            return self._constant(tree)
        kind = leaf_to_h(np.zeros(1), self._votes).dtype
        parts = [tree.h.astype(kind)[part.astype(np.int32)] for part in leaves]
        return Fitted(tree, parts[0], parts[1] if len(parts) > 1 else None)

    def ensemble(
        self,
        learners: Sequence[Tree],
        votes: Sequence[float],
        link_scale: float,
        intercept: float = 0.0,
    ) -> XGBoostEnsemble:
        before = self._before
        return XGBoostEnsemble(
            [*(before.trees if before else []), *learners],
            [*(before.votes if before else []), *votes],
            link_scale,
            (before.intercept if before else 0.0) + intercept,
            self._n_features,
            self._categories,
            self._votes,
        )


@dataclass(frozen=True)
class _Totals:
    """Sums over the rows of all workers, and over those that are drawn."""

    gradient: float
    hessian: float
    drawn_hessian: float
    n_drawn: float
