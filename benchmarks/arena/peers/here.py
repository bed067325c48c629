"""Methods that run beside fairproj: its own, scikit-learn's, LightGBM's and fairlearn's."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import AdaBoostClassifier

from arena.peers.learner import balanced_weight, by_probability, trees
from arena.peers.with_fairlearn import (
    Fit,
    exponentiated_gradient,
    grid_search,
    threshold_optimizer,
)
from arena.worker import Predict, Prediction, Rows, Task
from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.baselines import Reweighing

__all__ = [
    "adaboost",
    "exponentiated_gradient",
    "fairboost",
    "fairproj",
    "grid_search",
    "lightgbm",
    "one_threshold",
    "reweighing",
    "threshold_optimizer",
]


def adaboost(task: Task) -> Fit:
    weight = balanced_weight(task.train.y) if task.balanced else None

    def fit(setting: dict[str, Any]) -> Predict:
        model = AdaBoostClassifier(random_state=task.seed, **setting)
        return by_probability(model.fit(task.train.X, task.train.y, sample_weight=weight))

    return fit


def lightgbm(task: Task) -> Fit:
    return lambda setting: by_probability(trees(task).fit(task.train.X, task.train.y))


def one_threshold(task: Task) -> Fit:
    """One model; a point is a cut of its probabilities, the same for all groups."""
    model = trees(task).fit(task.train.X, task.train.y)

    def fit(setting: dict[str, Any]) -> Predict:
        def predict(rows: Rows) -> Prediction:
            score = model.predict_proba(rows.X)[:, 1]
            return Prediction((score > setting["threshold"]).astype(float), score)

        return predict

    return fit


def fairproj(task: Task) -> Fit:
    weight = balanced_weight(task.train.y) if task.balanced else None

    def fit(setting: dict[str, Any]) -> Predict:
        model = FairProjClassifier(task.constraint, n_jobs=1, **setting)
        X, y, groups = task.train
        return by_probability(model.fit(X, y, sensitive_features=groups, sample_weight=weight))

    return fit


def fairboost(task: Task) -> Fit:
    """Defaults but for the learner and the setting; the seed chooses the rows held out."""
    weight = "balanced" if task.balanced else None
    names = {"num_leaves": "max_leaf_nodes"}
    trees = {names.get(name, name): value for name, value in task.learner.items()}

    def fit(setting: dict[str, Any]) -> Predict:
        model = FairBoostClassifier(
            task.constraint,
            class_weight=weight,
            n_jobs=1,
            random_state=task.seed,
            **(trees | setting),
        )
        X, y, groups = task.train
        return by_probability(model.fit(X, y, sensitive_features=groups))

    return fit


def reweighing(task: Task) -> Fit:
    def fit(setting: dict[str, Any]) -> Predict:
        X, y, groups = task.train
        return by_probability(Reweighing(trees(task)).fit(X, y, sensitive_features=groups))

    return fit
