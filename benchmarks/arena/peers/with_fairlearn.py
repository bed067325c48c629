"""Methods of fairlearn: two reductions and thresholds by group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from fairlearn import postprocessing, reductions

from arena.peers.learner import by_probability, trees
from arena.worker import Predict, Prediction, Rows, Task

Fit = Callable[[dict[str, Any]], Predict | None]
_MOMENTS = {
    "demographic_parity": reductions.DemographicParity,
    "equal_opportunity": reductions.TruePositiveRateParity,
    "equalized_odds": reductions.EqualizedOdds,
}
_PARITIES = {"equal_opportunity": "true_positive_rate_parity"}


def exponentiated_gradient(task: Task) -> Fit:
    """fairlearn bounds the distance to the rate of all rows: half of the gap that is wanted."""

    def fit(setting: dict[str, Any]) -> Predict:
        bound = setting["max_gap"] / 2
        model = reductions.ExponentiatedGradient(
            _unweighted_trees(task),
            _MOMENTS[task.constraint](difference_bound=bound),
            objective=_objective(task),
            eps=bound,
            max_iter=setting["max_iter"],
        )
        X, y, groups = task.train
        model.fit(X, y, sensitive_features=groups)

        def predict(rows: Rows) -> Prediction:
            chance = model._pmf_predict(rows.X)[:, 1]
            return Prediction(chance, chance)

        return predict

    return fit


def grid_search(task: Task) -> Fit:
    """Every model that the search trains is a point.

    With the default limit of 2 most multipliers are too large for the data at hand.
    """
    search = reductions.GridSearch(
        _unweighted_trees(task),
        _with_objective(_MOMENTS[task.constraint], task)(),
        grid_size=len(task.settings),
        grid_limit=1.0,
    )
    X, y, groups = task.train
    search.fit(X, y, sensitive_features=groups)
    return lambda setting: _one_of_the_search(search.predictors_[setting["model"]])


def _unweighted_trees(task: Task) -> Any:
    """A reduction weighs the rows and sets their labels; class weights would count these."""
    return trees(task).set_params(class_weight=None)


def _objective(task: Task) -> Any:
    """The error rate; in the balanced case, errors of the rarer label cost more."""
    positive = float(task.train.y.mean())
    costs = {"fp": 0.5 / (1 - positive), "fn": 0.5 / positive} if task.balanced else None
    return reductions.ErrorRate(costs=costs)


def _with_objective(moment: Any, task: Task) -> Any:
    """The moment with the objective that the task asks for; GridSearch takes it from there."""
    return type(moment.__name__, (moment,), {"default_objective": lambda self: _objective(task)})


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
        optimizer = postprocessing.ThresholdOptimizer(
            estimator=model,
            constraints=_PARITIES.get(task.constraint, task.constraint),
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
