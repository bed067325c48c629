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
    """Without its global constraints, which bound error rates over all rows."""
    X, y, groups = task.train

    def fit(setting: dict[str, Any]) -> Predict:
        slack = setting["slack"]
        model = FairGBMClassifier(
            **task.learner,
            constraint_type=_RATES[task.constraint],
            constraint_fpr_threshold=slack,
            constraint_fnr_threshold=slack,
            multiplier_learning_rate=setting["multiplier_learning_rate"],
            class_weight="balanced" if task.balanced else None,
            random_state=0,
            n_jobs=1,
            verbosity=-1,
        )
        model.fit(pd.DataFrame(X), y, constraint_group=groups)

        def predict(rows: Rows) -> Prediction:
            score = model.predict_proba(pd.DataFrame(rows.X))[:, 1]
            return Prediction((score > 0.5).astype(float), np.asarray(score))

        return predict

    return fit
