"""LightGBM and other pieces that several environments share."""

from __future__ import annotations

from typing import Any

import numpy as np

from arena.worker import Predict, Prediction, Rows, Task


def trees(task: Task) -> Any:
    """LightGBM with the parameters that all methods built on it share."""
    from lightgbm import LGBMClassifier

    weight = "balanced" if task.balanced else None
    return LGBMClassifier(
        **task.learner, class_weight=weight, random_state=0, n_jobs=1, verbosity=-1
    )


def by_probability(model: Any) -> Predict:
    """Predict with ``predict`` and rank with ``predict_proba``."""

    def predict(rows: Rows) -> Prediction:
        chance = np.asarray(model.predict(rows.X)).astype(float)
        return Prediction(chance, model.predict_proba(rows.X)[:, 1])

    return predict


def balanced_weight(y: Any) -> Any:
    """Weights with which both labels count alike, of mean one."""
    share = np.where(y == 1, np.mean(y), 1 - np.mean(y))
    return 0.5 / share
