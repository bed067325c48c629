"""RelaxedThresholdOptimizer of error-parity (Cruz & Hardt 2024): thresholds by group, drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from error_parity import RelaxedThresholdOptimizer
from error_parity.classifiers import BinaryClassifier, RandomizedClassifier

from arena.peers.learner import trees
from arena.worker import Predict, Prediction, Rows, Task

_NAMES = {"equal_opportunity": "true_positive_rate_parity"}


def relaxed_threshold_optimizer(task: Task) -> Callable[[dict[str, Any]], Predict]:
    """Thresholds on rows that the scores were not fitted on."""
    fitted, held = task.hold_out()
    model = trees(task).fit(fitted.X, fitted.y)
    positive = held.y.mean()
    # What an error costs by label: in the balanced case, errors of the rarer label cost more.
    costs = (0.5 / (1 - positive), 0.5 / positive) if task.balanced else (1.0, 1.0)

    def score(X: Any) -> Any:
        return model.predict_proba(X)[:, 1]

    def fit(setting: dict[str, Any]) -> Predict:
        optimizer = RelaxedThresholdOptimizer(
            predictor=score,
            constraint=_NAMES.get(task.constraint, task.constraint),
            tolerance=setting["tolerance"],
            false_pos_cost=costs[0],
            false_neg_cost=costs[1],
        )
        optimizer.fit(held.X, held.y, group=held.groups)

        def predict(rows: Rows) -> Prediction:
            scores, chance = score(rows.X), np.zeros(len(rows.y))
            for group, classifier in optimizer._realized_classifier.group_to_clf.items():
                members = rows.groups == group
                by_chance = optimizer.groupwise_roc_points[group][0]
                chance[members] = expected(classifier, scores[members], by_chance)
            return Prediction(chance, chance)

        return predict

    return fit


def expected(classifier: Any, scores: Any, by_chance: float) -> Any:
    """The chance of a positive prediction for rows with these scores, in place of one draw.

    Parts that do not look at the scores are positive with the false positive rate of the group.
    """
    if isinstance(classifier, RandomizedClassifier):
        parts = zip(classifier.classifiers, classifier.probabilities, strict=True)
        return sum(chance * expected(part, scores, by_chance) for part, chance in parts)
    if isinstance(classifier, BinaryClassifier):
        return scores >= classifier.threshold
    return np.full(len(scores), by_chance)
