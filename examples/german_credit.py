"""Train on German Credit with and without a constraint, and print what came out.

make demo
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split

from fairproj import FairProjClassifier, fairness_report
from fairproj.datasets import load_german
from fairproj.metrics import equal_opportunity_difference, group_rates


def main() -> None:
    data = load_german()
    X, X_new, y, y_new, sex, sex_new = train_test_split(
        *(data.data, data.target, data.sensitive_features),
        test_size=0.3,
        random_state=0,
        stratify=data.target + data.sensitive_features,
    )
    console = Console()
    console.print(
        f"German Credit: {len(y)} applicants to learn from, {len(y_new)} new ones to judge. "
        "Among those who repay, do men and women get credit at the same rate?\n"
    )
    table = Table(title="On the 300 new applicants")
    for column in ("model", "rounds", "accuracy", "female", "male", "gap", "fairness cost"):
        table.add_column(column, justify="left" if column == "model" else "right")
    models = {
        "AdaBoost (no constraint)": FairProjClassifier(None),
        **{f"FairProj, epsilon {e}": FairProjClassifier(epsilon=e) for e in (0.2, 0.1, 0.05)},
        "Closed loop, epsilon 0.05": FairProjClassifier(epsilon=0.05, enforce="classifier"),
    }
    for name, model in models.items():
        model.fit(X, y, sensitive_features=sex)
        predicted = model.predict(X_new)
        rates = group_rates(y_new, predicted, sensitive_features=sex_new)["true_positive_rate"]
        gap = equal_opportunity_difference(y_new, predicted, sensitive_features=sex_new)
        table.add_row(
            name,
            str(len(model.estimators_)),
            f"{model.score(X_new, y_new):.3f}",
            f"{rates['female']:.3f}",
            f"{rates['male']:.3f}",
            f"{gap:.3f}",
            f"{model.certificate_.mean_fairness_cost:.3f}",
        )
    console.print(table)
    console.print(
        "female, male: share of the good applicants of each group who get credit; gap: their "
        "difference.\nfairness cost: how far the balanced training weights are from AdaBoost's, "
        "a bound on the edge they can cost.\nFairProj's constraint binds training weights, so a "
        "smaller epsilon does not always give a smaller gap;\nthe closed loop's binds the gap of "
        "the predictions on the training rows.\n"
    )
    print("What the closed loop's run proves (q: AdaBoost's weights, w: the tilted ones):\n")
    print(model.certificate_)
    print("\nWhat the 300 new applicants say of it:\n")
    print(fairness_report(model, X_new, y_new, sex_new))


if __name__ == "__main__":
    main()
