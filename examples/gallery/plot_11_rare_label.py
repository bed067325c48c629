"""
A rare label
============

If one row in fifty has the positive label, a threshold of one half selects almost nobody, and a
model that selects nobody has no gap. Name the share of people who can be selected instead, and
compare the groups there.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairproj import FairBoostClassifier
from fairproj.metrics import gap_curve
from fairproj.selection import fair_train_test_split

# %%
# Simulated rows: 2 % are positive, and one of the features says more about group a than about b.

rng = np.random.default_rng(3)
n_rows = 40_000
group = rng.choice(["a", "b"], n_rows, p=[0.6, 0.4])
need = rng.normal(size=n_rows)
label = (need + 0.4 * rng.normal(size=n_rows)) > 2.2
noise = np.where(group == "a", 0.4, 1.2)
X = np.column_stack([need + noise * rng.normal(size=n_rows), rng.normal(size=(n_rows, 3))])
X[:, 1] += np.where(group == "a", 1.0, -1.0)
X, X_test, y, y_test, groups, groups_test = fair_train_test_split(X, label, group, random_state=0)

# %%
# Five people in a hundred can be selected. ``baseline_`` selects as many without a constraint.

model = FairBoostClassifier(
    max_gap=0.05, selection_rate=0.05, max_leaf_nodes=8, baseline=True, random_state=0
).fit(X, y, sensitive_features=groups)

figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.2), sharey=True, layout="constrained")
for panel, (title, each) in zip(
    panels, {"no constraint": model.baseline_, "max_gap = 0.05": model}.items(), strict=True
):
    score = each.predict_proba(X_test)[:, 1]
    curve = gap_curve(y_test, score, sensitive_features=groups_test)
    for name in "ab":
        rate = curve[f"true_positive_rate[{name}]"]
        panel.plot(curve["selection_rate"], rate, label=f"group {name}")
    selected = each.predict(X_test)
    for name in "ab":
        members = y_test & (groups_test == name)
        panel.plot(selected.mean(), selected[members].mean(), "ko")
    panel.axvline(selected.mean(), color="grey", linestyle=":")
    panel.set(title=title, xlabel="share of all people who are selected", xlim=(0, 0.3))
    panel.legend(loc="lower right")
panels[0].set_ylabel("share of the positives who are selected")
figure.suptitle("Dots: the two groups where the model decides")
plt.show()
