"""The content of a report: everything it states, as plain lists, texts and numbers.

Pages, Markdown and model cards are rendered from this content alone, never from a live model.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import metrics as sklearn_metrics

from fairproj.boosting.record import History
from fairproj.constraints import RATES, STATISTICS, Statistic, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import plain_labels
from fairproj.data.types import Array
from fairproj.estimators.price import Price
from fairproj.inference import FairnessReport
from fairproj.inference.report import (
    find_sensitive_features,
    innermost,
    positive_label,
    predict_labels,
)
from fairproj.io.versions import versions
from fairproj.metrics import calibration_error, cell_counts
from fairproj.report import _words
from fairproj.report._content import Content
from fairproj.report._dynamics import dynamics, threshold_curve
from fairproj.report._price import measure_on_rows, price_content


@dataclass(frozen=True)
class Source:
    """Where the rows and the model of a report come from, as far as is known.

    Attributes
    ----------
    data : str
        What to call the rows.
    which : str
        Which of them these are, such as "rows held out from training".
    seen : bool or None
        Whether the model was trained on them; None where that is not known.
    sha256 : str
        Of the file.
    command : str
        What to type for the same report.
    more : dict of str to str
        Further rows for the table of what was asked.
    """

    data: str = "the given rows"
    which: str = ""
    seen: bool | None = None
    sha256: str = ""
    command: str = ""
    more: dict[str, str] = field(default_factory=dict)


def summarize_estimator(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    metric: str = "equal_opportunity",
    max_gap: float | None = None,
    confidence: float = 0.95,
    pos_label: Any = None,
    frontier: Content | None = None,
    source: Source | None = None,
    other_targets: Mapping[str, float] | None = None,
    simultaneous: bool = False,
) -> Content:
    """The content of a report about a fitted classifier.

    Parameters
    ----------
    estimator : classifier
        Any fitted classifier, also a pipeline or a search.
    X, y : array-like
        Rows, preferably ones that it has not seen, and their labels.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
        The groups; may be left out if the classifier names ``sensitive_columns`` of X.
    metric : str, default="equal_opportunity"
        The gap to look at, by its name in `fairproj.constraints.STATISTICS` or an alias.
    max_gap : float, optional
        The largest gap allowed; without it, there is no verdict.
    confidence : float, default=0.95
        Of every interval by itself, or of all intervals together.
    pos_label : label, optional
        The positive label; by default the classifier's, or the larger in sort order.
    frontier : dict, optional
        From `frontier_content` or `search_content`.
    source : Source, optional
        Where the rows come from.
    other_targets : mapping of str to float, optional
        The largest values allowed for other gaps, by their names.
    simultaneous : bool, default=False
        Whether all intervals hold together with the stated confidence.

    Returns
    -------
    dict
    """
    groups = find_sensitive_features(estimator, X, sensitive_features)
    pos_label = positive_label(estimator) if pos_label is None else pos_label
    source = source or Source()
    content = summarize_predictions(
        y,
        predict_labels(estimator, X, groups),
        sensitive_features=groups,
        metric=metric,
        max_gap=max_gap,
        confidence=confidence,
        pos_label=pos_label,
        frontier=frontier,
        source=source,
        other_targets=other_targets,
        simultaneous=simultaneous,
    )
    inner = innermost(estimator)
    scored = None
    if _has_probabilities(estimator, y, pos_label):
        probability = estimator.predict_proba(X)[:, estimator.classes_.tolist().index(pos_label)]
        scored = ScoredRows(plain_labels(y) == pos_label, probability, groups)
    price, plain = None, None
    if hasattr(inner, "baseline_") and inner is estimator:
        price = measure_on_rows(inner, X, y, groups)
    if price is not None:
        plain, _ = cell_counts(y, inner.baseline_.predict(X), groups, pos_label=pos_label)
    add_estimator(content, estimator, scored, price, plain, source)
    return content


@dataclass(frozen=True)
class ScoredRows:
    """Rows of both labels, and the probability of the positive one for each.

    Attributes
    ----------
    actual : array of bool
        Whether a row's label is positive.
    probability : array
    groups : array-like
        Codes, where these are a sample.
    sampled_from : int
        The number of all rows, where these are a sample of them; else 0.
    """

    actual: NDArray[np.bool_]
    probability: Array
    groups: Any
    sampled_from: int = 0


def add_estimator(
    content: Content,
    estimator: Any,
    scored: ScoredRows | None,
    price: Price | None,
    plain: CellCounts | None,
    source: Source,
) -> None:
    """Add what a report states about the estimator that made the predictions.

    Parameters
    ----------
    content : dict
        From `summarize_counts` or `summarize_predictions`.
    estimator : classifier
    scored : ScoredRows, optional
        For what is computed from probabilities.
    price : Price, optional
        What the constraint cost on these rows.
    plain : CellCounts, optional
        Of the same settings without a constraint, on these rows.
    source : Source
    """
    content["asked"] = _asked(content["target"], _model_rows(estimator), source)
    inner = innermost(estimator)
    if scored is not None:
        _add_scores(content, scored, getattr(inner, "threshold_", None))
    if isinstance(getattr(inner, "history_", None), History):
        content["dynamics"] = dynamics(inner.history_)
        content["certificate"] = _certificate(inner.certificate_)
        content["summary"] += _words.decision(inner)
        if content["verdict"] == "met" and not getattr(inner.certificate_, "useful", True):
            content["verdict"] = "not useful"
    if price is not None and plain is not None:
        content["price"] = _price(price, plain, content)
    elif hasattr(inner, "baseline_") and hasattr(inner, "price_"):
        content["price"] = price_content(inner.price_)  # inside a pipeline, on rows of training


def _add_scores(content: Content, scored: ScoredRows, in_use: float | None) -> None:
    """Add scores of the probabilities, and the gap by threshold where all groups have rows."""
    content["scores"] += _probability_scores(scored)
    if scored.sampled_from:
        content["caveats"].append(sampled_words(len(scored.actual), scored.sampled_from))
    if _all_drawn(content, scored) and not _words.groups_without_rows(content):
        content["thresholds"] = threshold_curve(
            scored.actual, scored.probability, scored.groups, True, content["target"], in_use
        )


def _all_drawn(content: Content, scored: ScoredRows) -> bool:
    """Whether a sample has rows of every group and label that the rows have."""
    if not scored.sampled_from:
        return True
    groups = content["data"]["groups"]
    present = sum((g["positives"] > 0) + (g["rows"] > g["positives"]) for g in groups)
    drawn = np.unique(2 * np.asarray(scored.groups, dtype=int) + scored.actual)
    return len(drawn) == int(present)


def sampled_words(n_sampled: int, n_rows: int) -> str:
    """What a report says about numbers that come from some of the rows."""
    return (
        "ROC AUC, log loss, calibration errors and the gap by threshold are computed from a random "
        f"sample of {n_sampled:,} of the {n_rows:,} rows; everything else from all rows."
    )


def _price(measured: Price, plain: CellCounts, content: Content) -> Content:
    """What the constraint cost on these rows."""
    if content["data"]["seen"]:
        measured = replace(measured, rows="training rows")
    elif content["data"]["seen"] is None:
        measured = replace(measured, rows="given rows")
    gap = _words.target_gap(content)["estimate"]
    statistic = STATISTICS[content["target"]["metric"]]
    return price_content(measured, statistic.words, gap, statistic.value(plain))


def summarize_predictions(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    metric: str = "equal_opportunity",
    max_gap: float | None = None,
    confidence: float = 0.95,
    pos_label: Any = None,
    frontier: Content | None = None,
    source: Source | None = None,
    other_targets: Mapping[str, float] | None = None,
    simultaneous: bool = False,
) -> Content:
    """The content of a report about the predictions of any model.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Labels and predictions.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    metric, max_gap, confidence, frontier, source : as for `summarize_estimator`
    other_targets, simultaneous : as for `summarize_estimator`
    pos_label : label, optional
        The positive label; by default the larger in sort order.

    Returns
    -------
    dict
    """
    counts, groups = cell_counts(y_true, y_pred, sensitive_features, pos_label=pos_label)
    positive = _positive_label(y_true, y_pred, counts) if pos_label is None else str(pos_label)
    return summarize_counts(
        counts,
        groups.names,
        positive,
        metric=metric,
        max_gap=max_gap,
        confidence=confidence,
        frontier=frontier,
        source=source or Source(),
        other_targets=other_targets or {},
        simultaneous=simultaneous,
    )


def summarize_counts(
    counts: CellCounts,
    group_names: list[str],
    positive: str,
    *,
    metric: str,
    max_gap: float | None,
    confidence: float,
    frontier: Content | None,
    source: Source,
    other_targets: Mapping[str, float],
    simultaneous: bool = False,
) -> Content:
    """The content of a report about rows that were counted by group, label and prediction.

    ``positive`` is the positive label as text; the rest is as for `summarize_estimator`.
    """
    statistic = find_statistic(metric, "metric")
    _check_frontier(frontier, statistic)
    report = FairnessReport.from_counts(
        counts, group_names, confidence=confidence, simultaneous=simultaneous
    )
    target = {"metric": statistic.name, "name": statistic.words, "max_gap": max_gap}
    model = ["Model", "not given: the predictions alone were audited"]
    content: Content = {
        "format": "fairproj report",
        "format_version": 1,
        "title": f"Fairness report: {source.data}",
        "created": datetime.date.today().isoformat(),
        "target": target,
        "asked": _asked(target, [model], source),
        "data": _data(counts, group_names, positive, source),
        "scores": _scores(counts),
        "constant": _is_constant(counts),
        **_tables(report),
        "frontier": frontier,
        "dynamics": None,
        "certificate": None,
        "price": None,
        "thresholds": None,
        "reproduce": {
            "command": source.command,
            "sha256": source.sha256,
            "versions": {n: v for n, v in versions().items() if v != "not installed"},
        },
    }
    content["verdict"] = _verdict(content)
    content["summary"] = _words.sentences(content)
    _add_targets(content, other_targets)
    content["caveats"] = _words.caveats(content, report.too_small)
    return content


def _add_targets(content: Content, targets: Mapping[str, float]) -> None:
    """Judge further gaps; the verdict is the worst of all."""
    verdicts = [content["verdict"]]
    for metric, max_gap in targets.items():
        statistic = find_statistic(metric, "metric")
        target = {"metric": statistic.name, "name": statistic.words, "max_gap": max_gap}
        other = {**content, "target": target}
        other["verdict"] = _verdict(other)
        verdicts.append(other["verdict"])
        content["summary"] += _words.target_sentences(other)
        content["asked"].insert(2, [f"Largest {statistic.words} allowed", f"{max_gap:g}"])
    if content["verdict"] != "no target":
        content["verdict"] = min(verdicts, key=["not useful", "not met", "undecided", "met"].index)


def _check_frontier(frontier: Content | None, statistic: Statistic) -> None:
    if frontier is not None and frontier["gap"] != statistic.name:
        raise ValueError(
            f"the frontier is about {frontier['gap']} and the report about {statistic.name}; make "
            f"it with frontier_content(..., gap={statistic.name!r}), or leave it out"
        )


def _positive_label(y_true: Any, y_pred: Any, counts: CellCounts) -> str:
    """The larger label; unknown where all rows hold one label that does not count as positive."""
    labels = {*pd.unique(plain_labels(y_true)).tolist(), *pd.unique(plain_labels(y_pred)).tolist()}
    if len(labels) == 1 and not counts.size[:, 1].any():
        return "unknown"
    return str(max(labels))


def _tables(report: FairnessReport) -> Content:
    """Rates and gaps as in `FairnessReport.to_dict`, with their names in words."""
    tables = report.to_dict()
    tables["rates"] = [{**row, "name": RATES[row["rate"]].words} for row in tables["rates"]]
    tables["gaps"] = [{**row, "name": STATISTICS[row["gap"]].words} for row in tables["gaps"]]
    return tables


def _is_constant(counts: CellCounts) -> bool:
    """Whether rows of both labels all get the same prediction, which leaves no gap to measure."""
    size, correct = counts.size.sum(axis=0), counts.correct.sum(axis=0)
    n_positive = size[0] - correct[0] + correct[1]
    return bool(size.all() and n_positive in (0, size.sum()))


def _verdict(content: Content) -> str:
    """``met``, ``not met``, ``undecided`` (the interval holds the target) or ``no target``.

    ``not useful`` of predictions that are all the same.
    """
    limit = content["target"]["max_gap"]
    if limit is None:
        return "no target"
    if content["constant"]:
        return "not useful"
    if content["data"]["seen"]:
        return "undecided"
    gap = _words.target_gap(content)
    if gap["high"] <= limit:
        return "met"
    return "not met" if gap["low"] > limit else "undecided"


def _data(counts: CellCounts, names: list[str], positive: str, source: Source) -> Content:
    n_rows = int(counts.size.sum())
    return {
        "name": source.data,
        "which": source.which,
        "seen": source.seen,
        "rows": n_rows,
        "positive_label": positive,
        "groups": [
            {
                "group": name,
                "rows": int(negatives + positives),
                "share": float((negatives + positives) / n_rows),
                "positives": int(positives),
                "positive_share": float(positives / (negatives + positives)),
            }
            for name, (negatives, positives) in zip(names, counts.size, strict=True)
        ],
    }


def _scores(counts: CellCounts) -> list[Content]:
    size, correct = counts.size.sum(axis=0), counts.correct.sum(axis=0)
    present = size > 0  # as scikit-learn, which leaves out a class without rows
    scores = {
        "accuracy": counts.accuracy,
        "balanced accuracy": float(np.mean(correct[present] / size[present])),
        "accuracy of the majority label": counts.constant_accuracy,
    }
    return [{"name": name, "value": value} for name, value in scores.items()]


def _has_probabilities(estimator: Any, y: Any, positive: Any) -> bool:
    """Whether there are probabilities, and both labels occur."""
    both = len(np.unique(plain_labels(y) == positive)) == 2
    return both and hasattr(innermost(estimator), "predict_proba")


def _probability_scores(rows: ScoredRows) -> list[Content]:
    errors = calibration_error(
        rows.actual.astype(int), rows.probability, sensitive_features=rows.groups, pos_label=1
    )["ece"]
    scores = {
        "ROC AUC": sklearn_metrics.roc_auc_score(rows.actual, rows.probability),
        "log loss": sklearn_metrics.log_loss(rows.actual, rows.probability),
        "calibration error": errors.iloc[0],
        "calibration error, worst group": errors.iloc[1:].max(),
    }
    return [{"name": name, "value": float(value)} for name, value in scores.items()]


def _certificate(certificate: Any) -> Content:
    return {
        "rows": [list(row) for row in certificate.rows()],
        "words": _words.certificate_words(certificate),
        "caveat": certificate.caveat,
        "holds": bool(certificate.holds),
    }


def _asked(target: Content, model: list[list[str]], source: Source) -> list[list[str]]:
    limit = target["max_gap"]
    return [
        ["Gap looked at", target["name"]],
        ["Largest gap allowed", "none was named" if limit is None else f"{limit:g}"],
        *model,
        *([name, text] for name, text in source.more.items()),
    ]


def _model_rows(estimator: Any) -> list[list[str]]:
    inner, name = innermost(estimator), type(estimator).__name__
    around = "" if inner is estimator else f" around {type(inner).__name__}"
    rows = [["Model", name + around]]
    if hasattr(estimator, "reason_"):
        rows.append([f"How {' and '.join(estimator.best_params_)} was chosen", estimator.reason_])
    if isinstance(getattr(inner, "history_", None), History):
        rows += _training_rows(inner)
    return rows


def _training_rows(model: Any) -> list[list[str]]:
    parameter, bounded = "epsilon", "the imbalance between groups in the training weights"
    if model.history_.closed_loop:
        parameter = "max_gap"
        bounded = f"the gap of the predictions on the {_words.watched(model.certificate_)}"
    bounds = np.ravel(getattr(model, parameter))
    decided = []
    if model.history_.closed_loop:
        decided = [
            ["Loss", f"{model.loss}, {model.tree_step.replace('_', ' ')} steps"],
            ["Decision threshold", _words.threshold(model)],
            ["Useful on those rows", "yes" if model.certificate_.useful else "no"],
        ]
    return [
        ["Constraint in training", _words.constraint(model.constraints)],
        ["What training bounded", bounded],
        [f"Bound in training ({parameter})", ", ".join(f"{bound:g}" for bound in bounds)],
        ["Most rounds", str(model.n_estimators)],
        ["Weak learner", _learner(model)],
        *decided,
    ]


def _learner(model: Any) -> str:
    if model.estimator is not None:
        return type(model.estimator).__name__
    if model.max_leaf_nodes is None:
        depth = model.max_depth or 1
        return "trees of one split" if depth == 1 else f"trees of depth {depth}"
    return f"trees of at most {model.max_leaf_nodes} leaves"
