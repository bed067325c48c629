"""Rates by group and gaps between groups on held-out rows, with exact intervals.

These are statements about the people the rows were drawn from. They hold for any classifier that
has not seen the rows.
"""

from __future__ import annotations

import html
import inspect
import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from fairproj.constraints import (
    RATES,
    STATISTICS,
    Rate,
    Requirement,
    Statistic,
    find_statistic,
)
from fairproj.data.cells import CellCounts
from fairproj.data.checks import MOST_GROUPS, check_aligned, check_groups, distinct_labels
from fairproj.data.columns import split_sensitive_columns
from fairproj.data.types import Array
from fairproj.inference.differences import (
    difference_range,
    largest_difference_bound,
    largest_difference_low,
)
from fairproj.inference.intervals import check_confidence, exact_interval
from fairproj.inference.ratios import shortfall_bound, shortfall_low, shortfall_range
from fairproj.inference.simultaneous import Errors
from fairproj.io.sources import find_source
from fairproj.metrics.gaps import cell_counts

FEW_ROWS = 30  # a rate over fewer rows than this is pointed out
# In place of the groups with the highest and the lowest rate:
ALL_EQUAL, NOBODY, ALL_ZERO = "all equal", "nobody selected", "all 0"


@dataclass(frozen=True)
class FairnessReport:
    """Rates of each group and gaps between groups, with exact intervals.

    Made by `from_estimator`, `from_batches`, `from_predictions` or `from_counts`. The interval of a
    rate is Clopper & Pearson's. A gap's interval is made of exact bounds of the differences between
    two groups. Its upper end fails with at most half of ``1 - confidence``: the largest of the
    upper bounds of all pairs, each at that level, since it is too small only if that of the pair
    which truly differs most is. Its lower end fails with at most the other half: the best lower
    bound of some pairs, at that level divided by the number of ordered pairs. Both are valid for
    any sample size and number of groups. For equalized odds, the pairs of both labels are taken
    together. The interval of the selection ratio is made of exact limits of the groups' rates,
    which hold at any sample size too, but is wider than it need be.

    A rate over some of the rows is judged given their number: the true positive rate given the
    number of positive labels, the precision given the number of positive predictions. Such an
    interval holds for every number, and therefore also on average.

    Each interval holds with ``confidence`` by itself, so in a report with many of them some are
    likely to be wrong. With ``simultaneous=True`` all of them hold together with that probability
    and are wider; `fairproj.inference.simultaneous` derives the levels.

    All of this is for independent rows, each drawn like the others. Rows held out by group *and*
    label, as `fair_train_test_split` does, have the share of positive labels of the training rows.
    That does not affect true positive, false positive and false negative rates. The intervals of
    selection rates, accuracies and precisions treat the share as random; they are nearly right
    unless most rows are held out.

    Attributes
    ----------
    rates : DataFrame
        One row for each group and rate: ``group``, ``rate``, ``n`` (rows it is taken over),
        ``hits``, ``estimate``, and the exact interval ``low``, ``high``.
    gaps : DataFrame
        One row for each gap: ``gap``, ``kind`` ("difference" or "ratio"), ``estimate``, ``low``,
        ``high``, the groups ``highest`` and ``lowest`` ("all equal" where there is no difference,
        "nobody selected" where the selection ratio would be 0/0), and ``n_smallest``, the rows of
        the smallest group it rests on. The gap of a ratio is its shortfall, 1 minus the ratio;
        printed, the ratio itself is shown.
    confidence : float
        Of every interval by itself, or of all intervals together.
    simultaneous : bool
        Whether it is that of all intervals together.
    """

    rates: pd.DataFrame
    gaps: pd.DataFrame
    confidence: float
    simultaneous: bool = False

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        pos_label: Any = None,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> FairnessReport:
        """Report on a fitted classifier's predictions.

        Parameters
        ----------
        estimator : classifier
            Any fitted classifier, also a pipeline or a search. One whose ``predict`` takes
            ``sensitive_features`` is given them.
        X, y : array-like
            Rows that it has not seen, and their labels.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The groups; may be left out if the classifier names ``sensitive_columns`` of X.
        pos_label : label, optional
            The positive label; by default the classifier's, or the larger in sort order.
        confidence : float, default=0.95
            Of every interval by itself, or of all together.
        simultaneous : bool, default=False
            Whether all intervals hold together with that confidence.

        Returns
        -------
        FairnessReport

        Examples
        --------
        >>> from fairproj import FairBoostClassifier, FairnessReport
        >>> from fairproj.datasets import load_german
        >>> from fairproj.selection import fair_train_test_split
        >>> data = load_german()
        >>> X, X_test, y, y_test, sex, sex_test = fair_train_test_split(
        ...     data.data, data.target, data.sensitive_features, random_state=0)
        >>> model = FairBoostClassifier(max_gap=0.05).fit(X, y, sensitive_features=sex)
        >>> report = FairnessReport.from_estimator(
        ...     model, X_test, y_test, sensitive_features=sex_test)
        >>> report.rates.query("rate == 'true_positive_rate'")[["group", "n"]].values.tolist()
        [['female', 50], ['male', 125]]
        """
        check_aligned(X=X, y=y, sensitive_features=sensitive_features)
        sensitive_features = find_sensitive_features(estimator, X, sensitive_features)
        return cls.from_predictions(
            y,
            predict_labels(estimator, X, sensitive_features),
            sensitive_features=sensitive_features,
            pos_label=positive_label(estimator) if pos_label is None else pos_label,
            confidence=confidence,
            simultaneous=simultaneous,
        )

    @classmethod
    def from_batches(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        pos_label: Any = None,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> FairnessReport:
        """Report on a fitted classifier's predictions for any number of rows, read in parts.

        The rows are read once, and only counts are kept.

        Parameters
        ----------
        estimator : classifier
            As in `from_estimator`.
        X : path, list of paths or Batches
            Rows that it has not seen: Parquet files, or batches (X, y, groups).
        y : str, optional
            The column of the files with the labels.
        sensitive_features : str or list of str, optional
            The columns of the files with the groups; may be left out if the classifier names
            ``sensitive_columns``.
        pos_label : label, optional
            The positive label; by default the classifier's, or the larger in sort order.
        confidence : float, default=0.95
            Of every interval by itself, or of all together.
        simultaneous : bool, default=False
            Whether all intervals hold together with that confidence.

        Returns
        -------
        FairnessReport

        Examples
        --------
        >>> from fairproj import Batches, FairBoostClassifier, FairnessReport
        >>> from fairproj.datasets import load_german
        >>> data = load_german()
        >>> X, y, sex = data.data, data.target, data.sensitive_features
        >>> model = FairBoostClassifier(max_gap=0.05)
        >>> model = model.fit(X[:500], y[:500], sensitive_features=sex[:500])
        >>> rest = [slice(500, 750), slice(750, 1000)]
        >>> batches = Batches([(X[rows], y[rows], sex[rows]) for rows in rest])
        >>> report = FairnessReport.from_batches(model, batches)
        >>> report.rates.query("rate == 'selection_rate'")["n"].sum().item()
        500
        """
        source = find_source(X, y, sensitive_features)
        if source is None:
            raise ValueError(
                "from_batches reads Parquet files or fairproj.Batches, and X is a "
                f"{type(X).__name__}; use from_estimator for rows in memory"
            )
        source = source.select(_columns_read(estimator, sensitive_features is None))
        counted = RowCounts()
        for part in source.parts():
            groups = find_sensitive_features(estimator, part.X, part.sensitive_features)
            if np.shape(part.X)[0]:
                counted.add(part.y, predict_labels(estimator, part.X, groups), groups)
        if pos_label is None:
            pos_label = positive_label(estimator)
        return cls.from_counts(
            *counted.by_cell(pos_label), confidence=confidence, simultaneous=simultaneous
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        pos_label: Any = None,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> FairnessReport:
        """Report on the predictions of any model.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_rows,)
            Labels and predictions.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
            The groups; several columns are crossed.
        pos_label : label, optional
            The positive label; by default the larger in sort order.
        confidence : float, default=0.95
            Of every interval by itself, or of all together.
        simultaneous : bool, default=False
            Whether all intervals hold together with that confidence.

        Returns
        -------
        FairnessReport

        Examples
        --------
        >>> import numpy as np
        >>> from fairproj import FairnessReport
        >>> y = np.tile([0, 1], 50)
        >>> predicted = np.where(np.arange(100) % 4 == 1, 0, y)
        >>> group = np.repeat(["a", "b"], 50)
        >>> report = FairnessReport.from_predictions(y, predicted, sensitive_features=group)
        >>> gap = report.gaps.set_index("gap").loc["equal_opportunity"]
        >>> print(f"{gap.estimate:.2f} in [{gap.low:.2f}, {gap.high:.2f}]")
        0.04 in [0.00, 0.33]
        """
        counts, groups = cell_counts(y_true, y_pred, sensitive_features, pos_label=pos_label)
        return cls.from_counts(
            counts, groups.names, confidence=confidence, simultaneous=simultaneous
        )

    @classmethod
    def from_counts(
        cls,
        counts: CellCounts,
        group_names: list[str],
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> FairnessReport:
        """Report on rows that were counted by group and label.

        Parameters
        ----------
        counts : CellCounts
            Numbers of rows; weights are refused.
        group_names : list of str
        confidence : float, default=0.95
            Of every interval by itself, or of all together.
        simultaneous : bool, default=False
            Whether all intervals hold together with that confidence.

        Returns
        -------
        FairnessReport
        """
        check_confidence(confidence)
        _check_whole(counts)
        if len(group_names) < 2:
            raise ValueError(
                f"sensitive_features holds one group only ({group_names[0]}); a gap needs two"
            )
        statistics = list(STATISTICS.values())
        compared = {each for statistic in statistics for each in statistic.requirements}
        errors = Errors.alone(confidence)
        if simultaneous:
            errors = Errors.joint(confidence, RATES.values(), compared, len(group_names))
        rates = [_rate_rows(rate, counts, group_names, errors.rate) for rate in RATES.values()]
        bounds = Bounds(counts, errors)
        gaps = [gap_row(statistic, counts, group_names, bounds) for statistic in statistics]
        return cls(
            pd.concat(rates, ignore_index=True), pd.DataFrame(gaps), confidence, simultaneous
        )

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
        return {"confidence": self.confidence, "simultaneous": self.simultaneous, **plain}

    def _texts(self) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
        """Both tables as text, and what to keep in mind."""
        wide = self.rates.assign(text=[with_interval(row) for row in self.rates.itertuples()])
        rates = wide.pivot_table(
            index="group", columns="rate", values="text", aggfunc="first", sort=False
        )
        everyone = self.rates[self.rates["rate"] == "selection_rate"].set_index("group")["n"]
        rates.insert(0, "rows", everyone)
        gaps = pd.DataFrame(
            {
                "gap": [_gap_text(row) for row in self.gaps.itertuples()],
                "highest": self.gaps["highest"].to_numpy(),
                "lowest": self.gaps["lowest"].to_numpy(),
                "smallest group": self.gaps["n_smallest"].to_numpy(),
            },
            index=self.gaps["gap"].tolist(),
        )
        how = "all together" if self.simultaneous else "each by itself"
        notes = [
            f"Intervals hold with {100 * self.confidence:g} % confidence, {how}, if the rows are "
            "an independent sample that the model has not seen."
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


class RowCounts:
    """The number of rows of each group, label and prediction, counted part by part."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Any, Any, Any]] = Counter()

    def add(self, y_true: Any, y_pred: Any, sensitive_features: Any) -> None:
        """Count some rows."""
        check_aligned(y_true=y_true, y_pred=y_pred, sensitive_features=sensitive_features)
        labels, actual = distinct_labels(y_true)
        predictions, predicted = distinct_labels(y_pred)
        groups = check_groups(sensitive_features, len(actual), beside="y_true")
        shape = (len(groups.values), len(labels), len(predictions))
        places = np.ravel_multi_index((groups.codes, actual, predicted), shape)
        rows = np.bincount(places, minlength=math.prod(shape))
        keys = product(groups.values, labels.tolist(), predictions.tolist())
        self._counts.update({key: n for key, n in zip(keys, rows.tolist(), strict=True) if n})
        if len(self._counts) > 4 * MOST_GROUPS:
            self.by_cell(None)  # says which of them are too many

    def by_cell(self, pos_label: Any) -> tuple[CellCounts, list[str]]:
        """Rows and positive predictions by group and label, and the names of the groups."""
        if not self._counts:
            raise ValueError("X has 0 rows; at least one is required")
        values, labels, predictions = zip(*self._counts, strict=True)
        table: Any = pd.Series(values, dtype=object)
        if all(isinstance(value, tuple) for value in values):
            table = pd.DataFrame(list(values), dtype=object)
        counts, groups = cell_counts(
            np.array(labels), np.array(predictions), table, list(self._counts.values()), pos_label
        )
        return counts, groups.names


def _columns_read(estimator: Any, with_groups: bool) -> list[Any] | None:
    """The columns that a classifier reads, where it knows their names."""
    names = getattr(estimator, "feature_names_in_", None)
    sensitive = getattr(innermost(estimator), "sensitive_columns", None) if with_groups else None
    groups = [sensitive] if isinstance(sensitive, str | int) else [*(sensitive or ())]
    if names is None or not all(isinstance(name, str) for name in groups):
        return None
    return [*names, *groups]


def with_interval(row: Any) -> str:
    if np.isnan(row.estimate):
        return "unknown"
    return f"{row.estimate:.3f} [{row.low:.3f}, {row.high:.3f}]"


def _gap_text(row: Any) -> str:
    """The gap; for a ratio the ratio itself, since that is what rules such as four fifths name."""
    if row.kind == "difference" or np.isnan(row.estimate):
        return with_interval(row)
    return f"ratio {1 - row.estimate:.3f} [{1 - row.high:.3f}, {1 - row.low:.3f}]"


def gap_upper_bound(counts: CellCounts, statistic: str | Statistic, confidence: float) -> float:
    """A number that the gap is at most, wrong with a chance of at most ``1 - confidence``.

    The largest of the bounds of all pairs of groups (and, for equalized odds, both labels). They
    are exact for differences, see `fairproj.inference.differences`, and conservative for ratios,
    where the gap is 1 minus the ratio. Nothing is known about a group without rows: its rate may be
    anything.

    Parameters
    ----------
    counts : CellCounts
        Rows and predictions by group and label, without sample weights.
    statistic : str or Statistic
        A statistic, or its name in `fairproj.constraints.STATISTICS`.
    confidence : float

    Returns
    -------
    float
    """
    check_confidence(confidence)
    _check_whole(counts)
    if isinstance(statistic, str):
        statistic = find_statistic(statistic)
    kind, seen = statistic.kind, [each.counts(counts) for each in statistic.rates]
    return max(upper_bound(kind, hits, rows, confidence) for hits, rows in seen)


def gap_interval(
    counts: CellCounts, statistic: Statistic, confidence: float
) -> tuple[float, float]:
    """The exact interval of one gap, as in a `FairnessReport`."""
    check_confidence(confidence)
    _check_whole(counts)
    return Bounds(counts, Errors.alone(confidence)).interval(statistic)


def upper_bound(kind: str, hits: Array, rows: Array, confidence: float) -> float:
    """A number that the gap of one rate is at most, wrong with at most ``1 - confidence``."""
    bound = largest_difference_bound if kind == "difference" else shortfall_bound
    return bound(hits, rows, confidence)


def lower_bound(kind: str, hits: Array, rows: Array, error: float) -> float:
    """A number that the gap of one rate is at least, wrong with at most ``error``."""
    if kind == "ratio":
        return shortfall_low(hits, rows, 1 - error)
    n_pairs = len(rows) * (len(rows) - 1)
    return largest_difference_low(hits, rows, 1 - error / n_pairs)


def _check_whole(counts: CellCounts) -> None:
    cells = np.concatenate([counts.size.ravel(), counts.predicted.ravel()])
    fractional = cells[cells != np.round(cells)]
    if len(fractional):
        raise ValueError(
            f"the counts hold {float(fractional[0])}, which is not a whole number; exact "
            "intervals count rows, so count each row once, without sample_weight"
        )


def predict_labels(estimator: Any, X: Any, sensitive_features: Any) -> Any:
    """The predictions of a classifier whose ``predict`` may need the groups, or a seed.

    Group-specific thresholds need the groups; randomised classifiers draw with the seed 0.
    """
    while (kept := kept_model(estimator)) is not None:  # predict around it takes X only
        estimator = kept
    offered = {"sensitive_features": sensitive_features, "random_state": 0}
    taken = _predict_parameters(estimator)
    arguments = {name: value for name, value in offered.items() if name in taken}
    return estimator.predict(X, **arguments)


def _predict_parameters(estimator: Any) -> Collection[str]:
    """The parameters of ``predict``; those of a pipeline go to its last step."""
    if isinstance(estimator, Pipeline):
        return _predict_parameters(estimator.steps[-1][1])
    return inspect.signature(estimator.predict).parameters


def innermost(model: Any) -> Any:
    """The classifier inside searches and pipelines, which knows the positive label."""
    while True:
        if (kept := kept_model(model)) is not None:
            model = kept
        elif isinstance(model, Pipeline):
            model = model.steps[-1][1]
        else:
            return model


def kept_model(model: Any) -> Any:
    """What a search or a `ConfirmedClassifier` has fitted; None for other models."""
    if hasattr(model, "best_estimator_"):
        return model.best_estimator_
    return model.estimator_ if hasattr(model, "confirmed_") else None


def positive_label(estimator: Any) -> Any:
    """The label that a fitted classifier calls positive: its ``pos_label``, or the larger class.

    None where it has neither.
    """
    named = getattr(innermost(estimator), "pos_label", None)
    classes: Any = getattr(estimator, "classes_", ())
    return classes[-1] if named is None and len(classes) == 2 else named


def find_sensitive_features(estimator: Any, X: Any, sensitive_features: Any) -> Any:
    """The groups as given, or those of the ``sensitive_columns`` that the classifier names."""
    if sensitive_features is not None:
        return sensitive_features
    columns = getattr(innermost(estimator), "sensitive_columns", None)
    if columns is None:
        raise ValueError(
            "sensitive_features is missing, and the model names no sensitive_columns; pass the "
            "group of each row"
        )
    return split_sensitive_columns(X, columns)[1]


def _rate_rows(rate: Rate, counts: CellCounts, groups: list[str], error: float) -> pd.DataFrame:
    hits, rows = rate.counts(counts)
    low, high = exact_interval(hits, rows, 1 - error)
    return pd.DataFrame(
        {
            "group": groups,
            "rate": rate.name,
            "n": rows.astype(int),
            "hits": hits.astype(int),
            "estimate": rate.values(counts),
            "low": low,
            "high": high,
        }
    )


class Bounds:
    """The intervals of gaps, at given chances of error; see `fairproj.inference.simultaneous`."""

    def __init__(self, counts: CellCounts, errors: Errors) -> None:
        self._counts, self._errors = counts, errors
        self._highs: dict[Requirement, float] = {}
        self._joint: dict[Requirement, tuple[float, float]] = {}

    def interval(self, statistic: Statistic) -> tuple[float, float]:
        """Of the largest of one or more gaps; each end fails with half of the error."""
        compared = statistic.requirements
        if self._errors.together:
            ends = [self._together(each) for each in compared]
            return max(low for low, _ in ends), max(high for _, high in ends)
        # The upper end is too small only if that of the truly largest gap is; any may be the lower.
        error = self._errors.gap / 2 / len(compared)
        return max(self._low(each, error) for each in compared), max(map(self._high, compared))

    def _high(self, requirement: Requirement) -> float:
        if requirement not in self._highs:
            seen = requirement.rate.counts(self._counts)
            bound = upper_bound(requirement.kind, *seen, 1 - self._errors.gap / 2)
            self._highs[requirement] = bound
        return self._highs[requirement]

    def _low(self, requirement: Requirement, error: float) -> float:
        return lower_bound(requirement.kind, *requirement.rate.counts(self._counts), error)

    def _together(self, requirement: Requirement) -> tuple[float, float]:
        if requirement not in self._joint:
            self._joint[requirement] = self._find_together(requirement)
        return self._joint[requirement]

    def _find_together(self, requirement: Requirement) -> tuple[float, float]:
        """The narrower of the gap's own bounds and of those that follow from the rates'."""
        hits, rows = requirement.rate.counts(self._counts)
        limits = exact_interval(hits, rows, 1 - self._errors.rate)
        if requirement.kind == "ratio":
            return shortfall_range(*limits)
        low, high = difference_range(*limits)
        own = self._low(requirement, self._errors.gap / 2)
        return max(low, own), min(high, self._high(requirement))


def gap_row(
    statistic: Statistic, counts: CellCounts, groups: list[str], bounds: Bounds
) -> dict[str, Any]:
    """The widest of one or more comparisons."""
    compared = statistic.requirements
    gap, highest, lowest = max(
        (_extremes(each, counts, groups) for each in compared),
        key=lambda extremes: np.nan_to_num(extremes[0], nan=np.inf),
    )
    low, high = bounds.interval(statistic)
    return {
        "gap": statistic.name,
        "kind": statistic.kind,
        "estimate": gap,
        "low": low,
        "high": high,
        "highest": highest,
        "lowest": lowest,
        "n_smallest": int(min(each.rate.counts(counts)[1].min() for each in compared)),
    }


def _extremes(
    requirement: Requirement, counts: CellCounts, groups: list[str]
) -> tuple[float, str, str]:
    """The gap between the known rates, and the groups where they are highest and lowest."""
    rates = requirement.rate.values(counts)
    known = rates[~np.isnan(rates)]
    if len(known) < 2:
        return np.nan, "unknown", "unknown"
    gap = float(requirement.gap(known))
    if known.max() == known.min():
        words = ALL_EQUAL
        if requirement.kind == "ratio" and not known.any():  # 0/0, which counts as a gap of 1
            words = NOBODY if requirement.rate.name == "selection_rate" else ALL_ZERO
        return gap, words, words
    return gap, groups[int(np.nanargmax(rates))], groups[int(np.nanargmin(rates))]
