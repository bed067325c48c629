"""
Reasons for a decision
======================

`contributions` divides the score of a row among the features (the values of SHAP for trees). The
picture compares why two people got different decisions from a model with a bounded gap.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from fairproj import FairBoostClassifier
from fairproj.datasets import load_german

data = load_german()
X, y = data.data, data.target
model = FairBoostClassifier(max_gap=0.05, max_leaf_nodes=8, n_estimators=60, random_state=0)
model.fit(X, y, sensitive_features=data.sensitive_features)

# %%
# The last column is the score of a row about which nothing is known; all columns add up to
# ``decision_function``.

scores = model.decision_function(X)
people = [int(np.argmin(np.abs(scores + 1.0))), int(np.argmax(scores))]
parts = model.contributions(X.iloc[people])
assert np.allclose(parts.sum(axis=1), scores[people])

# %%
# Bars to the right speak for credit, bars to the left against it.

figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
names = np.asarray(model.feature_names_in_)
for panel, person, part in zip(panels, people, parts[:, :-1], strict=True):
    largest = np.argsort(np.abs(part))[-8:]
    colors = np.where(part[largest] > 0, "tab:blue", "tab:orange")
    panel.barh(range(8), part[largest], color=colors)
    values = [textwrap.shorten(str(X.iloc[person][name]), 30) for name in names[largest]]
    panel.set_yticks(range(8), [f"{n} = {v}" for n, v in zip(names[largest], values, strict=True)])
    panel.axvline(0, color="black", linewidth=0.8)
    decision, chance = model.predict(X.iloc[[person]])[0], model.predict_proba(X.iloc[[person]])
    panel.set_title(f"{decision}, probability {chance[0, 1]:.2f}")
    panel.set_xlabel("part of the log odds")
plt.show()
