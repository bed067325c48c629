"""Train on German Credit with and without a constraint, and print the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier
from fairproj.datasets import load_german
from fairproj.metrics import equal_opportunity_difference, group_rates

MODELS = {
    "AdaBoost (no constraint)": FairProjClassifier(None),
    "FairProj, epsilon 0.1": FairProjClassifier(epsilon=0.1),
    "FairProj, epsilon 0.05": FairProjClassifier(epsilon=0.05),
    "FairBoost, max_gap 0.05": FairBoostClassifier(max_gap=0.05),
}


def splits(n_splits: int) -> Iterator[Any]:
    """700 applicants to learn from, 300 new ones to judge; again and again."""
    data = load_german()
    for seed in range(n_splits):
        yield train_test_split(
            *(data.data, data.target, data.sensitive_features),
            test_size=0.3,
            random_state=seed,
            stratify=data.target + data.sensitive_features,
        )


def main() -> None:
    console = Console()
    console.print(
        "German Credit: 700 applicants to learn from, 300 new ones to judge, split at random ten "
        "times. Among those who repay, do men and women get credit at the same rate?\n"
    )
    rows = []
    for X, X_new, y, y_new, sex, sex_new in splits(10):
        for name, model in MODELS.items():
            model = clone(model).fit(X, y, sensitive_features=sex)
            predicted = model.predict(X_new)
            rates = group_rates(y_new, predicted, sensitive_features=sex_new)
            rows.append(
                {
                    "model": name,
                    "rounds": len(model.estimators_),
                    "accuracy": model.score(X_new, y_new),
                    **rates["true_positive_rate"],
                    "gap": equal_opportunity_difference(
                        y_new, predicted, sensitive_features=sex_new
                    ),
                    "distance": model.certificate_.mean_tv,
                }
            )
    means = pd.DataFrame(rows).groupby("model", sort=False).mean()
    table = Table(title="On the new applicants, means over the splits")
    for column in ("model", *means.columns):
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, row in means.iterrows():
        numbers = [f"{value:.3f}" for value in row.drop("rounds")]
        table.add_row(str(name), f"{row['rounds']:.0f}", *numbers)
    console.print(table)
    console.print(
        "female, male: share of the good applicants of each group who get credit; gap: their "
        "difference, on each split.\ndistance: total variation from the weights of plain boosting "
        "to those that were trained on, 0 for none.\nFairProj's epsilon bounds training weights, "
        "FairBoost's max_gap the gap of the predictions on the watched rows.\n"
    )
    print("What FairBoost's last run proves (q: plain weights, w: those with signed costs):\n")
    print(model.certificate_)
    print("\nWhat 300 new applicants tell about it, which is little:\n")
    print(FairnessReport.from_estimator(model, X_new, y_new, sensitive_features=sex_new))


if __name__ == "__main__":
    main()
