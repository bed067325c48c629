"""
Costs that change sign
======================

`FairBoostClassifier` closes a gap by changing what a correct prediction is worth in each group and
label. Where the worth becomes negative, the model is trained with the opposite label. This is a
decision that should be seen before a model is used.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairproj import FairBoostClassifier
from fairproj.datasets import load_compas

data = load_compas()
race = np.asarray(data.sensitive_features)
positive = np.asarray(data.target) == "yes"

# %%
# For equal opportunity, the worth of a group's positives is 1 minus the group's multiplier divided
# by the share of rows in that cell.

figure, panels = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
for panel, max_gap in zip(panels, [0.2, 0.1, 0.02], strict=True):
    model = FairBoostClassifier(
        max_gap=max_gap, max_leaf_nodes=8, validation_fraction=None, random_state=0
    ).fit(data.data, data.target, sensitive_features=race)
    rounds = model.history_.to_frame()
    for group in model.group_values_:
        share = np.mean((race == group) & positive)
        worth = 1 - rounds[f"multipliers[{group}]"] / share
        panel.plot(worth, label=f"{group}, charged again")
        panel.fill_between(rounds.index, worth, 0, where=worth < 0, color="tab:red", alpha=0.3)
    panel.axhline(0, color="black", linewidth=0.8)
    panel.axhline(1, color="grey", linewidth=0.8, linestyle=":")
    panel.set(title=f"max_gap = {max_gap:g}", xlabel="round")
panels[0].set_ylabel("worth of a correct prediction")
panels[0].legend(fontsize="small")
figure.suptitle("COMPAS: a tighter gap moves the costs farther; red means flipped labels")
plt.show()
