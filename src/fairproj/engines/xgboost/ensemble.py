"""The finished ensemble: its trees, and one XGBoost model of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.checks import counted
from fairproj.data.types import Array
from fairproj.engines.base import Saved
from fairproj.engines.trees import EXPLAINED_PER_THREAD, threads_for
from fairproj.engines.xgboost.imports import locally, xgboost
from fairproj.engines.xgboost.matrices import too_large_explained
from fairproj.engines.xgboost.tree import Tree, native_model
from fairproj.engines.xgboost.validate import MOST_TREES, check_sums, from_record, to_record

_ENTRIES = 1 << 22  # leaves looked up at a time: rows times trees


class XGBoostEnsemble:
    """Trees with their votes; XGBoost finds the leaves, and their values are added up in doubles.

    Parameters
    ----------
    trees : sequence of Tree
    votes : sequence of float
    link_scale, intercept : float
    n_features : int
    categories : mapping of int to int
        Columns that hold category codes, and how many.
    learner_votes : {"discrete", "confidence", "newton"}
        What the trees predict.
    """

    kind = "xgboost"

    def __init__(
        self,
        trees: Sequence[Tree],
        votes: Sequence[float],
        link_scale: float,
        intercept: float,
        n_features: int,
        categories: Mapping[int, int],
        learner_votes: str,
    ) -> None:
        self.trees = list(trees)
        self.votes = list(votes)
        self.link_scale = link_scale
        self.intercept = intercept
        self._n_features = n_features
        self._categories = dict(categories)
        self._learner_votes = learner_votes

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "booster"}

    @property
    def leaf_values(self) -> list[Array]:
        """What each node of each tree adds to the margin; the first tree has the intercept."""
        values = [vote * tree.h for tree, vote in zip(self.trees, self.votes, strict=True)]
        values[0] = values[0] + self.intercept
        return values

    @property
    def native_text(self) -> str:
        """The whole model as XGBoost's JSON, whose prediction is the probability of class 1.

        Leaf values are ``link_scale * vote * h`` as 32-bit floats, those of the first tree with the
        intercept, so that the raw score is ``link_scale`` times the margin up to rounding.
        """
        scaled = [self.link_scale * values for values in self.leaf_values]
        return json.dumps(
            native_model(self.trees, scaled, self._n_features, sorted(self._categories))
        )

    @cached_property
    def booster(self) -> Any:
        booster = xgboost().Booster({"verbosity": 0})
        booster.load_model(bytearray(self.native_text.encode()))
        return booster

    def margin(self, X: Any, n_threads: int = 1) -> Array:
        parts = [self._margin(batch, n_threads) for batch in _batches(X)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _margin(self, X: NDArray[Any], n_threads: int) -> Array:
        margin = np.full(len(X), self.intercept)
        tables = [vote * tree.h for tree, vote in zip(self.trees, self.votes, strict=True)]
        step = max(1024, _ENTRIES // len(self.trees))
        for begin in range(0, len(X), step):
            rows = slice(begin, begin + step)
            for table, leaves in zip(tables, self._leaves(X[rows], n_threads).T, strict=True):
                margin[rows] += table[leaves]
        return margin

    def staged_margin(self, X: Any, n_threads: int = 1) -> Iterator[Array]:
        leaves = np.concatenate([self._leaves(batch, n_threads) for batch in _batches(X)])
        margin = np.full(len(leaves), self.intercept)
        for t, (tree, vote) in enumerate(zip(self.trees, self.votes, strict=True)):
            margin = margin + (vote * tree.h)[leaves[:, t]]
            yield margin

    def contributions(self, X: Any, n_threads: int = 1) -> Array:
        parts = [self._contributions(batch, n_threads) for batch in _batches(X)]
        return np.concatenate(parts) if parts else np.zeros((0, self._n_features + 1))

    def _contributions(self, X: NDArray[Any], n_threads: int) -> Array:
        if not len(X):
            return np.zeros((0, self._n_features + 1))
        threads = threads_for(X, n_threads, EXPLAINED_PER_THREAD)
        scaled = self._from_booster(X, threads, pred_contribs=True)
        return scaled.astype(np.float64) / self.link_scale

    def _leaves(self, X: NDArray[Any], n_threads: int) -> NDArray[np.int32]:
        """The leaf of each row in each tree."""
        if not len(X):
            return np.zeros((0, len(self.trees)), dtype=np.int32)
        leaves = self._from_booster(X, threads_for(X, n_threads), pred_leaf=True)
        return leaves.reshape(len(X), -1).astype(np.int32)

    def _from_booster(self, X: NDArray[Any], threads: int, **what: bool) -> NDArray[Any]:
        """What the native model says of some rows."""
        library, booster = xgboost(), self.booster

        def ask() -> NDArray[Any]:
            booster.set_param({"nthread": threads})
            answer: NDArray[Any] = booster.predict(library.DMatrix(X, nthread=threads), **what)
            return answer

        with too_large_explained():
            return locally(ask, threads)

    def learner(self, t: int) -> OneTree:
        facts = (self._n_features, self._categories, self._learner_votes)
        return OneTree(XGBoostEnsemble([self.trees[t]], [1.0], 1.0, 0.0, *facts))

    @cached_property
    def feature_importances(self) -> Array:
        """Each tree's gains, normalised, averaged with the votes as weights."""
        total = np.zeros(self._n_features)
        for tree, vote in zip(self.trees, self.votes, strict=True):
            gain = np.where(tree.is_leaf, 0.0, tree.gain).astype(np.float64)
            if gain.sum() > 0:
                total += vote * np.bincount(tree.feature, gain / gain.sum(), len(total))
        return total / total.sum() if total.sum() > 0 else total

    def to_payload(self) -> dict[str, Any]:
        payload = {"trees": [to_record(tree) for tree in self.trees]}
        # Refuse here what would be refused when the file is opened.
        _read_trees(payload, self.votes, self._n_features, self._categories, self._learner_votes)
        check_sums(self.trees, self.votes, self.link_scale, self.intercept)
        return payload


class OneTree:
    """One tree of an ensemble, as a weak learner."""

    def __init__(self, ensemble: XGBoostEnsemble) -> None:
        self._ensemble = ensemble

    def predict_h(self, X: Any) -> Array:
        """h(x), without the intercept of the ensemble."""
        return self._ensemble.margin(X)


def _batches(X: Any) -> Iterator[Any]:
    return X.batches() if hasattr(X, "batches") else iter([X])


def saved_ensemble(payload: dict[str, Any], saved: Saved) -> XGBoostEnsemble:
    """The ensemble of a payload, all of which is checked."""
    categories = {column: len(values) for column, values in saved.categories.items()}
    trees = _read_trees(payload, saved.votes, saved.n_features, categories, saved.learner_votes)
    check_sums(trees, saved.votes, saved.link_scale, saved.intercept)
    facts = (saved.link_scale, saved.intercept, saved.n_features, categories, saved.learner_votes)
    return XGBoostEnsemble(trees, saved.votes, *facts)


def _read_trees(
    payload: dict[str, Any],
    votes: Sequence[float],
    n_features: int,
    categories: Mapping[int, int],
    learner_votes: str,
) -> list[Tree]:
    if set(payload) != {"trees"} or not isinstance(payload["trees"], list):
        raise ValueError("the payload must hold a list of trees and nothing else")
    records = payload["trees"]
    if len(records) != len(votes) or not 1 <= len(records) <= MOST_TREES:
        raise ValueError(
            f"{counted(len(records), 'tree')} saved for {counted(len(votes), 'vote')}; a tree for "
            "each vote is "
            f"expected, and 1 to {MOST_TREES:,} of them"
        )
    facts = (n_features, categories, learner_votes)
    return [from_record(record, number, *facts) for number, record in enumerate(records)]
