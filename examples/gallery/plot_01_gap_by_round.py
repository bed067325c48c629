"""
How a gap closes, round by round
================================

`FairBoostClassifier` measures the true positive rates of the groups after every round and changes
the costs of the rows until the rates differ by at most ``max_gap``. The same settings without a
constraint keep a gap to the end. The positive label of COMPAS is a new charge within two years.
"""

import matplotlib.pyplot as plt

from fairproj import FairBoostClassifier
from fairproj.datasets import load_compas

data = load_compas()
settings = {"max_leaf_nodes": 8, "validation_fraction": None, "random_state": 0}
plain = FairBoostClassifier("equal_opportunity", max_gap=1.0, **settings)
bounded = FairBoostClassifier("equal_opportunity", max_gap=0.05, **settings)
for model in (plain, bounded):
    model.fit(data.data, data.target, sensitive_features=data.sensitive_features)

# %%
# ``history_.to_frame()`` has one row for each round, with the rates of both groups on the watched
# rows. A gap of 1 bounds nothing, so the left model is plain gradient boosting.

figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
titles = ["no constraint", "max_gap = 0.05"]
for panel, model, title in zip(panels, (plain, bounded), titles, strict=True):
    rounds = model.history_.to_frame()
    first, second = rounds["rates[African-American]"], rounds["rates[Caucasian]"]
    panel.fill_between(rounds.index, first, second, alpha=0.15, color="tab:blue")
    panel.plot(first, label="African-American")
    panel.plot(second, label="Caucasian")
    panel.set(title=title, xlabel="round", ylim=(0, 1))
panels[0].set_ylabel("true positive rate on the training rows")
panels[1].legend(loc="lower center")
figure.suptitle("COMPAS: the shaded area is the gap")
plt.show()
