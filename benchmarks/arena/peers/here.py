"""Methods that run beside fairproj: its own, scikit-learn's, LightGBM's and fairlearn's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier

from arena.peers.learner import balanced_weight, by_probability, trees
from arena.worker import Predict, Prediction, Rows, Task
from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.baselines import ExponentiatedGradient, Reweighing
from fairproj.baselines._fairlearn import _MOMENTS, fairlearn

Fit = Callable[[dict[str, Any]], Predict | None]
_BY_FAIRLEARN = {"equal_opportunity": "true_positive_rate_parity"}


def adaboost(task: Task) -> Fit:
    weight = balanced_weight(task.train.y) if task.balanced else None

    def fit(setting: dict[str, Any]) -> Predict:
        model = AdaBoostClassifier(random_state=task.seed, **setting)
        return by_probability(model.fit(task.train.X, task.train.y, sample_weight=weight))

    return fit


def lightgbm(task: Task) -> Fit:
    return lambda setting: by_probability(trees(task).fit(task.train.X, task.train.y))


def fairproj(task: Task) -> Fit:
    weight = balanced_weight(task.train.y) if task.balanced else None

    def fit(setting: dict[str, Any]) -> Predict:
        model = FairProjClassifier(task.constraint, n_jobs=1, **setting)
        X, y, groups = task.train
        return by_probability(model.fit(X, y, sensitive_features=groups, sample_weight=weight))

    return fit


def fairboost(task: Task) -> Fit:
    """Defaults but for what the setting names; the seed chooses the rows held out."""
    weight = "balanced" if task.balanced else None

    def fit(setting: dict[str, Any]) -> Predict:
        model = FairBoostClassifier(
            task.constraint, class_weight=weight, n_jobs=1, random_state=task.seed, **setting
        )
        X, y, groups = task.train
        return by_probability(model.fit(X, y, sensitive_features=groups))

    return fit


def reweighing(task: Task) -> Fit:
    def fit(setting: dict[str, Any]) -> Predict:
        X, y, groups = task.train
        return by_probability(Reweighing(trees(task)).fit(X, y, sensitive_features=groups))

    return fit


def exponentiated_gradient(task: Task) -> Fit:
    """fairlearn bounds the distance to the rate of all rows: half of the gap that is wanted."""

    def fit(setting: dict[str, Any]) -> Predict:
        model = ExponentiatedGradient(
            trees(task), task.constraint, setting["max_gap"] / 2, max_iter=setting["max_iter"]
        )
        X, y, groups = task.train
        model.fit(X, y, sensitive_features=groups)

        def predict(rows: Rows) -> Prediction:
            chance = model.mitigator_._pmf_predict(rows.X)[:, 1]
            return Prediction(chance, chance)

        return predict

    return fit


def grid_search(task: Task) -> Fit:
    """Every model that the search trains is a point.

    With the default limit of 2 most multipliers are too large for the data at hand.
    """
    reductions = fairlearn("reductions")
    moment = getattr(reductions, _MOMENTS[task.constraint])()
    size = len(task.settings)
    search = reductions.GridSearch(trees(task), moment, grid_size=size, grid_limit=1.0)
    X, y, groups = task.train
    search.fit(X, y, sensitive_features=groups)
    return lambda setting: _one_of_the_search(search.predictors_[setting["model"]])


def _one_of_the_search(model: Any) -> Predict:
    """A model whose reweighted rows had one label only is a constant, and ranks nothing."""
    if hasattr(model, "booster_"):
        return by_probability(model)
    return lambda rows: Prediction(np.asarray(model.predict(rows.X)).astype(float))


def threshold_optimizer(task: Task) -> Fit:
    """Thresholds by group on rows that the scores were not fitted on.

    fairlearn has a tolerance for all constraints but equalized odds.
    """
    fitted, held = task.hold_out()
    model = trees(task).fit(fitted.X, fitted.y)
    objective = "balanced_accuracy_score" if task.balanced else "accuracy_score"

    def fit(setting: dict[str, Any]) -> Predict | None:
        if setting["tol"] and task.constraint == "equalized_odds":
            return None
        optimizer = fairlearn("postprocessing").ThresholdOptimizer(
            estimator=model,
            constraints=_BY_FAIRLEARN.get(task.constraint, task.constraint),
            objective=objective,
            prefit=True,
            predict_method="predict_proba",
            tol=setting["tol"] or None,
        )
        optimizer.fit(held.X, held.y, sensitive_features=held.groups)
        return partial(_drawn_by_group, optimizer)

    return fit


def _drawn_by_group(optimizer: Any, rows: Rows) -> Prediction:
    chance = optimizer._pmf_predict(rows.X, sensitive_features=rows.groups)[:, 1]
    return Prediction(chance, chance)
