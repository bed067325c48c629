"""Any scikit-learn classifier that takes ``sample_weight``, as weak learner."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from fairproj.data.sample import Sample
from fairproj.data.types import Array
from fairproj.engines import skops_payload
from fairproj.engines.base import Fitted, LearnerSettings, Saved, Targets


class ScikitLearnClassifiers:
    """The registry's entry for ``estimator=``."""

    name = "sklearn"
    encodes = False
    parameters: Collection[str] = ("estimator",)
    accepts: Collection[str] = ()  # the estimator's own tags tell

    def bind(
        self,
        settings: LearnerSettings,
        sample: Sample,
        held_out: Sample | None = None,
        before: EstimatorEnsemble | None = None,
    ) -> EstimatorEngine:
        check_estimator_fits(settings.estimator, settings.votes)
        return EstimatorEngine(settings, sample, None if held_out is None else held_out.X, before)

    def from_payload(self, payload: dict[str, Any], saved: Saved) -> EstimatorEnsemble:
        if set(payload) != {"stream", "skops"}:
            raise ValueError("the payload must hold a stream of random numbers and skops data")
        ours = f"{ConstantLearner.__module__}.{ConstantLearner.__qualname__}"
        stream = skops_payload.load_stream(payload["stream"])
        parts = skops_payload.load(payload["skops"], [*saved.trusted, ours])
        learners = parts["learners"]
        if not isinstance(learners, list) or len(learners) != len(saved.votes):
            raise ValueError(f"the payload must hold {len(saved.votes)} learners")
        if not all(hasattr(learner, "predict") for learner in learners):
            raise ValueError("the payload holds a learner that cannot predict")
        return EstimatorEnsemble(
            parts["estimator"],
            learners,
            saved.votes,
            saved.classes,
            saved.learner_votes,
            saved.link_scale,
            stream,
            saved.intercept,
        )


class EstimatorEngine:
    """Fits clones of the estimator, each with a seed of its own, as scikit-learn's ensembles do.

    Labels reach the learners as the user gave them, so a learner's own ``predict`` makes sense.
    """

    def __init__(
        self,
        settings: LearnerSettings,
        sample: Sample,
        held_out: Any = None,
        before: EstimatorEnsemble | None = None,
    ) -> None:
        self._estimator = settings.estimator
        self._votes = settings.votes
        self._X, self._held_out = sample.X, held_out
        self._classes, self._weight = sample.classes, sample.weight
        self._before = before
        # Random numbers go on where those of an earlier run ended.
        self._stream = (
            check_random_state(settings.random_state) if before is None else before.stream
        )

    def fit(self, targets: Targets) -> Fitted:
        labels = self._classes[np.signbit(targets.gradient).astype(np.intp)]
        weight = on_grid(np.abs(targets.gradient), self._weight)
        state = self._stream.get_state()
        try:
            learner = seeded(self._estimator, self._stream)
            learner.fit(self._X, labels, sample_weight=weight)
        except BaseException:  # an interrupted round draws the same numbers when it is run again
            self._stream.set_state(state)
            raise
        return self._fitted(learner)

    def _fitted(self, learner: Any, *, constant: bool = False) -> Fitted:
        parts = [
            None if X is None else predict_h(learner, X, self._classes, self._votes)
            for X in (self._X, self._held_out)
        ]
        assert parts[0] is not None
        return Fitted(learner, parts[0], parts[1], constant)

    def constant(self, h: float) -> Fitted:
        return self._fitted(ConstantLearner(self._classes[int(h > 0)]), constant=True)

    def ensemble(
        self,
        learners: Sequence[Any],
        votes: Sequence[float],
        link_scale: float,
        intercept: float = 0.0,
    ) -> EstimatorEnsemble:
        earlier = self._before
        return EstimatorEnsemble(
            self._estimator,
            [*(earlier.learners if earlier else []), *learners],
            [*(earlier.votes if earlier else []), *votes],
            self._classes,
            self._votes,
            link_scale,
            self._stream,
            (earlier.intercept if earlier else 0.0) + intercept,
        )


class ConstantLearner:
    """Predicts the same class for every row."""

    def __init__(self, label: Any) -> None:
        self.label = label
        self.classes_ = np.array([label])

    def predict(self, X: Any) -> NDArray[Any]:
        return np.full(np.shape(X)[0], self.label)

    def predict_proba(self, X: Any) -> Array:
        return np.ones((np.shape(X)[0], 1))


class EstimatorEnsemble:
    """The fitted learners with their votes."""

    kind = "sklearn"

    def __init__(
        self,
        estimator: Any,
        learners: Sequence[Any],
        votes: Sequence[float],
        classes: NDArray[Any],
        learner_votes: str,
        link_scale: float,
        stream: np.random.RandomState,
        intercept: float = 0.0,
    ) -> None:
        self.estimator = estimator
        self.learners = list(learners)
        self.votes = list(votes)
        self.link_scale = link_scale
        self.intercept = intercept
        self.stream = stream
        self._classes = classes
        self._learner_votes = learner_votes

    def margin(self, X: Any, n_threads: int = 1) -> Array:
        return deque(self.staged_margin(X), maxlen=1).pop()

    def staged_margin(self, X: Any, n_threads: int = 1) -> Iterator[Array]:
        margin = np.full(np.shape(X)[0], self.intercept)
        for learner, vote in zip(self.learners, self.votes, strict=True):
            margin = margin + vote * predict_h(learner, X, self._classes, self._learner_votes)
            yield margin

    def learner(self, t: int) -> Any:
        return self.learners[t]

    @cached_property
    def feature_importances(self) -> Array:
        """The learners' own importances, averaged with the votes as weights."""
        if not all(hasattr(learner, "feature_importances_") for learner in self.learners):
            raise AttributeError(
                "feature_importances_ is not available: the estimator has no feature_importances_"
            )
        each = np.array([learner.feature_importances_ for learner in self.learners])
        return np.average(each, axis=0, weights=np.maximum(self.votes, np.finfo(float).tiny))

    def to_payload(self) -> dict[str, Any]:
        parts = {"estimator": self.estimator, "learners": self.learners}
        return {
            "stream": skops_payload.dump_stream(self.stream),
            "skops": skops_payload.dump(parts),
        }


def on_grid(w: Array, weight: Array) -> Array:
    """w with w / weight rounded to 40 bits, so that sums over rows come out exact.

    A learner that finds two features equally good then finds them equal in whatever order it adds
    up rows, and however often a row is repeated instead of weighted.
    """
    unit = w / weight
    step = 2.0 ** (np.floor(np.log2(unit.max())) - 40)
    rounded: Array = np.rint(unit / step) * step * weight
    return rounded


def predict_h(learner: Any, X: Any, classes: NDArray[Any], votes: str) -> Array:
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


def check_estimator_fits(estimator: Any, votes: str) -> None:
    if estimator is None:
        raise ValueError("engine='sklearn' needs a classifier to fit; pass estimator=")
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
    if votes == "newton":
        raise ValueError(
            f"estimator={name} predicts classes and takes no Newton steps; "
            "set tree_step='first_order'"
        )
    if votes == "confidence" and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"votes='confidence' needs predict_proba, which estimator {name} lacks; "
            "use votes='discrete'"
        )
