"""Operating points, requirements beyond one difference, and rare labels, where each binds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from fairboost_common import RUNS, TARGET, load, quiet
from fairproj import FairBoostClassifier
from fairproj.experiments._tables import markdown
from fairproj.metrics import gap_difference
from fairproj.selection import fair_train_test_split
from kept import Case, run_cases
from problems import mostly_positive, rarely_positive


@dataclass(frozen=True)
class Asked:
    """One setting on one dataset, and what must hold on the watched rows."""

    words: str
    data: str
    settings: dict[str, Any]
    limit: str


POINTS = (
    Asked("threshold=0.3", "Adult", {"threshold": 0.3}, "gap"),
    Asked("selection_rate=0.1", "Adult", {"selection_rate": 0.1}, "selection"),
    Asked("max_false_positive_rate=0.05", "Adult", {"max_false_positive_rate": 0.05}, "fpr"),
    Asked("max_false_negative_rate=0.2", "Adult", {"max_false_negative_rate": 0.2}, "fnr"),
    Asked("early_stopping", "Adult", {"early_stopping": True, "n_estimators": 1000}, "gap"),
    Asked(
        "selection_ratio, four fifths",
        "Adult",
        {"constraints": "selection_ratio", "max_gap": 0.2},
        "gap",
    ),
    Asked(
        "demographic parity 0.1 and equal opportunity 0.05",
        "Adult",
        {"constraints": ["demographic_parity", "equal_opportunity"], "max_gap": [0.1, 0.05]},
        "gap",
    ),
    Asked(
        "equalized odds, 89 % positive",
        "mostly positive",
        {"constraints": "equalized_odds"},
        "gap",
    ),
    Asked(
        "equalized odds, 89 % positive, balanced",
        "mostly positive",
        {"constraints": "equalized_odds", "class_weight": "balanced"},
        "gap",
    ),
    Asked("5 % positive", "rarely positive", {}, "gap"),
    Asked("5 % positive, balanced", "rarely positive", {"class_weight": "balanced"}, "gap"),
)
COLUMNS = (
    *("asked", "met", "useful", "threshold", "bias", "rounds"),
    *("watched gap", "yes", "FPR", "FNR"),
    *("gap", "yes", "FPR", "FNR", "accuracy", "AUC", "plain AUC"),
)
SIMULATED = {"mostly positive": mostly_positive, "rarely positive": rarely_positive}


def measure_point(case: Case) -> Case:
    asked = next(one for one in POINTS if one.words == case["words"])
    if asked.data in SIMULATED:
        X, y, groups = SIMULATED[asked.data](case["seed"])
        parts = fair_train_test_split(X, y, groups, test_size=0.3, random_state=case["seed"])
    else:
        parts = load(asked.data, case["seed"])
    X, X_new, y, y_new, known, new = parts
    X, X_val, y, y_val, known, watched = fair_train_test_split(
        X, y, known, test_size=0.25, random_state=case["seed"]
    )
    model = FairBoostClassifier(random_state=0, **asked.settings)
    validation = {"X_val": X_val, "y_val": y_val, "sensitive_features_val": watched}
    quiet(model, X, y, sensitive_features=known, **validation)
    plain = quiet(FairBoostClassifier(None, class_weight=model.class_weight), X, y)
    on_watched = shares(model, X_val, y_val)
    positive = np.asarray(y_new) == model.classes_[1]
    constraint = asked.settings.get("constraints", "equal_opportunity")
    gaps = [
        gap_difference(y_new, model.predict(X_new), sensitive_features=new, statistic=name)
        for name in ([constraint] if isinstance(constraint, str) else constraint)
    ]
    scores = [one.predict_proba(X_new)[:, 1] for one in (model, plain)]
    known_of = model.certificate_
    return {
        "met": known_of.met,
        "useful": known_of.useful,
        "watched_gap": known_of.gap,
        "bias": known_of.bias,
        "rounds": f"{known_of.n_rounds} of {known_of.n_rounds_run}",
        **{f"watched_{name}": value for name, value in on_watched.items()},
        **shares(model, X_new, y_new),
        "threshold": model.threshold_,
        "gap": " / ".join(f"{gap:.3f}" for gap in gaps),
        "auc": float(roc_auc_score(positive, scores[0])),
        "plain_auc": float(roc_auc_score(positive, scores[1])),
    }


def shares(model: FairBoostClassifier, X: Any, y: Any) -> dict[str, float]:
    """Accuracy, share of positive predictions, and both error rates."""
    positive = np.asarray(y) == model.classes_[1]
    predicted = np.asarray(model.predict(X)) == model.classes_[1]
    return {
        "accuracy": float(np.mean(predicted == positive)),
        "selection": float(predicted.mean()),
        "fpr": float(predicted[~positive].mean()),
        "fnr": float((~predicted[positive]).mean()),
    }


def points_part(fresh: bool) -> str:
    cases = [{"words": asked.words, "seed": 2000} for asked in POINTS]
    frame = run_cases(cases, measure_point, RUNS / "points.jsonl", fresh=fresh)
    lines = [list(COLUMNS)]
    for row in frame.itertuples():
        lines.append(
            [
                row.words,
                "yes" if row.met else "no",
                "yes" if row.useful else "no",
                f"{row.threshold:.3f}",
                f"{row.bias:+.2f}" if row.bias else "-",
                row.rounds,
                f"{row.watched_gap:.3f}",
                *(f"{getattr(row, f'watched_{name}'):.3f}" for name in ("selection", "fpr", "fnr")),
                row.gap,
                *(f"{getattr(row, name):.3f}" for name in ("selection", "fpr", "fnr", "accuracy")),
                f"{row.auc:.3f}",
                f"{row.plain_auc:.3f}",
            ]
        )
    return (
        "## Operating points, other requirements, rare labels\n\n"
        f"Defaults otherwise (equal opportunity, target {TARGET:g}, a quarter of the "
        "training rows watched); columns from the second gap on are of test rows. Adult without "
        "sex, and simulated rows of two groups.\n\n" + markdown(lines)
    )
