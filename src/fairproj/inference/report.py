"""What can be said of a classifier's gaps from held-out rows, with exact intervals.

Apart from `metrics` because those are numbers about a sample, these statements about the world the
sample came from. They hold for any classifier, ours or not, as long as it has not seen the rows.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.pipeline import Pipeline

from fairproj.inference.differences import largest_difference_bound, largest_difference_low
from fairproj.data.checks import Array, Groups, check_groups, split_sensitive_columns
from fairproj.metrics import two_labels

__all__ = ["FairnessReport", "exact_interval", "fairness_report"]

FEW_ROWS = 30  # a rate over fewer rows than this is pointed out

# Each rate: what to call it, which labels its rows have (0 negative, 1 positive).
_RATES = {
    "selection_rate": (0, 1),
    "true_positive_rate": (1,),
    "false_positive_rate": (0,),
    "accuracy": (0, 1),
}
_GAPS = {
    "demographic_parity": ("selection_rate",),
    "equal_opportunity": ("true_positive_rate",),
    "false_positive_rate": ("false_positive_rate",),
    "equalized_odds": ("true_positive_rate", "false_positive_rate"),
    "accuracy": ("accuracy",),
}


def exact_interval(hits: Any, n: Any, confidence: float = 0.95) -> tuple[Array, Array]:
    """Clopper & Pearson's interval of a probability: at least ``confidence`` coverage, always.

    The bounds are quantiles of beta distributions: ``low`` has P(at least hits) = alpha/2, ``high``
    P(at most hits) = alpha/2. Where n is 0 it is (0, 1).

    Examples
    --------
    >>> from fairproj.inference import exact_interval
    >>> low, high = exact_interval(8, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.444 0.975
    """
    _check_confidence(confidence)
    hits, n = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    if not ((hits >= 0) & (hits <= n)).all():
        raise ValueError("hits must lie between 0 and n")
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        low = stats.beta.ppf(tail, hits, n - hits + 1)
        high = stats.beta.ppf(1 - tail, hits + 1, n - hits)
    return np.where(hits > 0, low, 0.0), np.where(hits < n, high, 1.0)


def gap_upper_bound(
    y: Any, y_pred: Any, sensitive_features: Any, gap: str, confidence: float, pos_label: Any = None
) -> float:
    """A number that the gap is at most, wrong with a chance of at most ``1 - confidence``.

    The largest of the exact bounds of all pairs of groups (and, for equalized odds, both labels):
    see `fairproj.inference.differences`. Of a group without rows nothing is known: its rate may be anything.

    Every group to be compared must be among ``sensitive_features``.
    """
    _check_confidence(confidence)
    y, y_pred, positive = two_labels(y, y_pred, pos_label)
    actual, predicted = (y == positive).astype(np.intp), (y_pred == positive).astype(np.intp)
    groups = _several(sensitive_features, len(actual))
    return max(
        largest_difference_bound(*_counts(name, actual, predicted, groups), confidence)
        for name in _GAPS[gap]
    )


@dataclass(frozen=True)
class FairnessReport:
    """Rates of each group and gaps between groups, with intervals.

    Attributes
    ----------
    rates : DataFrame
        One row for each group and rate: ``group``, ``rate``, ``n`` (rows it is taken over),
        ``hits``, ``estimate``, and the exact interval ``low``, ``high`` of that rate by itself.
    gaps : DataFrame
        One row for each gap: ``gap``, ``estimate``, ``low``, ``high``, the groups ``highest`` and
        ``lowest``, and ``n_smallest``, the rows of the smallest group it rests on.
    confidence : float
        Of every interval, each by itself.
    """

    rates: pd.DataFrame
    gaps: pd.DataFrame
    confidence: float

    @property
    def too_small(self) -> list[str]:
        """Groups with a rate over fewer than 30 rows, the fewest first."""
        few = self.rates[self.rates["n"] < FEW_ROWS].groupby("group", sort=False)["n"].min()
        return [f"{group} ({n})" for group, n in few.sort_values().items()]

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists and numbers, None for what is not known."""
        tables = {"rates": self.rates, "gaps": self.gaps}
        plain = {
            name: table.astype(object).where(table.notna(), None).to_dict("records")
            for name, table in tables.items()
        }
        return {"confidence": self.confidence, **plain}

    def _texts(self) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
        """Both tables as text, and what to keep in mind."""
        wide = self.rates.assign(text=[_with_interval(row) for row in self.rates.itertuples()])
        rates = wide.pivot_table(
            index="group", columns="rate", values="text", aggfunc="first", sort=False
        )
        everyone = self.rates[self.rates["rate"] == "selection_rate"].set_index("group")["n"]
        rates.insert(0, "rows", everyone)
        gaps = pd.DataFrame(
            {
                "gap": [_with_interval(row) for row in self.gaps.itertuples()],
                "highest": self.gaps["highest"].to_numpy(),
                "lowest": self.gaps["lowest"].to_numpy(),
                "smallest group": self.gaps["n_smallest"].to_numpy(),
            },
            index=self.gaps["gap"].tolist(),
        )
        notes = [
            f"Intervals hold with {100 * self.confidence:g} % confidence, each by itself, if the "
            "rows are an independent sample that the model has not seen."
        ]
        if self.too_small:
            shown = ", ".join(self.too_small[:8])
            notes.append(
                f"Too small to say much, with a rate over fewer than {FEW_ROWS} rows: {shown}."
            )
        return rates.rename_axis(None, axis=1).rename_axis(None), gaps, notes

    def __str__(self) -> str:
        rates, gaps, notes = self._texts()
        return "\n".join(
            ["Rates by group", rates.to_string(), "", "Gaps", gaps.to_string(), *notes]
        )

    def _repr_html_(self) -> str:
        rates, gaps, notes = self._texts()
        text = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
        return rates.to_html() + gaps.to_html() + text


def _with_interval(row: Any) -> str:
    if np.isnan(row.estimate):
        return "unknown"
    return f"{row.estimate:.3f} [{row.low:.3f}, {row.high:.3f}]"


def fairness_report(
    model: Any,
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    y_pred: Any = None,
    pos_label: Any = None,
    confidence: float = 0.95,
) -> FairnessReport:
    """Rates by group and gaps of a classifier on held-out rows, with exact intervals.

    The interval of a rate is Clopper & Pearson's. A gap's interval is made of exact bounds of the
    differences between two groups. Its upper end fails with at most half of ``1 - confidence``: the
    largest of the upper bounds of all pairs, each at that level, since it is too small only if that
    of the pair which truly differs most is. Its lower end fails with at most the other half: the
    best lower bound of some pairs, at that level divided by the number of ordered pairs. Both are
    valid for any sample size and number of groups. For equalized odds, the pairs of both labels are
    taken together.

    All of this is for independent rows, each drawn like the others. Rows held out by group *and*
    label, as `fair_train_test_split` does, have the share of positive labels of the training rows.
    That does nothing to true and false positive rates. The intervals of selection rates and
    accuracies take the share for chance; they are nearly right unless most rows are held out.

    Parameters
    ----------
    model : classifier
        Fitted; not looked at if ``y_pred`` is given.
    X : array, sparse matrix or data frame
        Rows that the model was neither trained nor watched on; not looked at if ``y_pred`` is
        given.
    y : array-like of shape (n_rows,)
        Their labels. Every row counts once: exact intervals know no weights.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
        Their groups; several columns are crossed. May be left out for a model with
        ``sensitive_columns``, if X has them.
    y_pred : array-like of shape (n_rows,), optional
        Predictions, to audit a model by these alone (``model`` and ``X`` may be None).
    pos_label : label, optional
        The positive label; by default the model's ``pos_label``, or the larger in sort order.
    confidence : float, default=0.95

    Returns
    -------
    FairnessReport
        ``print`` it, or use its data frames `rates` and `gaps`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairproj import fairness_report
    >>> y = np.tile([0, 1], 50)
    >>> predicted = np.where(np.arange(100) % 4 == 1, 0, y)
    >>> group = np.repeat(["a", "b"], 50)
    >>> report = fairness_report(None, None, y, group, y_pred=predicted)
    >>> gap = report.gaps.set_index("gap").loc["equal_opportunity"]
    >>> print(f"{gap.estimate:.2f} in [{gap.low:.2f}, {gap.high:.2f}]")
    0.04 in [0.00, 0.33]
    """
    _check_confidence(confidence)
    if sensitive_features is None:
        columns = getattr(innermost(model), "sensitive_columns", None)
        if columns is None:
            raise ValueError(
                "sensitive_features is missing, and the model names no sensitive_columns; pass the "
                "group of each row"
            )
        sensitive_features = split_sensitive_columns(X, columns)[1]
    predictions = model.predict(X) if y_pred is None else y_pred
    if pos_label is None:
        pos_label = getattr(innermost(model), "pos_label", None)
    y, predictions, positive = two_labels(y, predictions, pos_label)
    actual, predicted = (y == positive).astype(np.intp), (predictions == positive).astype(np.intp)
    groups = _several(sensitive_features, len(actual))
    counts = {name: _counts(name, actual, predicted, groups) for name in _RATES}
    rates = [_rate_rows(name, *counts[name], groups.names, confidence) for name in _RATES]
    error = (1 - confidence) / 2
    highs = {name: largest_difference_bound(*counts[name], 1 - error) for name in _RATES}
    gaps = [
        _gap_row(name, [counts[r] for r in used], groups.names, error, max(highs[r] for r in used))
        for name, used in _GAPS.items()
    ]
    return FairnessReport(pd.concat(rates, ignore_index=True), pd.DataFrame(gaps), confidence)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1 - 1e-9:
        wanted = "confidence must lie between 0 and 1"
        if 0 < confidence < 1:
            wanted += ", by more than a billionth"
        raise ValueError(f"{wanted}, got {confidence!r}")


def _several(sensitive_features: Any, n_rows: int) -> Groups:
    groups = check_groups(sensitive_features, n_rows, beside="y")
    if len(groups.values) < 2:
        raise ValueError(
            f"sensitive_features holds one group only ({groups.names[0]}); a gap needs two"
        )
    return groups


def innermost(model: Any) -> Any:
    """The classifier inside searches and pipelines, which knows the positive label."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            model = model.steps[-1][1]
        else:
            return model


def _counts(name: str, actual: Any, predicted: Any, groups: Any) -> tuple[Array, Array]:
    """Hits and rows of a rate, for each group."""
    inside = np.isin(actual, _RATES[name])
    hit = (actual == predicted) if name == "accuracy" else predicted == 1
    n_groups = len(groups.values)
    rows = np.bincount(groups.codes[inside], minlength=n_groups)
    hits = np.bincount(groups.codes[inside & hit], minlength=n_groups)
    return hits.astype(float), rows.astype(float)


def _rate_rows(
    name: str, hits: Array, rows: Array, groups: list[str], confidence: float
) -> pd.DataFrame:
    low, high = exact_interval(hits, rows, confidence)
    return pd.DataFrame(
        {
            "group": groups,
            "rate": name,
            "n": rows.astype(int),
            "hits": hits.astype(int),
            "estimate": _share(hits, rows),
            "low": low,
            "high": high,
        }
    )


def _share(hits: Array, rows: Array) -> Array:
    share: Array = np.full(len(rows), np.nan)
    return np.divide(hits, rows, out=share, where=rows > 0)


def _gap_row(
    name: str, counts: list[tuple[Array, Array]], groups: list[str], error: float, high: float
) -> dict[str, Any]:
    """The widest of one or more comparisons; ``low`` fails with a chance of at most ``error``."""
    n_pairs = len(counts) * len(groups) * (len(groups) - 1)
    found = []
    for hits, rows in counts:
        share = _share(hits, rows)
        known = (~np.isnan(share)).sum() > 1
        top, bottom = (int(np.nanargmax(share)), int(np.nanargmin(share))) if known else (0, 0)
        gap = share[top] - share[bottom] if known else np.nan
        found.append((gap, *((groups[top], groups[bottom]) if known else ("unknown", "unknown"))))
    estimate, highest, lowest = max(found, key=lambda one: np.nan_to_num(one[0], nan=np.inf))
    return {
        "gap": name,
        "estimate": estimate,
        "low": max(largest_difference_low(*each, 1 - error / n_pairs) for each in counts),
        "high": high,
        "highest": highest,
        "lowest": lowest,
        "n_smallest": int(min(rows.min() for _, rows in counts)),
    }
