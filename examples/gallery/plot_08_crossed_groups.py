"""
Several sensitive columns
=========================

Two sensitive columns are crossed into groups, such as "Female, Black". A model that treats women
and men alike, and Black and white people alike, can still have a gap between crossed groups, so
the constraint is put on these.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairproj import FairBoostClassifier
from fairproj.datasets import load_adult
from fairproj.metrics import group_rates
from fairproj.selection import fair_train_test_split

frame = load_adult().frame.drop(columns="fnlwgt")
frame = frame[frame["race"].isin(["Black", "White"])].astype({"race": str})
groups = frame[["sex", "race"]].astype(str)
X, X_test, y, y_test, pairs, pairs_test = fair_train_test_split(
    frame.drop(columns=["income", "sex", "race"]), frame["income"], groups, random_state=0
)

# %%
# ``baseline=True`` trains the same settings without a constraint as well.

model = FairBoostClassifier(
    "demographic_parity", max_gap=0.05, n_estimators=60, baseline=True, random_state=0
).fit(X, y, sensitive_features=pairs)
rates = {
    name: group_rates(y_test, each.predict(X_test), sensitive_features=pairs_test)
    for name, each in {"no constraint": model.baseline_, "max_gap = 0.05": model}.items()
}

# %%
# The constraint brings all four selection rates near each other on rows the model has not seen.

before, after = (rate["selection_rate"] for rate in rates.values())
order = np.argsort(before.to_numpy())
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for place, at in enumerate(order):
    ax.plot([before.iloc[at], after.iloc[at]], [place, place], color="lightgrey", linewidth=3)
ax.plot(before.iloc[order], range(4), "o", markersize=11, label="no constraint")
ax.plot(after.iloc[order], range(4), "D", markersize=10, label="max_gap = 0.05")
counts = rates["no constraint"]["count"]
labels = [f"{before.index[at]} ({counts.iloc[at]:,} rows)" for at in order]
ax.set_yticks(range(4), labels)
ax.set(xlabel="share predicted to earn more than 50,000 dollars", xlim=(0, None))
gaps = [np.ptp(rate.to_numpy()) for rate in (before, after)]
ax.set_title(f"Adult, test rows: the gap falls from {gaps[0]:.2f} to {gaps[1]:.2f}")
ax.grid(alpha=0.3, axis="x")
ax.legend(loc="lower right")
plt.show()
