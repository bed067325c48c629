"""OxonFair (Delaney et al. 2024): thresholds by group, given or inferred from the features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oxonfair import DataDict, FairPredictor
from oxonfair import group_metrics as gm

from arena.peers.learner import trees
from arena.worker import Predict, Prediction, Rows, Task

UNSURE = 2 / 3  # OxonFair's default
_GAPS = {
    "equal_opportunity": gm.recall.max_diff,
    "demographic_parity": gm.pos_pred_rate.max_diff,
    "equalized_odds": gm.equalized_odds_max,
}


def given_groups(task: Task) -> Callable[[dict[str, Any]], Predict]:
    return _fair_predictor(task, inferred=False)


def inferred_groups(task: Task) -> Callable[[dict[str, Any]], Predict]:
    return _fair_predictor(task, inferred=True)


def _fair_predictor(task: Task, *, inferred: bool) -> Callable[[dict[str, Any]], Predict]:
    """Thresholds on rows that scores and inferred groups were not fitted on.

    Its frontier is computed once, and each setting picks a point of it.
    """
    fitted, held = task.hold_out()
    model = trees(task).fit(fitted.X, fitted.y)
    finder = trees(task).set_params(class_weight=None).fit(fitted.X, fitted.groups)
    known = DataDict(held.y, held.X, held.groups)
    found = {"inferred_groups": finder, "threshold": unsure_below(finder, held)} if inferred else {}
    fair = FairPredictor(model, known, **found)
    objective = gm.balanced_accuracy if task.balanced else gm.accuracy
    fair.fit(objective, _GAPS[task.constraint], 0.0)

    def fit(setting: dict[str, Any]) -> Predict:
        fair.fit(objective, _GAPS[task.constraint], setting["value"], recompute=False)
        offset = np.array(fair.offset)

        def predict(rows: Rows) -> Prediction:
            fair.offset = offset
            score = np.asarray(fair.predict_proba(DataDict(rows.y, rows.X, rows.groups)))
            return Prediction(np.argmax(score, axis=1).astype(float), score[:, 1] - score[:, 0])

        return predict

    return fit


def unsure_below(finder: Any, rows: Rows) -> float:
    """The chance below which a group counts as unknown: the default, or 0 to count none.

    OxonFair 0.3 fails if one of its groups, that of the unknown ones included, has no rows.
    """
    chances = finder.predict_proba(rows.X)
    best = chances.max(axis=1)
    sure = chances.argmax(axis=1)[best >= UNSURE]
    complete = len(np.unique(sure)) == chances.shape[1] and (best < UNSURE).any()
    return UNSURE if complete else 0.0
