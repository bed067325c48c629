"""In-processing of AIF360 for two groups: PrejudiceRemover, MetaFairClassifier, GerryFair."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from aif360.algorithms.inprocessing import (
    GerryFairClassifier,
    MetaFairClassifier,
    PrejudiceRemover,
)
from aif360.datasets import BinaryLabelDataset

from arena.worker import Predict, Prediction, Rows, Task

# PrejudiceRemover starts "python", and must find the one of this environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


class Standardised:
    """Rows as AIF360 takes them: features of mean 0 and deviation 1, and the group as a column."""

    def __init__(self, rows: Rows) -> None:
        self.mean, scale = rows.X.mean(axis=0), rows.X.std(axis=0)
        self.scale = np.where(scale > 0, scale, 1.0)

    def __call__(self, rows: Rows, *, with_group: bool) -> Any:
        names = [f"x{at}" for at in range(rows.X.shape[1])]
        frame = pd.DataFrame((rows.X - self.mean) / self.scale, columns=names)
        frame = frame.assign(group=rows.groups.astype(float), label=rows.y.astype(float))
        data = BinaryLabelDataset(
            df=frame, label_names=["label"], protected_attribute_names=["group"]
        )
        if not with_group:
            data.features, data.feature_names = data.features[:, :-1], names
        return data


def prejudice_remover(task: Task) -> Callable[[dict[str, Any]], Predict]:
    """A penalty on the mutual information of prediction and group; one model for each group."""
    data = Standardised(task.train)
    return lambda setting: _transformer(
        PrejudiceRemover(eta=setting["eta"], sensitive_attr="group", class_attr="label").fit(
            data(task.train, with_group=True)
        ),
        data,
        with_group=True,
    )


def meta_fair_classifier(task: Task) -> Callable[[dict[str, Any]], Predict]:
    """A bound on the ratio of selection rates, with normal densities of features and labels."""
    data = Standardised(task.train)
    return lambda setting: _transformer(
        MetaFairClassifier(tau=setting["tau"], sensitive_attr="group", type="sr", seed=0).fit(
            data(task.train, with_group=False)
        ),
        data,
        with_group=False,
    )


def _transformer(model: Any, data: Standardised, *, with_group: bool) -> Predict:
    def predict(rows: Rows) -> Prediction:
        predicted = model.predict(data(rows, with_group=with_group))
        return Prediction(predicted.labels.ravel(), predicted.scores.ravel())

    return predict


def gerry_fair(task: Task) -> Callable[[dict[str, Any]], Predict]:
    """False negative rates alike by fictitious play of linear regressions, drawn."""
    data = Standardised(task.train)

    def fit(setting: dict[str, Any]) -> Predict:
        model = GerryFairClassifier(
            C=setting["C"], gamma=setting["gamma"], max_iters=50, fairness_def="FN"
        )
        model.fit(data(task.train, with_group=True))

        def predict(rows: Rows) -> Prediction:
            chance = model.predict(data(rows, with_group=True), threshold=False).labels.ravel()
            return Prediction(chance, chance)

        return predict

    return fit
