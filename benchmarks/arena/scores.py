"""Accuracy, gaps, ranking and calibration of predictions, the same code for every method."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from arena.plan import CONSTRAINTS
from arena.worker import Rows
from fairproj.constraints import STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.metrics import calibration_error

SCORES = ("accuracy", "balanced_accuracy")
MEASURED = (*SCORES, *CONSTRAINTS)
COLUMNS = (
    "point",
    *(f"validation_{name}" for name in MEASURED),
    *(f"test_{name}" for name in MEASURED),
    "auc",
    "calibration_error",
    "seconds",
)


def measure(rows: Rows, chance: Any, weight: Any = None) -> dict[str, float]:
    """Scores and gaps of predictions that are positive with given chances: their expectations."""
    place = 2 * rows.groups + rows.y
    weight = np.ones(len(place)) if weight is None else weight
    n_cells = 2 * (int(rows.groups.max()) + 1)
    size = np.bincount(place, weight, n_cells).reshape(-1, 2)
    predicted = np.bincount(place, weight * np.asarray(chance, dtype=float), n_cells)
    counts = CellCounts(size, predicted.reshape(-1, 2))
    by_label = counts.correct.sum(axis=0) / counts.size.sum(axis=0)
    gaps = {name: STATISTICS[name].value(counts) for name in CONSTRAINTS}
    return {"accuracy": counts.accuracy, "balanced_accuracy": float(by_label.mean())} | gaps


def measure_scores(
    rows: Rows, score: Any, weight: Any = None, *, probabilities: bool
) -> dict[str, float]:
    """Area under the ROC curve; and the expected calibration error, if scores are probabilities."""
    if score is None:
        return {"auc": np.nan, "calibration_error": np.nan}
    auc = float(roc_auc_score(rows.y, score, sample_weight=weight))
    if not probabilities:
        return {"auc": auc, "calibration_error": np.nan}
    errors = calibration_error(rows.y, np.clip(score, 0, 1), sample_weight=weight)
    return {"auc": auc, "calibration_error": float(errors.loc["overall", "ece"])}


def constant_score(rows: Rows, goal: str, weight: Any = None) -> float:
    """What the better constant prediction reaches."""
    constants = (np.full(len(rows.y), float(label)) for label in (0, 1))
    return max(measure(rows, each, weight)[goal] for each in constants)
