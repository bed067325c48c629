"""Any scikit-learn classifier that takes ``sample_weight``, as weak learner."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from fairproj._validation import Array

Votes = Literal["discrete", "confidence"]


class EstimatorEngine:
    """Fits clones of ``estimator``, each with a seed of its own, as scikit-learn's ensembles do.

    Labels reach the learners as the user gave them: a learner's own ``predict`` makes sense.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        labels: NDArray[Any],
        classes: NDArray[Any],
        weight: Array,
        *,
        votes: Votes = "discrete",
        random_state: np.random.RandomState,
        before: EstimatorEnsemble | None = None,
        held_out: Any = None,
    ) -> None:
        check_estimator_fits(estimator, votes)
        self._estimator = estimator
        self._X = X
        self._labels = labels
        self._classes = classes
        self._weight = weight
        self._votes = votes
        self._random_state = random_state
        self._before = before
        self._held_out = held_out
        self.held_out_h = np.zeros(0)

    def fit(self, w: Array) -> tuple[Any, Array]:
        state = self._random_state.get_state()
        try:
            learner = seeded(self._estimator, self._random_state)
            learner.fit(self._X, self._labels, sample_weight=on_grid(w, self._weight))
        except BaseException:  # an interrupted round draws the same numbers when it is run again
            self._random_state.set_state(state)
            raise
        self._ask(learner)
        return learner, said(learner, self._X, self._classes, self._votes)

    def _ask(self, learner: Any) -> None:
        if self._held_out is not None:
            self.held_out_h = said(learner, self._held_out, self._classes, self._votes)

    def constant(self, h: float) -> tuple[Any, Array]:
        learner = ConstantLearner(self._classes[int(h > 0)])
        self._ask(learner)
        return learner, np.full(len(self._labels), 1.0 if h > 0 else -1.0)

    def ensemble(self, learners: Sequence[Any], votes: Sequence[float]) -> EstimatorEnsemble:
        earlier = self._before
        return EstimatorEnsemble(
            [*(earlier.learners if earlier else []), *learners],
            [*(earlier.votes if earlier else []), *votes],
            self._classes,
            self._votes,
        )


class ConstantLearner:
    """Says the same class of every row."""

    def __init__(self, label: Any) -> None:
        self.label = label
        self.classes_ = np.array([label])

    def predict(self, X: Any) -> NDArray[Any]:
        return np.full(np.shape(X)[0], self.label)

    def predict_proba(self, X: Any) -> Array:
        return np.ones((np.shape(X)[0], 1))


class EstimatorEnsemble:
    """The fitted learners with their votes."""

    def __init__(
        self,
        learners: Sequence[Any],
        votes: Sequence[float],
        classes: NDArray[Any],
        kind: Votes,
    ) -> None:
        self.learners = list(learners)
        self.votes = list(votes)
        self._classes = classes
        self._kind = kind

    def __len__(self) -> int:
        return len(self.votes)

    def margin(self, X: Any) -> Array:
        return deque(self.staged_margin(X), maxlen=1).pop()

    def staged_margin(self, X: Any) -> Iterator[Array]:
        margin = np.zeros(np.shape(X)[0])
        for learner, vote in zip(self.learners, self.votes, strict=True):
            margin = margin + vote * said(learner, X, self._classes, self._kind)
            yield margin

    @cached_property
    def feature_importances(self) -> Array:
        """The learners' own importances, averaged with the votes as weights."""
        if not all(hasattr(learner, "feature_importances_") for learner in self.learners):
            raise AttributeError(
                "feature_importances_ is not available: the estimator has no feature_importances_"
            )
        each = np.array([learner.feature_importances_ for learner in self.learners])
        return np.average(each, axis=0, weights=np.maximum(self.votes, np.finfo(float).tiny))


def on_grid(w: Array, weight: Array) -> Array:
    """w with w / weight rounded to 40 bits, so that sums over rows come out exact.

    A learner that finds two features equally good then finds them equal in whatever order it adds
    up rows, and however often a row is repeated instead of weighted.
    """
    unit = w / weight
    step = 2.0 ** (np.floor(np.log2(unit.max())) - 40)
    rounded: Array = np.rint(unit / step) * step * weight
    return rounded


def said(learner: Any, X: Any, classes: NDArray[Any], votes: Votes) -> Array:
    """h(x) in [-1, 1]: +1 for the second class; with confidence votes, 2 p - 1."""
    if votes == "discrete":
        return np.where(learner.predict(X) == classes[1], 1.0, -1.0)
    probability = learner.predict_proba(X)
    column = np.flatnonzero(learner.classes_ == classes[1])
    if not len(column):  # the learner saw one class only
        return np.full(len(probability), -1.0)
    confidence: Array = np.clip(2.0 * probability[:, column[0]] - 1.0, -1.0, 1.0)
    return confidence


def seeded(estimator: Any, random_state: np.random.RandomState) -> Any:
    """A clone whose ``random_state`` parameters are drawn from the given one."""
    learner = clone(estimator)
    keys = sorted(
        key
        for key in learner.get_params(deep=True)
        if key == "random_state" or key.endswith("__random_state")
    )
    if keys:
        learner.set_params(**{key: random_state.randint(np.iinfo(np.int32).max) for key in keys})
    return learner


def check_estimator_fits(estimator: Any, votes: Votes) -> None:
    name = type(estimator).__name__
    if not is_classifier(estimator):
        raise TypeError(
            f"estimator must be a classifier, got {name}; give a scikit-learn classifier"
        )
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"estimator {name} does not take sample_weight in fit, and boosting works through "
            "weights; choose one that does, such as DecisionTreeClassifier(max_depth=1)"
        )
    if votes == "confidence" and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"votes='confidence' needs predict_proba, which estimator {name} lacks; "
            "use votes='discrete'"
        )
