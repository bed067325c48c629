"""How multipliers should move: a study behind `fairproj.boosting.multipliers.StepRule`.

python benchmarks/steps.py    # into benchmarks/results/steps.md

Rules are compared on seeds 100 and 101 of the simulated problems and on COMPAS splits 1000 to 1019.
Other benchmarks publish figures from other seeds.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

from fairboost_common import RESULTS, TARGET, load, quiet
from fairproj import FairBoostClassifier
from fairproj.boosting import signed_costs
from fairproj.boosting.multipliers import Multipliers, StepRule
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions
from fairproj.metrics import gap_difference
from kept import Case, run_cases
from problems import make_problem, problem_cases

PLAIN = {"band": 1.0, "leak": 0.0, "by_weight": np.inf}  # as far as the gap allows, never back
RULES: dict[str, dict[str, Any]] = {
    "2 / (G sqrt t)": {"decaying": 2.0, **PLAIN},
    "1 / G": {"growth": 1.0, "reduction": 1.0, **PLAIN},
    "adaptive: 0.3, 1.15, 0.5": {"first": 0.3, "growth": 1.15, **PLAIN},
    "adaptive: 1, 1.05, 0.5": PLAIN,
    "the same, leak 0.02, band 0.9": {"leak": 0.02, "band": 0.9, "by_weight": np.inf},
    "the same, leak 0.005, band 0.8": {"by_weight": np.inf},
    "the same, bounded by twice the weight (chosen)": {},
    "chosen, bounded by the weight": {"by_weight": 1.0},
    "chosen, leak 0.01": {"leak": 0.01},
    "chosen, leaves bounded by 1": {"largest_leaf": 1.0},
    "chosen, leaves not bounded": {"largest_leaf": np.inf},
}


class DecayingSteps:
    """step / (G sqrt t) after round t."""

    def __init__(self, first: float, n_groups: int) -> None:
        self._first, self._rounds = first / n_groups, 0

    def __call__(self, violation: Any) -> Any:
        self._rounds += 1
        return self._first / np.sqrt(self._rounds) * violation


class StudyClassifier(FairBoostClassifier):
    """FairBoostClassifier with a step rule."""

    rule: dict[str, Any] = {}  # noqa: RUF012

    def _multipliers(self, required: Any, size: Any) -> Multipliers:
        rule = {name: value for name, value in self.rule.items() if name not in OTHER}
        n_groups = len(required.cells.group_values)
        multipliers = Multipliers(required.kinds, required.weights(size), StepRule(**rule))
        if "decaying" in self.rule:
            multipliers._steps = DecayingSteps(self.rule["decaying"], n_groups)  # type: ignore[assignment]
        return multipliers


OTHER = ("decaying", "largest_leaf")


def fit(case: Case, X: Any, y: Any, groups: Any, constraint: str, n_estimators: int) -> Any:
    settings = {"max_leaf_nodes": case["leaves"], "n_estimators": n_estimators}
    model = StudyClassifier(constraint, TARGET, validation_fraction=None, **settings)
    model.rule = RULES[case["rule"]]
    default = signed_costs.LARGEST_STEP
    signed_costs.LARGEST_STEP = model.rule.get("largest_leaf", default)
    try:
        return quiet(model, X, y, sensitive_features=groups)
    finally:
        signed_costs.LARGEST_STEP = default


def measure_problem(case: Case) -> Case:
    problem = make_problem(*(case[name] for name in ("seed", "constraint", "n_groups", "setting")))
    model = fit(case, problem.X, problem.y, problem.groups, problem.constraint, 200)
    known = model.certificate_
    return {
        "reached": known.met,
        "unbiased": known.met and known.bias == 0,
        "counted": known.accuracy if known.met else problem.constant_accuracy,
        "largest_margin": float(np.abs(model.decision_function(problem.X)).max()),
    }


def measure_compas(case: Case) -> Case:
    X, X_new, y, y_new, known, new = load("COMPAS", case["seed"])
    model = fit(case, X, y, known, case["constraint"], 100)
    predicted = model.predict(X_new)
    return {
        "accuracy": float(np.mean(predicted == y_new.to_numpy())),
        "gap": gap_difference(
            y_new, predicted, sensitive_features=new, statistic=case["constraint"]
        ),
    }


def page(problems: pd.DataFrame, compas: pd.DataFrame) -> str:
    lines = [
        [
            *("rule", "stumps", "without bias", "accuracy", "8 leaves", "without bias", "accuracy"),
            *("largest margin", "COMPAS, equal opportunity", "COMPAS, equalized odds"),
        ]
    ]
    for rule in RULES:
        line = [rule]
        mine = problems[problems["rule"] == rule]
        for leaves in (2, 8):
            rows = mine[mine["leaves"] == leaves]
            seeds = rows["seed"].nunique()
            line += [f"{rows[name].sum() / seeds:.1f}" for name in ("reached", "unbiased")]
            line.append(f"{rows['counted'].mean():.4f}")
        line.append(f"{mine['largest_margin'].max():.0f}")
        for constraint in ("equal_opportunity", "equalized_odds"):
            rows = compas[(compas["rule"] == rule) & (compas["constraint"] == constraint)]
            line.append(f"{rows['accuracy'].mean():.3f} / {rows['gap'].mean():.3f}")
        lines.append(line)
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="discard kept runs")
    options = parser.parse_args()
    runs = RESULTS / "steps"
    problems = run_cases(
        [
            {**case, "rule": rule, "leaves": leaves}
            for rule in RULES
            for leaves in (2, 8)
            for case in problem_cases(range(100, 102))
        ],
        measure_problem,
        runs / "problems.jsonl",
        fresh=options.fresh,
    )
    compas = run_cases(
        [
            {"rule": rule, "leaves": 2, "seed": seed, "constraint": constraint}
            for rule in RULES
            for constraint in ("equal_opportunity", "equalized_odds")
            for seed in range(1000, 1020)
        ],
        measure_compas,
        runs / "compas.jsonl",
        fresh=options.fresh,
    )
    text = (
        "# How multipliers move\n\n`python benchmarks/steps.py`; LightGBM "
        f"{versions()['lightgbm']}. Sixty simulated problems, target {TARGET:g}, 200 rounds, "
        "training rows watched, means of seeds 100 and 101: how many reach the target with a "
        "useful model, how many of them without a bias, and the mean accuracy on the watched rows, "
        "the constant's where the target is missed. COMPAS without race, 100 stumps, 20 splits: "
        "test accuracy / test gap. The rule was chosen on these figures and on earlier ones of a "
        f"prototype.\n\n{page(problems, compas)}"
    )
    print(text)
    write_text(RESULTS / "steps.md", text)


if __name__ == "__main__":
    main()
