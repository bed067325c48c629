"""The finished ensemble as one LightGBM model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import lightgbm as lgb
import numpy as np
from scipy import sparse

from fairproj.data.types import Array, Matrix
from fairproj.engines.base import Saved
from fairproj.engines.lightgbm import text as native
from fairproj.engines.lightgbm.validate import check
from fairproj.engines.trees import EXPLAINED_PER_THREAD, threads_for


class TreeEnsemble:
    """One LightGBM model whose raw score is the margin.

    Parameters
    ----------
    text : str
        The model in LightGBM's text format.
    votes : sequence of float
        What each tree was multiplied by.
    link_scale : float
        As in the text.
    intercept : float
        What the leaf values of the first tree contain beside the tree itself.
    learner_votes : {"discrete", "confidence", "newton"}
        What the trees predict; all but Newton's have no leaf value beyond their vote.
    """

    kind = "lightgbm"

    def __init__(
        self,
        text: str,
        votes: Sequence[float],
        link_scale: float,
        intercept: float = 0.0,
        learner_votes: str = "confidence",
    ) -> None:
        self.booster = lgb.Booster(model_str=text)
        self.votes = list(votes)
        self.link_scale = link_scale
        self.intercept = intercept
        self._learner_votes = learner_votes

    @property
    def blocks(self) -> list[str]:
        return native.blocks(self.booster.model_to_string())

    def margin(self, X: Matrix, n_threads: int = 1) -> Array:
        raw = self.booster.predict(X, raw_score=True, num_threads=threads_for(X, n_threads))
        return np.asarray(raw, dtype=np.float64)

    def staged_margin(self, X: Matrix, n_threads: int = 1) -> Iterator[Array]:
        threads = threads_for(X, n_threads)
        leaves = np.asarray(self.booster.predict(X, pred_leaf=True, num_threads=threads))
        leaves = leaves.reshape(leaves.shape[0], -1)
        margin = np.zeros(len(leaves))
        for t, block in enumerate(self.blocks):
            margin = margin + native.numbers(block, "leaf_value")[leaves[:, t].astype(np.intp)]
            yield margin

    def contributions(self, X: Matrix, n_threads: int = 1) -> Array:
        threads = threads_for(X, n_threads, EXPLAINED_PER_THREAD)
        parts = self.booster.predict(X, pred_contrib=True, num_threads=threads)
        return np.asarray(parts.toarray() if sparse.issparse(parts) else parts, dtype=np.float64)

    def learner(self, t: int) -> Tree:
        return Tree(self, t)

    @cached_property
    def feature_importances(self) -> Array:
        """Each tree's gains, normalised, averaged with the votes as weights."""
        total = np.zeros(self.booster.num_feature())
        for block, vote in zip(self.blocks, self.votes, strict=True):
            gain = native.numbers(block, "split_gain")
            if gain.sum() > 0:
                features = native.numbers(block, "split_feature").astype(np.intp)
                total += vote * np.bincount(features, gain / gain.sum(), len(total))
        return total / total.sum() if total.sum() > 0 else total

    def to_payload(self) -> dict[str, Any]:
        text = native.without_footer(self.booster.model_to_string())
        # Refuse here what would be refused when the file is opened.
        n_features = self.booster.num_feature()
        check(text, n_features, self.votes, self.link_scale, self.intercept, self._learner_votes)
        return {"text": text}


class Tree:
    """One tree of an ensemble, as a weak learner."""

    def __init__(self, ensemble: TreeEnsemble, t: int) -> None:
        self._ensemble = ensemble
        self._t = t

    def predict_h(self, X: Matrix) -> Array:
        """h(x), without the intercept of the ensemble."""
        raw = self._ensemble.booster.predict(
            X, raw_score=True, start_iteration=self._t, num_iteration=1, num_threads=1
        )
        intercept = self._ensemble.intercept if self._t == 0 else 0.0
        return (np.asarray(raw, dtype=float) - intercept) / (self._ensemble.votes[self._t] or 1.0)


def saved_ensemble(payload: dict[str, Any], saved: Saved) -> TreeEnsemble:
    """The ensemble of a payload, whose text is checked before LightGBM reads it."""
    if set(payload) != {"text"} or not isinstance(payload["text"], str):
        raise ValueError("the payload must hold the text of a LightGBM model and nothing else")
    text = payload["text"]
    facts = (saved.votes, saved.link_scale, saved.intercept, saved.learner_votes)
    check(text, saved.n_features, *facts)
    categories = [values for _, values in sorted(saved.categories.items())]
    return TreeEnsemble(native.with_footer(text, categories), *facts)
