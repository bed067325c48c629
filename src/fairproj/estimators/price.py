"""What a constraint cost: a model and the same settings without a constraint, on the same rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from fairproj.data.checks import plain_labels
from fairproj.data.sample import Sample, make_sample
from fairproj.data.types import Array, Codes
from fairproj.metrics.calibration import calibration_error

if TYPE_CHECKING:
    from fairproj.estimators.base import BoostedClassifier


REMARKS = {  # on the rows that a price can be of
    "training rows": ", where both look better than they are",
    "held-out rows": ", on which training chose the rounds of both",
    "test rows": "",
    "given rows": "",
}


@dataclass(frozen=True)
class Scores:
    """How well a model predicts some rows.

    Attributes
    ----------
    accuracy, auc, log_loss : float
    calibration_error, group_calibration_error : float
        The expected calibration error of the probabilities, overall and in the worst group.
    """

    accuracy: float
    auc: float
    log_loss: float
    calibration_error: float
    group_calibration_error: float


@dataclass(frozen=True)
class Price:
    """What a constraint cost.

    Attributes
    ----------
    rows : str
        The rows on which both models were measured: "test rows", which had no part in training;
        "held-out rows", on which ``fit`` chose the rounds of both; or "training rows".
    n_rows : int
    model, plain : Scores
        With and without the constraint.
    """

    rows: str
    n_rows: int
    model: Scores
    plain: Scores

    @property
    def accuracy_points(self) -> float:
        """By how many percentage points the constraint lowered the accuracy."""
        return 100 * (self.plain.accuracy - self.model.accuracy)

    def to_frame(self) -> pd.DataFrame:
        """A row for each score: with the constraint, without, and the difference."""
        frame = pd.DataFrame({"model": asdict(self.model), "plain": asdict(self.plain)})
        return frame.assign(difference=frame["model"] - frame["plain"])

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        where = f"on {self.n_rows:,} {self.rows}{REMARKS[self.rows]}"
        table = self.to_frame().to_string(float_format=lambda value: f"{value:.4f}")
        return f"What the constraint cost, {where}:\n{table}"


def measure_price(model: BoostedClassifier, plain: BoostedClassifier, rows: Sample) -> Price:
    """Compare two models on rows that are encoded already."""
    watched_on: Any = model.certificate_
    return Price(watched_on.watched_on, len(rows), _scores(model, rows), _scores(plain, rows))


def measure_on_rows(model: Any, X: Any, y: Any, sensitive_features: Any) -> Price | None:
    """The price on rows that neither model was trained on; None where all have one label.

    The other model is the first one's ``baseline_``.
    """
    if len(np.unique(plain_labels(y))) < 2:
        return None
    sample = make_sample(X, y, sensitive_features, None, pos_label=model.pos_label)
    encoded = replace(sample, X=model.to_matrix(X, missing="score"), cache={})
    return replace(measure_price(model, model.baseline_, encoded), rows="test rows")


def _scores(model: BoostedClassifier, rows: Sample) -> Scores:
    labels, probabilities = model.predict_matrix(rows.X)
    accuracy = float(np.average(labels == rows.labels, weights=rows.weight))
    classes = model.classes_.tolist()
    at = len(classes) - 1 if model.pos_label is None else classes.index(model.pos_label)
    return make_scores(
        accuracy,
        (rows.y > 0) == bool(at),
        probabilities[:, at],
        rows.groups.codes,
        rows.weight,
    )


def make_scores(
    accuracy: float,
    positive: NDArray[np.bool_],
    probability: Array,
    groups: Codes,
    weight: Array | None = None,
) -> Scores:
    """The scores of rows whose label may be positive, with the probability that it is.

    The bins of the calibration errors depend on which label that is.
    """
    errors = calibration_error(
        positive.astype(int), probability, sensitive_features=groups, sample_weight=weight
    )["ece"]
    return Scores(
        accuracy=accuracy,
        auc=float(roc_auc_score(positive, probability, sample_weight=weight)),
        log_loss=float(log_loss(positive, probability, sample_weight=weight)),
        calibration_error=float(errors.iloc[0]),
        group_calibration_error=float(errors.iloc[1:].max()),
    )
