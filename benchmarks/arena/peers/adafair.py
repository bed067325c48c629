"""AdaFair (Iosifidis & Ntoutsi 2019, 2022), by its authors: two groups, stumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from adafair import AdaFair, AdaFairEQOP, AdaFairSP
from sklearn.tree import DecisionTreeClassifier

from arena.worker import Predict, Prediction, Rows, Task

_KINDS = {
    "equal_opportunity": AdaFairEQOP,
    "demographic_parity": AdaFairSP,
    "equalized_odds": AdaFair,
}


class Stump(DecisionTreeClassifier):
    """A stump that does not see the last column.

    AdaFair reads the group from a column of X, where its learners would find it as well.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        return super().fit(X[:, :-1], y, sample_weight)

    def predict(self, X: Any, check_input: bool = True) -> Any:
        return super().predict(X[:, :-1])

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        return super().predict_proba(X[:, :-1])


def adafair(task: Task) -> Callable[[dict[str, Any]], Predict]:
    """Each class costs mistakes on the group with the lower rate, which may be either group."""
    X, y, groups = task.train

    def fit(setting: dict[str, Any]) -> Predict:
        model = _KINDS[task.constraint](
            base_estimator=Stump(max_depth=1, random_state=0),
            n_estimators=setting["n_estimators"],
            saIndex=X.shape[1],
            saValue=0,
            CSB="CSB2",
            trade_off_c=setting["c"],
        )
        model.fit(np.column_stack([X, groups]), 2 * y - 1)

        def predict(rows: Rows) -> Prediction:
            hidden = np.column_stack([rows.X, np.zeros(len(rows.y))])
            margin = model.decision_function(hidden)
            return Prediction((margin > 0).astype(float), margin)

        return predict

    return fit
