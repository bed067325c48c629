"""The content of a report: everything it states, as plain lists, texts and numbers.

Pages, Markdown and model cards are rendered from this content alone, never from a live model.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn import metrics as sklearn_metrics

from fairproj.boosting.monitor import says_both
from fairproj.boosting.record import History
from fairproj.constraints import RATES, STATISTICS, Statistic, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import check_aligned, percent, plain_labels
from fairproj.data.types import Codes
from fairproj.engines.base import TIE
from fairproj.estimators.price import measure_on_rows
from fairproj.inference import FairnessReport
from fairproj.inference.report import (
    find_sensitive_features,
    innermost,
    positive_label,
    predict_labels,
)
from fairproj.metrics.calibration import calibration_error
from fairproj.metrics.gaps import cell_counts
from fairproj.report import _words
from fairproj.report._content import Content
from fairproj.report._dynamics import dynamics
from fairproj.report._importance import can_explain, importance_of_rows
from fairproj.report._omissions import not_looked_at
from fairproj.report._price import (
    Comparison,
    balanced_accuracy,
    comparison_content,
    price_content,
)
from fairproj.report._proxies import proxies_content
from fairproj.report._scores import (
    ScoreCounts,
    ScoredRows,
    calibration_content,
    distribution_content,
    threshold_content,
)
from fairproj.report._source import Source
from fairproj.report._subject import features_of, kind_of, model_name, subject
from fairproj.report._training import error_weights, not_frequencies, opposite_labels

FOUR_FIFTHS = 0.8


@dataclass(frozen=True)
class Evidence:
    """What was measured of a model on some rows, beyond its predictions.

    Attributes
    ----------
    counts : CellCounts
        The predictions.
    threshold : float, optional
        The probability of the positive label above which the model says it.
    scored : ScoredRows, optional
        Labels and probabilities, perhaps of a sample of the rows.
    scores : ScoreCounts, optional
        Counts of the probabilities of all rows.
    comparison : Comparison, optional
        With the model without a constraint.
    importance : dict, optional
        From `importance_content`.
    """

    counts: CellCounts
    threshold: float | None = None
    scored: ScoredRows | None = None
    scores: ScoreCounts | None = None
    comparison: Comparison | None = None
    importance: Content | None = None


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
        Plain lists, texts and numbers; `fairproj.report` describes the fields.
    """
    check_aligned(X=X, y=y, sensitive_features=sensitive_features)
    groups = find_sensitive_features(estimator, X, sensitive_features)
    pos_label = positive_label(estimator) if pos_label is None else pos_label
    source = _named(source or Source(), y, groups)
    predicted = predict_labels(estimator, X, groups)
    content = summarize_predictions(
        y,
        predicted,
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
    rows = _Rows(estimator, X, y, groups, predicted, pos_label)
    add_estimator(content, estimator, rows.evidence(), source)
    return content


def _named(source: Source, y: Any, groups: Any) -> Source:
    """With the names of the label and of the sensitive columns, where the data have names."""
    label = source.label or str(getattr(y, "name", None) or "")
    sensitive = source.sensitive
    if not sensitive:
        name = getattr(groups, "name", None)
        names = getattr(groups, "columns", [] if name is None else [name])
        sensitive = [str(one) for one in names if isinstance(one, str)]
    return replace(source, label=label, sensitive=sensitive)


@dataclass(frozen=True)
class _Rows:
    """A classifier, and rows in memory to measure it on."""

    estimator: Any
    X: Any
    y: Any
    groups: Any
    predicted: Any
    positive: Any

    def evidence(self) -> Evidence:
        counts, groups = cell_counts(self.y, self.predicted, self.groups, pos_label=self.positive)
        scored = self._scored(groups.codes)
        scores = None
        if scored is not None:
            scores = ScoreCounts(len(groups.values))
            scores.add(scored.groups, scored.actual, scored.probability)
        inner, importance = innermost(self.estimator), None
        if inner is self.estimator and can_explain(inner):
            sizes = counts.size.sum(axis=1).astype(int).tolist()
            importance = importance_of_rows(
                inner, self.X, groups.codes, groups.names, sizes, self.positive
            )
        return Evidence(
            counts, self._threshold(scored), scored, scores, self._comparison(), importance
        )

    def _scored(self, codes: Codes) -> ScoredRows | None:
        """Probabilities, where there are any and both labels occur."""
        actual = plain_labels(self.y) == self.positive
        known = hasattr(innermost(self.estimator), "predict_proba")
        if not known or len(np.unique(actual)) < 2:
            return None
        at = self.estimator.classes_.tolist().index(self.positive)
        return ScoredRows(actual, self.estimator.predict_proba(self.X)[:, at], codes)

    def _threshold(self, scored: ScoredRows | None) -> float | None:
        known = decision_threshold(innermost(self.estimator), self.positive)
        if known is not None or scored is None:
            return known
        said = plain_labels(self.predicted) == self.positive
        return 0.5 if np.array_equal(said, scored.probability > 0.5) else None

    def _comparison(self) -> Comparison | None:
        model = self.estimator
        if not hasattr(model, "baseline_"):
            return None
        price = measure_on_rows(model, self.X, self.y, self.groups)
        if price is None:
            return None
        said = model.baseline_.predict(self.X)
        plain, _ = cell_counts(self.y, said, self.groups, pos_label=self.positive)
        labels = plain_labels(self.y)
        right, plain_right = plain_labels(self.predicted) == labels, plain_labels(said) == labels
        return Comparison(
            price, plain, int((right & ~plain_right).sum()), int((plain_right & ~right).sum())
        )


def decision_threshold(model: Any, positive: Any) -> float | None:
    """The probability of a label above which a model of this library says it."""
    if not isinstance(getattr(model, "history_", None), History):
        return None
    found = float(getattr(model, "threshold_", 0.5))  # FairProjClassifier decides at a margin of 0
    return found if positive == positive_label(model) else 1 - found


def add_estimator(content: Content, estimator: Any, evidence: Evidence, source: Source) -> None:
    """Add what a report states about the estimator that made the predictions.

    Parameters
    ----------
    content : dict
        From `summarize_counts` or `summarize_predictions`.
    estimator : classifier
    evidence : Evidence
        What was measured on the rows.
    source : Source
    """
    inner = innermost(estimator)
    content["title"] = f"Fairness report: {model_name(source, estimator)}"
    content["asked"] = _asked(content["targets"], _model_rows(estimator, source), source)
    content["threshold"] = evidence.threshold
    content["features"] = features_of(estimator, source)
    content["importance"] = evidence.importance
    _add_scores(content, evidence)
    content["summary"] += _leak_words(source)
    _add_weights(content, inner)
    if isinstance(getattr(inner, "history_", None), History):
        content["dynamics"] = dynamics(inner.history_)
        content["certificate"] = _certificate(inner, source)
        if opposite := opposite_labels(inner):
            content["caveats"].append(opposite)
        if source.confirmed:
            content["summary"].append(
                f"The model file says that a test after training confirmed: {source.confirmed}. "
                "This report has not checked that."
            )
        content["summary"] += _words.decision(inner, content["target"]["metric"])
        judged = content["verdict"] in ("met", "undecided")
        if judged and not getattr(inner.certificate_, "useful", True):
            content["verdict"] = "not useful"
    certificate: Any = getattr(inner, "certificate_", None)
    useful = not content["constant"] and getattr(certificate, "useful", True)
    if evidence.comparison is not None:
        content["price"] = comparison_content(
            evidence.comparison,
            content,
            searched=source.searched,
            weighted=bool(error_weights(inner)),
            useful=useful,
        )
    elif hasattr(inner, "baseline_") and hasattr(inner, "price_"):
        content["price"] = price_content(  # of training
            inner.price_, searched=source.searched, useful=useful
        )
    content["subject"] = subject(content, source, estimator)
    content["not_looked_at"] = not_looked_at(content, source, estimator)


def _leak_words(source: Source) -> list[str]:
    """What the checks before training said of features that may give the label away."""
    leaks = [row["words"] for row in source.findings or [] if row["kind"] == "leak"]
    return [f"Before you rely on this: {words}." for words in leaks]


def _add_scores(content: Content, evidence: Evidence) -> None:
    """Add what follows from the probabilities."""
    scored, names = evidence.scored, [group["group"] for group in content["data"]["groups"]]
    if scored is not None:
        content["scores"] += _probability_scores(scored)
        content["calibration"] = calibration_content(scored, names, content["confidence"])
        if scored.sampled_from:
            content["caveats"].append(sampled_words(len(scored.actual), scored.sampled_from))
    if evidence.scores is not None:
        content["distribution"] = distribution_content(evidence.scores, names)
        content["thresholds"] = threshold_content(
            evidence.scores, evidence.counts, names, content["target"], evidence.threshold
        )


def _add_weights(content: Content, model: Any) -> None:
    """Add what a reader must know of a model whose errors were weighted by label."""
    if content["calibration"] is not None:
        content["calibration"]["note"] = not_frequencies(model)
    if not (weighted := error_weights(model)):
        return
    scores = {row["name"]: row["value"] for row in content["scores"]}
    content["summary"].insert(
        1,
        f"Training weighted errors by label ({weighted}). The balanced accuracy, the mean of the "
        "shares of both labels that are predicted correctly, is "
        f"{percent(scores['balanced accuracy'])}.",
    )


def sampled_words(n_sampled: int, n_rows: int) -> str:
    """What a report says about numbers that come from some of the rows."""
    return (
        "ROC AUC, log loss and calibration are computed from a random sample of "
        f"{n_sampled:,} of the {n_rows:,} rows; everything else from all rows."
    )


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
    metric : str, default="equal_opportunity"
        The gap to look at, by its name in `fairproj.constraints.STATISTICS` or an alias.
    max_gap : float, optional
        The largest gap allowed; without it, there is no verdict.
    confidence : float, default=0.95
        Of every interval by itself, or of all intervals together.
    pos_label : label, optional
        The positive label; by default the larger in sort order.
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
        Plain lists, texts and numbers; `fairproj.report` describes the fields.
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
    target = _target(metric, max_gap)
    content: Content = {
        "format": "fairproj report",
        "format_version": 2,
        "title": f"Fairness report: {model_name(source)}",
        "created": datetime.date.today().isoformat(),
        "target": target,
        "targets": [target, *map(_target, other_targets, other_targets.values())],
        "data": _data(counts, group_names, positive, source),
        "scores": _scores(counts),
        "constant": _is_constant(counts),
        "chance": _chance(counts),
        **_tables(report),
        "proxies": proxies_content(source.findings),
        "frontier": frontier,
        **dict.fromkeys(_OF_A_MODEL),
        "reproduce": source.reproduce(),
    }
    content["verdict"] = _verdict(content)
    content["summary"] = _words.sentences(content)
    content["selection_ratio"] = _selection_ratio(content)
    content["asked"] = _asked(content["targets"], [], source)
    _judge_others(content)
    content["caveats"] = _words.caveats(content, report.too_small)
    content["subject"] = subject(content, source)
    content["not_looked_at"] = not_looked_at(content, source)
    return content


_OF_A_MODEL = (
    "threshold",
    "features",
    "price",
    "thresholds",
    "calibration",
    "distribution",
    "importance",
    "dynamics",
    "certificate",
)


def _selection_ratio(content: Content) -> Content:
    """The smallest selection rate divided by the largest, beside the four-fifths rule."""
    gap = next(row for row in content["gaps"] if row["gap"] == "selection_ratio")
    ratio = {
        "estimate": None if gap["estimate"] is None else 1 - gap["estimate"],
        "low": 1 - gap["high"],
        "high": 1 - gap["low"],
        "highest": gap["highest"],
        "lowest": gap["lowest"],
        "wanted": FOUR_FIFTHS,
    }
    return {**ratio, "sentence": _words.four_fifths(ratio, content)}


def _target(metric: str, max_gap: float | None) -> Content:
    statistic = find_statistic(metric, "metric")
    return {"metric": statistic.name, "name": statistic.words, "max_gap": max_gap}


def _judge_others(content: Content) -> None:
    """Judge the gaps beside the one looked at first; the verdict is the worst of all."""
    verdicts = [content["verdict"]]
    for target in content["targets"][1:]:
        other = {**content, "target": target}
        other["verdict"] = _verdict(other)
        verdicts.append(other["verdict"])
        content["summary"] += _words.target_sentences(other)
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
    """Whether rows of both labels nearly all get the same prediction, which leaves no gap.

    By the rule of training: the rarer prediction is made for less than a tenth as many rows as have
    the rarer label.
    """
    size, correct = counts.size.sum(axis=0), counts.correct.sum(axis=0)
    return bool(size.all() and not says_both(correct / size.sum(), size / size.sum()))


def _chance(counts: CellCounts) -> Content | None:
    """Both rates of the positive prediction, where they do not tell the labels apart.

    They do if the true positive rate is above the false positive rate by two standard errors.
    """
    size, correct = counts.size.sum(axis=0), counts.correct.sum(axis=0)
    if not size.all():
        return None
    right = correct / size
    informedness = right.sum() - 1
    error = math.sqrt(float((right * (1 - right) / size).sum()))
    if informedness > 2 * error + TIE:
        return None
    return {
        "true_positive_rate": float(right[1]),
        "false_positive_rate": float(1 - right[0]),
        "reversed": bool(informedness < -2 * error - TIE),
    }


def _verdict(content: Content) -> str:
    """``met``, ``not met``, ``undecided`` (the interval holds the target) or ``no target``.

    ``not useful`` of predictions that are nearly all the same; and, where the gap is not above the
    target, of predictions that point the wrong way, or meet the target without telling the labels
    apart.
    """
    limit = content["target"]["max_gap"]
    if limit is None:
        return "no target"
    if content["constant"]:
        return "not useful"
    if content["data"]["seen"]:
        return "undecided"
    gap = _words.target_gap(content)
    if gap["low"] > limit:
        return "not met"
    met, chance = gap["high"] <= limit, content["chance"]
    if chance and (met or chance["reversed"]):
        return "not useful"
    return "met" if met else "undecided"


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
    scores = {
        "accuracy": counts.accuracy,
        "balanced accuracy": balanced_accuracy(counts),
        "accuracy of the majority label": counts.constant_accuracy,
    }
    return [{"name": name, "value": value} for name, value in scores.items()]


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


def _certificate(model: Any, source: Source) -> Content:
    certificate = model.certificate_
    return {
        "rows": [list(row) for row in certificate.rows()],
        "words": _words.certificate_words(certificate, source.tested, model, source.search_gap),
        "terms": _words.certificate_terms(certificate),
        "caveat": _words.certificate_caveat(certificate),
        "holds": bool(certificate.holds),
    }


def _asked(targets: list[Content], model: list[list[str]], source: Source) -> list[list[str]]:
    gaps, limits = "Gap looked at", "Largest gap allowed"
    allowed = [
        "none was named" if one["max_gap"] is None else f"{one['max_gap']:g}" for one in targets
    ]
    if len(targets) > 1:
        gaps, limits = "Gaps looked at", "Largest gaps allowed"
        allowed = [f"{one['name']} {most}" for one, most in zip(targets, allowed, strict=True)]
    return [
        [gaps, "; ".join(one["name"] for one in targets)],
        [limits, "; ".join(allowed)],
        *model,
        *([name, text] for name, text in source.more.items()),
    ]


def _model_rows(estimator: Any, source: Source) -> list[list[str]]:
    inner = innermost(estimator)
    rows = [["Model", kind_of(estimator)]]
    if hasattr(estimator, "reason_"):
        rows.append([f"How {' and '.join(estimator.best_params_)} was chosen", estimator.reason_])
    if isinstance(getattr(inner, "history_", None), History):
        rows += _training_rows(inner, source)
    return rows


def _training_rows(model: Any, source: Source) -> list[list[str]]:
    parameter, bounded = "epsilon", "the imbalance between groups in the training weights"
    if model.history_.closed_loop:
        parameter = "max_gap"
        bounded = f"the gap of the predictions on the {_words.watched(model.certificate_)}"
    bounds = np.ravel(getattr(model, parameter)).tolist()
    decided = []
    if model.history_.closed_loop:
        decided = [
            ["Loss", f"{model.loss}, {model.tree_step.replace('_', ' ')} steps"],
            ["Decision threshold", _words.threshold(model)],
            *_chosen_point(model),
            ["Useful on those rows", "yes" if model.certificate_.useful else "no"],
        ]
    return [
        ["Constraint in training", _words.constraint(model.constraints)],
        ["What training bounded", bounded],
        [f"Bound in training ({parameter})", _words.aim(bounds, source.tested)],
        ["Maximum rounds", str(model.n_estimators)],
        ["Weak learner", _learner(model)],
        *decided,
    ]


def _chosen_point(model: Any) -> list[list[str]]:
    """What the threshold was chosen for, and how errors were weighted."""
    names = ("selection_rate", "max_false_positive_rate", "max_false_negative_rate")
    rows = [
        ["Threshold chosen for", f"a {name.removeprefix('max_').replace('_', ' ')} of {bound}"]
        for name in names
        if (value := getattr(model, name)) is not None
        for bound in [f"at most {value:g}" if name.startswith("max_") else f"{value:g}"]
    ]
    weights = error_weights(model)
    return rows + ([["Errors weighted by label", weights]] if weights else [])


def _learner(model: Any) -> str:
    if model.estimator is not None:
        return type(model.estimator).__name__
    if model.max_leaf_nodes is None:
        depth = model.max_depth or 1
        return "trees of one split" if depth == 1 else f"trees of depth {depth}"
    return f"trees of at most {model.max_leaf_nodes} leaves"
