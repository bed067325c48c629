"""The Seldonian engine (Thomas et al. 2019; Hoag et al. 2023): logistic regression, tested."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import autograd.numpy as np
from seldonian.dataset import SupervisedDataSet, SupervisedMetaData
from seldonian.models import objectives
from seldonian.models.models import BinaryLogisticRegressionModel
from seldonian.parse_tree.parse_tree import make_parse_trees_from_constraints
from seldonian.seldonian_algorithm import SeldonianAlgorithm
from seldonian.spec import SupervisedSpec
from seldonian.utils.stats_utils import default_supervised_initial_solution_fn

from arena.worker import Predict, Prediction, Rows, Task

_RATES = {
    "equal_opportunity": ("TPR",),
    "demographic_parity": ("PR",),
    "equalized_odds": ("TPR", "FPR"),
}


def seldonian(task: Task) -> Callable[[dict[str, Any]], Predict]:
    """The gap is bounded with confidence 0.95, or no solution is returned."""
    X, y, groups = task.train
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    names = [f"x{at}" for at in range(X.shape[1])]
    columns = [f"g{group}" for group in range(task.n_groups)]
    meta = SupervisedMetaData("classification", [*names, *columns, "y"], names, ["y"], columns)
    member = (groups[:, None] == np.arange(task.n_groups)).astype(int)
    data = SupervisedDataSet((X - mean) / scale, y, member, len(y), meta)

    def fit(setting: dict[str, Any]) -> Predict:
        theta = _solve(task, data, columns, setting)

        def predict(rows: Rows) -> Prediction:
            score = BinaryLogisticRegressionModel().predict(theta, (rows.X - mean) / scale)
            return Prediction((score >= 0.5).astype(float), score)

        return predict

    return fit


def _solve(task: Task, data: Any, columns: list[str], setting: dict[str, Any]) -> Any:
    pairs = list(combinations(columns, 2))
    limits = [
        f"abs(({rate} | [{a}]) - ({rate} | [{b}])) <= {setting['max_gap']}"
        for rate in _RATES[task.constraint]
        for a, b in pairs
    ]
    trees = make_parse_trees_from_constraints(
        limits,
        [0.05] * len(limits),
        regime="supervised_learning",
        sub_regime="classification",
        columns=columns,
    )
    spec = SupervisedSpec(
        dataset=data,
        model=BinaryLogisticRegressionModel(),
        parse_trees=trees,
        sub_regime="classification",
        frac_data_in_safety=setting["safety"],
        primary_objective=objectives.binary_logistic_loss,
        initial_solution_fn=default_supervised_initial_solution_fn,
        optimization_hyperparams={
            "lambda_init": np.full(len(limits), 0.5),
            "alpha_theta": 0.01,
            "alpha_lamb": 0.01,
            "beta_velocity": 0.9,
            "beta_rmsprop": 0.95,
            "use_batches": False,
            "num_iters": setting["iterations"],
            "gradient_library": "autograd",
            "hyper_search": None,
            "verbose": False,
        },
    )
    passed, theta = SeldonianAlgorithm(spec).run()
    if not passed:
        raise ValueError("no solution found: the safety test did not pass")
    return theta
