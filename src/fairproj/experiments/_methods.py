"""Methods by the names that plans use, and facts about the training of a fitted one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from fairproj.baselines import (
    FAB,
    AdaFair,
    AdaptiveReweighting,
    ExponentiatedGradient,
    Reweighing,
    ThresholdOptimizer,
)
from fairproj.baselines._wrapper import Weighted
from fairproj.boosting.record import History
from fairproj.estimators import FairBoostClassifier, FairProjClassifier
from fairproj.estimators.base import BoostedClassifier
from fairproj.experiments._data import Part
from fairproj.experiments._plan import Plan, Task
from fairproj.experiments._readings import (
    AddedUp,
    EqualMasses,
    FixedMultiplier,
    ReadingClassifier,
    ShareOfPositives,
    SmoothedDual,
)

# Exact stumps on every column but Adult's fnlwgt; the default would bin German's credit amount.
BINS = 1023

Builder = Callable[..., Any]  # of a task, the number of rounds and the settings in the plan


def _ours(kind: Any, **fixed: Any) -> Builder:
    """A classifier of this package; the plan's epsilon is its second parameter."""

    def build(task: Task, rounds: int, **settings: Any) -> Any:
        settings = {"max_bins": BINS, "n_jobs": 1, "n_estimators": rounds} | fixed | settings
        return kind(task.constraint, task.epsilon, **settings)

    return build


def _reading(reading: Any) -> Builder:
    return _ours(ReadingClassifier, reading=reading)


def _boosting(rounds: int, **settings: Any) -> FairProjClassifier:
    """AdaBoost on this package's engine, by default with stumps; it is fast."""
    return FairProjClassifier(None, n_estimators=rounds, max_bins=BINS, n_jobs=1, **settings)


def _adaboost(task: Task, rounds: int) -> AdaBoostClassifier:
    """scikit-learn's AdaBoost. Its stumps break ties at random, hence the seed."""
    return AdaBoostClassifier(n_estimators=rounds, random_state=task.seed)


def _gradient(learner: Callable[..., Any]) -> Builder:
    return lambda task, rounds, **settings: ExponentiatedGradient(
        learner(rounds, **settings), task.constraint, task.epsilon or 0.0
    )


def _stump(rounds: int) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=1, random_state=0)


# How to build each method, and roughly how long it takes on Adult, in seconds.
METHODS: dict[str, tuple[Builder, float]] = {
    "AdaBoost": (_adaboost, 3.0),
    "Reweighing": (lambda task, rounds: Reweighing(_adaboost(task, rounds)), 3.0),
    "FairProj": (_ours(FairProjClassifier), 0.4),
    "FairBoost": (_ours(FairBoostClassifier), 0.6),
    "EG, one stump": (_gradient(_stump), 4.0),
    "EG, boosted stumps": (_gradient(_boosting), 12.0),
    "Thresholds by group": (
        lambda task, rounds: ThresholdOptimizer(_boosting(rounds), task.constraint),
        1.0,
    ),
    "AdaFair": (lambda task, rounds: AdaFair(n_estimators=rounds), 4.0),
    "FAB": (lambda task, rounds: FAB(_boosting(rounds), task.constraint, task.epsilon or 0.0), 1.0),
    "Adaptive reweighting": (lambda task, rounds: AdaptiveReweighting(_boosting(rounds)), 4.0),
    "AdaBoost, own engine": (lambda task, rounds, **more: _boosting(rounds, **more), 0.4),
    "Reweighing, own engine": (lambda task, rounds: Reweighing(_boosting(rounds)), 0.4),
    "FairProj, share of positives": (_reading(ShareOfPositives), 0.4),
    "FairProj, equal masses": (_reading(EqualMasses), 0.4),
    "FairProj, smoothed dual": (_reading(SmoothedDual), 0.4),
    "FairProj, multipliers added up": (_reading(AddedUp), 0.4),
    "FairProj, multiplier 1.0": (_reading(partial(FixedMultiplier, multiplier=1.0)), 0.4),
    "FairProj, multiplier 1.5": (_reading(partial(FixedMultiplier, multiplier=1.5)), 0.4),
}


def fit(task: Task, plan: Plan, train: Part) -> Any:
    """The method of a task, fitted on the training part."""
    method = plan.method(task.method)
    model = METHODS[method.kind or method.name][0](task, plan.rounds, **method.settings)
    if isinstance(model, AdaBoostClassifier):
        return model.fit(train.X, train.y)
    return model.fit(train.X, train.y, sensitive_features=train.groups)


def predict(model: Any, test: Part) -> Any:
    """The predictions for the test part."""
    if isinstance(model, ThresholdOptimizer):
        return model.predict(test.X, sensitive_features=test.groups)
    return model.predict(test.X)


def n_rounds(model: Any) -> float:
    """The number of learners that vote; NaN for methods that have none."""
    if isinstance(model, AdaFair):
        return model.n_rounds_
    if isinstance(model, Weighted):
        model = model.estimator_
    if isinstance(model, BoostedClassifier | AdaBoostClassifier):
        return len(model.estimators_)
    return float("nan")


def history(model: Any) -> History | None:
    """The rounds of a classifier of this package; None for other methods."""
    return model.history_ if isinstance(model, BoostedClassifier) else None


def training_facts(model: Any) -> dict[str, float]:
    """Averages over the rounds, and whether what the paper proves held in every round."""
    rounds = history(model)
    if rounds is None or not rounds.constraint_names:
        return {}
    columns = rounds.columns
    loss = np.concatenate([[1.0], columns["loss"]])
    violation = np.abs(rounds.by_constraint("balance")) - np.array(rounds.limits)
    lower = columns["edge_w"] - columns["fairness_cost"]
    return {
        "fairness_cost": columns["fairness_cost"].mean(),
        "edge_w": columns["edge_w"].mean(),
        "edge_q": columns["edge_q"].mean(),
        "loss_falls": float((np.diff(loss) < 0).all()),
        "edge_bound_holds": float((columns["edge_q"] >= lower - 1e-12).all()),
        "violation": max(0.0, float(violation.max(initial=0.0))),
    }
