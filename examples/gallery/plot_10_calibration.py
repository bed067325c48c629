"""
What a constraint does to probabilities
=======================================

A constraint changes decisions by changing scores, so the scores of some groups are no longer
frequencies. The picture shows how often people with a given score have the positive label, by
group, with and without a constraint.
"""

import matplotlib.pyplot as plt
import pandas as pd

from fairproj import FairBoostClassifier
from fairproj.datasets import load_adult
from fairproj.metrics import calibration_error
from fairproj.selection import fair_train_test_split

data = load_adult()
X, X_test, y, y_test, sex, sex_test = fair_train_test_split(
    *(data.data.drop(columns="fnlwgt"), data.target, data.sensitive_features),
    test_size=0.4,
    random_state=0,
)
model = FairBoostClassifier(
    "demographic_parity", max_gap=0.05, n_estimators=60, baseline=True, random_state=0
).fit(X, y, sensitive_features=sex)

# %%
# Demographic parity asks for equal selection rates although the labels of women and men differ in
# frequency. Scores of women then lie above, and those of men below, what is observed.

figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.6), sharey=True, layout="constrained")
for panel, (title, each) in zip(
    panels, {"no constraint": model.baseline_, "max_gap = 0.05": model}.items(), strict=True
):
    score = pd.Series(each.predict_proba(X_test)[:, 1], index=y_test.index)
    errors = calibration_error(y_test, score, sensitive_features=sex_test)["ece"]
    for name, marker in (("Female", "o"), ("Male", "s")):
        rows = sex_test == name
        bins = pd.qcut(score[rows], 10, duplicates="drop")
        observed = (y_test[rows] == ">50K").groupby(bins, observed=True).mean()
        mean_score = score[rows].groupby(bins, observed=True).mean()
        label = f"{name}, mean error {errors[name]:.3f}"
        panel.plot(mean_score, observed, marker=marker, label=label)
    panel.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
    panel.set(title=title, xlabel="score (mean of a tenth of the group)")
    panel.legend()
panels[0].set_ylabel("share with income above 50,000 dollars")
figure.suptitle("Adult, test rows: demographic parity is paid for in calibration")
plt.show()
