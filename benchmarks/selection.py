"""How often the true gap of a chosen model meets the target, where everything is known.

python benchmarks/selection.py    # into benchmarks/results/selection.md; about ten minutes

Runs are kept in benchmarks/results/selection; --fresh runs them again.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import pandas as pd

from fairproj import FairBoostClassifier, GapSearchCV
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.progress import time_bar
from population import make_population

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "selection"
RULES = ("mean", "one_se", "upper")
CONFIDENCE = 0.9


@dataclass(frozen=True)
class Setting:
    name: str
    n_groups: int
    n_rows: int
    max_gap: float
    repetitions: int
    estimator: FairBoostClassifier


SETTINGS = [
    Setting("2 groups, stumps", 2, 10_000, 0.12, 200, FairBoostClassifier(n_estimators=20)),
    Setting(
        "2 groups, depth 3", 2, 30_000, 0.08, 100, FairBoostClassifier(n_estimators=20, max_depth=3)
    ),
    Setting(
        "4 groups, depth 2", 4, 12_000, 0.18, 100, FairBoostClassifier(n_estimators=20, max_depth=2)
    ),
]


def run(setting: Setting, seed: int) -> list[dict[str, Any]]:
    """One sample, every rule; those that share folds share their fits."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [choice(setting, rule, seed, folder) for rule in RULES]


def choice(setting: Setting, rule: str, seed: int, folder: str) -> dict[str, Any]:
    population = make_population(setting.n_groups)
    X, y, groups = population.sample(setting.n_rows, seed)
    search = GapSearchCV(
        setting.estimator,
        setting.max_gap,
        selection_rule=rule,
        confidence=CONFIDENCE,
        if_none="nearest",
        memory=joblib.Memory(folder, verbose=0),
        random_state=seed,
    )
    search.fit(X, y, sensitive_features=groups)
    predicts = search.predict(population.X)
    return {
        "rule": rule,
        "seed": seed,
        "chosen": search.met_,
        "gap": population.gap(predicts),
        "accuracy": population.accuracy(predicts),
        **search.best_params_,
    }


def runs(setting: Setting) -> pd.DataFrame:
    kept = RESULTS / f"{setting.name.replace(',', '').replace(' ', '-')}.csv"
    if not kept.exists():
        work = joblib.Parallel(n_jobs=-1, return_as="generator")
        rows: list[dict[str, Any]] = []
        with time_bar(setting.name, setting.repetitions, 0) as advance:
            for results in work(
                joblib.delayed(run)(setting, seed) for seed in range(setting.repetitions)
            ):
                rows += results
                advance(1)
        write_text(kept, pd.DataFrame(rows).to_csv(index=False, float_format="%.8g"))
    return pd.read_csv(kept)


def main() -> None:
    if "--fresh" in sys.argv[1:]:
        for kept in RESULTS.glob("*.csv"):
            kept.unlink()
    RESULTS.mkdir(parents=True, exist_ok=True)
    lines = [
        [
            "population, rows, target",
            "rule",
            "a model was chosen",
            "true gap above the target",
            "mean true gap",
            "mean accuracy",
            "best possible",
        ]
    ]
    for setting in SETTINGS:
        results = runs(setting)
        best = make_population(setting.n_groups).best_accuracy(setting.max_gap)
        for rule in RULES:
            rows = results[results["rule"] == rule]
            chosen = rows[rows["chosen"]]
            lines.append(
                [
                    f"{setting.name}, {setting.n_rows:,}, {setting.max_gap:g}",
                    rule,
                    f"{len(chosen)} of {len(rows)}",
                    f"{int((chosen['gap'] > setting.max_gap).sum())}",
                    f"{chosen['gap'].mean():.3f}",
                    f"{chosen['accuracy'].mean():.3f}",
                    f"{best:.3f}",
                ]
            )
    text = (
        "# Does the chosen model meet the target?\n\n`python benchmarks/selection.py`: samples of "
        "a population whose every rate is known. *Best possible* is the accuracy of the best "
        "classifier, random ones included, with a gap of at most the target (a linear program). "
        f"`upper` at confidence {CONFIDENCE:g}: at most {1 - CONFIDENCE:.0%} of all runs may "
        "choose a model above the target. `one_se` and `mean` promise no share; `mean`, the choice "
        "by the point estimate, is the control that should exceed it. With several groups it need "
        "not: the largest difference of a few noisy rates is too large on average.\n\n"
        + markdown(lines)
    )
    write_text(HERE / "results" / "selection.md", text)
    print(text)


if __name__ == "__main__":
    main()
