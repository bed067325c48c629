"""FairGBM (Cruz et al. 2023): LightGBM with multipliers for proxies of the constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from fairgbm import FairGBMClassifier

from arena.worker import Predict, Prediction, Rows, Task

# FairGBM has no demographic parity.
_RATES = {"equal_opportunity": "FNR", "equalized_odds": "FPR,FNR"}


def fairgbm(task: Task) -> Callable[[dict[str, Any]], Predict]:
    """Without its global constraints, which bound error rates over all rows.

    It has no class weights. Where both labels are to count alike, the score is cut at the share of
    positive labels, which is best for scores that are probabilities.
    """
    X, y, groups = task.train
    cut = float(y.mean()) if task.balanced else 0.5

    def fit(setting: dict[str, Any]) -> Predict:
        slack = setting["slack"]
        model = FairGBMClassifier(
            **task.learner,
            constraint_type=_RATES[task.constraint],
            constraint_fpr_threshold=slack,
            constraint_fnr_threshold=slack,
            multiplier_learning_rate=setting["multiplier_learning_rate"],
            random_state=0,
            n_jobs=1,
            verbosity=-1,
        )
        model.fit(pd.DataFrame(X), y, constraint_group=groups)

        def predict(rows: Rows) -> Prediction:
            score = model.predict_proba(pd.DataFrame(rows.X))[:, 1]
            return Prediction((score > cut).astype(float), np.asarray(score))

        return predict

    return fit
