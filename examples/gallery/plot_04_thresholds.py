"""
A gap holds at one threshold
============================

A bound on the gap is a statement about decisions, and decisions need a threshold. Here three models
are trained for the same gap at different thresholds, and their gaps are measured at all thresholds
on rows that none of them has seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairproj import FairBoostClassifier
from fairproj.datasets import load_adult
from fairproj.metrics import gap_curve
from fairproj.selection import fair_train_test_split

data = load_adult()
X, X_test, y, y_test, sex, sex_test = fair_train_test_split(
    data.data.drop(columns="fnlwgt"), data.target, data.sensitive_features, random_state=0
)

# %%
# ``threshold=`` tells the model where decisions will be made.

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
grid = np.linspace(0.1, 0.9, 81)
for threshold, color in zip([0.3, 0.5, 0.7], ["tab:blue", "tab:orange", "tab:green"], strict=True):
    model = FairBoostClassifier(max_gap=0.03, threshold=threshold, n_estimators=60, random_state=0)
    model.fit(X, y, sensitive_features=sex)
    curve = gap_curve(
        *(y_test, model.predict_proba(X_test)[:, 1]),
        sensitive_features=sex_test,
        thresholds=grid,
    )
    ax.plot(curve["threshold"], curve["gap"], color=color, label=f"trained for {threshold}")
    at = int(np.argmin(np.abs(grid - threshold)))
    ax.plot(grid[at], curve["gap"][at], "o", color=color, markersize=9)
ax.axhline(0.03, color="grey", linestyle="--", label="max_gap = 0.03")
ax.set(
    xlabel="threshold at which the model is used",
    ylabel="gap of the true positive rates",
    title="Adult, test rows; dots mark the threshold at which the gap was bounded",
    ylim=(0, None),
)
ax.legend()
plt.show()
