"""
What a smaller gap costs
========================

A frontier shows accuracy against the gap for several values of the parameter that bounds it. Points
toward the upper left are better. The bars are standard errors over the folds.
"""

import matplotlib.pyplot as plt
from lightgbm import LGBMClassifier

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.baselines import Reweighing
from fairproj.datasets import load_compas
from fairproj.selection import fairness_frontier

data = load_compas()
X, y, race = data.data, data.target, data.sensitive_features
rows = {"sensitive_features": race, "cv": 3}

# %%
# The first two methods have a parameter to vary. Reweighing has none, so it is a single point, and
# so is LightGBM without a constraint.

boost = fairness_frontier(
    FairBoostClassifier(n_estimators=50, max_leaf_nodes=8, validation_fraction=None),
    *(X, y),
    param_values=[0.02, 0.05, 0.1, 0.15, 0.2],
    name="FairBoost, max_gap",
    **rows,
)
paper = fairness_frontier(
    FairProjClassifier(n_estimators=50),
    *(X, y),
    param_values=[0.02, 0.05, 0.1, 0.2],
    name="FairProj, epsilon",
    **rows,
)
trees = LGBMClassifier(n_estimators=50, num_leaves=8, verbosity=-1)
points = {
    "Reweighing": (Reweighing(trees), "estimator__n_estimators", [50]),
    "LightGBM": (trees, "n_estimators", [50]),
}

# %%
# Gaps on the test folds are above the bounds, which hold on the rows that training watched.
# FairProj's epsilon bounds training weights; the gap hardly moves with it on these rows.

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
boost.plot(ax=ax, marker="^")
paper.plot(ax=ax, marker="o")
for (name, (model, parameter, values)), marker in zip(points.items(), "sD", strict=True):
    single = fairness_frontier(
        model, X, y, param_name=parameter, param_values=values, name=name, **rows
    )
    single.plot(ax=ax, marker=marker)
ax.legend()
ax.set_title("COMPAS, mean of three folds")
plt.show()
