"""Everything a report says, as plain lists, texts and numbers.

Apart from the pages because each of them is drawn from this and never from a live model.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import metrics as sklearn_metrics

from fairproj.boosting.record import History
from fairproj.data.checks import plain_labels, split_sensitive_columns
from fairproj.io.versions import versions
from fairproj.inference import FairnessReport, fairness_report, innermost
from fairproj.report import _words
from fairproj.selection import Frontier

Content = dict[str, Any]


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
    """

    data: str = "the given rows"
    which: str = ""
    seen: bool | None = None
    sha256: str = ""
    command: str = ""
    more: dict[str, str] = field(default_factory=dict)


def summary(
    model: Any,
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    y_pred: Any = None,
    metric: str = "equal_opportunity",
    max_gap: float | None = None,
    confidence: float = 0.95,
    pos_label: Any = None,
    frontier: Content | None = None,
    source: Source | None = None,
) -> Content:
    """What is known of a classifier on these rows; see `fairproj.report` for what it is for."""
    source = source or Source()
    inner = innermost(model)
    if sensitive_features is None and getattr(inner, "sensitive_columns", None) is not None:
        sensitive_features = split_sensitive_columns(X, inner.sensitive_columns)[1]
    if pos_label is None:
        pos_label = getattr(inner, "pos_label", None)
    if frontier is not None and frontier["gap"] != metric:
        raise ValueError(
            f"the frontier is about {frontier['gap']} and the report about {metric}; make it with "
            f"frontier_content(..., gap={metric!r}), or leave it out"
        )
    predicted = model.predict(X) if y_pred is None else y_pred
    found = fairness_report(
        model,
        X,
        y,
        sensitive_features,
        y_pred=predicted,
        pos_label=pos_label,
        confidence=confidence,
    )
    labels = plain_labels(y)
    positive = np.unique(labels)[-1] if pos_label is None else pos_label
    content: Content = {
        "format": "fairproj report",
        "format_version": 1,
        "title": f"Fairness report: {source.data}",
        "created": datetime.date.today().isoformat(),
        "target": {"metric": metric, "name": _words.gap_name(metric), "max_gap": max_gap},
        "data": _data(found, labels, positive, source),
        "scores": _scores(model, X, labels, predicted, positive, y_pred is not None),
        "confidence": confidence,
        **found.to_dict(),
        "frontier": frontier,
        "dynamics": None,
        "certificate": None,
        "reproduce": {
            "command": source.command,
            "sha256": source.sha256,
            "versions": {n: v for n, v in versions().items() if v != "not installed"},
        },
    }
    content["rates"] = [{**row, "name": _words.rate_name(row["rate"])} for row in content["rates"]]
    content["gaps"] = [{**row, "name": _words.gap_name(row["gap"])} for row in content["gaps"]]
    if isinstance(getattr(inner, "history_", None), History):
        content["dynamics"] = dynamics(inner.history_)
        content["certificate"] = {
            "rows": [list(row) for row in inner.certificate_.rows()],
            "words": _words.certificate(inner.certificate_),
            "caveat": inner.certificate_.caveat,
            "holds": bool(inner.certificate_.holds),
        }
    content["asked"] = _asked(model, metric, max_gap, source)
    content["verdict"] = "undecided" if source.seen and max_gap is not None else verdict(content)
    content["summary"] = _words.sentences(content)
    content["caveats"] = _words.caveats(content, found.too_small, source.seen)
    return content


def verdict(content: Content) -> str:
    """``met``, ``not met``, ``undecided`` (the interval holds the target) or ``no target``."""
    limit = content["target"]["max_gap"]
    if limit is None:
        return "no target"
    gap = next(row for row in content["gaps"] if row["gap"] == content["target"]["metric"])
    if gap["high"] <= limit:
        return "met"
    return "not met" if gap["low"] > limit else "undecided"


def _data(found: FairnessReport, labels: Any, positive: Any, source: Source) -> Content:
    by_rate = {name: part.set_index("group")["n"] for name, part in found.rates.groupby("rate")}
    sizes = by_rate["selection_rate"]
    groups = [
        {
            "group": str(group),
            "rows": int(rows),
            "share": float(rows / len(labels)),
            "positives": int(positives),
            "positive_share": float(positives / rows),
        }
        for group, rows, positives in zip(
            sizes.index, sizes, by_rate["true_positive_rate"], strict=True
        )
    ]
    return {
        "name": source.data,
        "which": source.which,
        "seen": source.seen,
        "rows": len(labels),
        "positive_label": str(positive),
        "groups": groups,
    }


def _scores(
    model: Any, X: Any, labels: Any, predicted: Any, positive: Any, by_prediction: bool
) -> list[Content]:
    found = {
        "accuracy": sklearn_metrics.accuracy_score(labels, predicted),
        "balanced accuracy": sklearn_metrics.balanced_accuracy_score(labels, predicted),
        "accuracy of the majority label": np.unique(labels, return_counts=True)[1].max()
        / len(labels),
    }
    if not by_prediction and hasattr(model, "predict_proba"):
        column = model.classes_.tolist().index(positive)
        probability = model.predict_proba(X)[:, column]
        actual = labels == positive
        found["ROC AUC"] = sklearn_metrics.roc_auc_score(actual, probability)
        found["log loss"] = sklearn_metrics.log_loss(actual, probability)
    return [{"name": name, "value": float(value)} for name, value in found.items()]


def _asked(model: Any, metric: str, max_gap: float | None, source: Source) -> list[list[str]]:
    rows = [["Gap looked at", _words.gap_name(metric)]]
    rows.append(["Largest gap allowed", "none was named" if max_gap is None else f"{max_gap:g}"])
    inner = innermost(model)
    if inner is not model:
        rows.append(["Model", f"{type(model).__name__} around {type(inner).__name__}"])
    if hasattr(model, "reason_"):
        rows.append(["How epsilon was chosen", str(model.reason_)])
    if isinstance(getattr(inner, "history_", None), History):
        enforce = {
            "classifier": "the gap of the predictions on the watched rows (closed loop)",
            "distribution": "the balance of the training weights (the paper's surrogate)",
        }
        rows += [
            ["Constraint in training", _words.plain(inner.constraints)],
            ["What epsilon bounded", enforce[inner.enforce]],
            ["Epsilon", _epsilon(inner.epsilon)],
            ["Most rounds", str(inner.n_estimators)],
            ["Weak learner", _learner(inner)],
        ]
    elif model is None:
        rows.append(["Model", "not given: the predictions alone were audited"])
    elif inner is model:
        rows.append(["Model", type(model).__name__])
    return rows + [[name, text] for name, text in source.more.items()]


def _epsilon(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _learner(model: Any) -> str:
    if model.estimator is not None:
        return type(model.estimator).__name__
    if model.max_leaf_nodes is None:
        depth = model.max_depth or 1
        return "trees of one split" if depth == 1 else f"trees of depth {depth}"
    return f"trees of at most {model.max_leaf_nodes} leaves"


def frontier_content(
    frontiers: Sequence[Frontier],
    gap: str = "equal_opportunity",
    score: str = "accuracy",
    *,
    chosen: tuple[str, float] | None = None,
    note: str = "",
) -> Content:
    """The points of some frontiers; ``chosen`` is the name and the value of the one in use."""
    points = []
    for frontier in frontiers:
        best = frontier.pareto(gap, score)
        for row, kept in zip(frontier.frame.to_dict("records"), best, strict=True):
            value = float(row[frontier.parameter])
            points.append(
                {
                    "series": frontier.name,
                    "parameter": frontier.parameter,
                    "value": value,
                    "score": float(row[score]),
                    "score_se": _number(row[f"{score}_se"]),
                    "gap": float(row[gap]),
                    "gap_se": _number(row[f"{gap}_se"]),
                    "best": bool(kept),
                    "chosen": chosen is not None
                    and chosen[0] == frontier.name
                    and bool(np.isclose(chosen[1], value)),
                }
            )
    return {
        "gap": gap,
        "gap_name": _words.gap_name(gap),
        "score_name": score.replace("_", " "),
        "note": note,
        "points": points,
    }


WAYS = {"classifier": "closed loop", "distribution": "training weights"}


def frontier_of_choice(choice: Content) -> Content:
    """The candidates that a `FairProjClassifierCV` judged; ``choice`` is what `choice` tells."""
    rows = choice["table"]
    points = [
        {
            "series": WAYS[row["enforce"]],
            "parameter": "epsilon",
            "value": row["epsilon"],
            "score": row["score"],
            "score_se": row["score_se"],
            "gap": row["gap"],
            "gap_se": row["gap_se"],
            "best": not any(_beats(other, row) for other in rows if other is not row),
            "chosen": row["epsilon"] == choice["epsilon"] and row["enforce"] == choice["enforce"],
        }
        for row in rows
    ]
    return {
        "gap": choice["metric"],
        "gap_name": _words.gap_name(choice["metric"]),
        "score_name": choice["scoring"].replace("_", " "),
        "note": f"Chosen among these: {choice['reason']}.",
        "points": points,
    }


def _beats(one: Content, other: Content) -> bool:
    """As good in score and gap, and better in one; within one way to enforce."""
    return bool(
        one["enforce"] == other["enforce"]
        and one["score"] >= other["score"]
        and one["gap"] <= other["gap"]
        and (one["score"] > other["score"] or one["gap"] < other["gap"])
    )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def dynamics(history: History) -> Content:
    """The panels of `plot_dynamics`: for each, lines by round and where epsilon lies."""
    columns = history.columns

    def line(name: str, values: Any) -> Content:
        finite = [float(value) if np.isfinite(value) else None for value in values]
        return {"name": name, "values": finite}

    edges = {
        "title": "Edge of the learner",
        "axis": "edge",
        "lines": [line("under w", columns["edge_w"]), line("under q", columns["edge_q"])],
    }
    if history.closed_loop:
        panels = [
            {
                "title": "Exponential loss",
                "axis": "mean over the training rows",
                "lines": [
                    line("plain", columns["exp_loss"]),
                    line("tilted", columns["tilted_loss"]),
                    line("bound, tilted", columns["bound_tilted"]),
                ],
            },
            edges,
            {
                "title": "Gap of the predictions",
                "axis": "largest less smallest rate",
                "lines": [
                    line(name, gaps)
                    for name, gaps in zip(history.events, history.by_event().T, strict=True)
                ],
                "level": float(min(history.epsilon, default=0.0)),
                "level_name": "epsilon",
            },
        ]
    else:
        panels = [
            {
                "title": "Exponential loss",
                "axis": "mean over the training rows",
                "lines": [
                    line("exact", columns["exp_loss"]),
                    line("bound, edges under q", columns["bound_edge"]),
                    line("bound, KL", columns["bound_cost"]),
                ],
            },
            edges,
            {
                "title": "Distance from q to w",
                "axis": "cost",
                "lines": [
                    line("fairness cost, from KL", columns["fairness_cost"]),
                    line("total variation", columns["tv"]),
                ],
            },
        ]
    return {"rounds": len(history), "kept": history.n_kept, "panels": panels}
