"""
One round of the projection
===========================

`FairProjClassifier` is AdaBoost with one more step. In every round it moves AdaBoost's weights q to
the nearest weights w on which the groups balance, and fits the weak learner with w. This example
does that step by hand with `fairproj.project`.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairproj import project
from fairproj.datasets import load_adult

data = load_adult()
women, high = data.sensitive_features == "Female", data.target == ">50K"
cells = [(True, True), (True, False), (False, True), (False, False)]
names = ["women\n>50K", "women\n<=50K", "men\n>50K", "men\n<=50K"]
q = np.array([np.mean((women == w) & (high == h)) for w, h in cells])

# %%
# Equal opportunity compares the weight of women and men with the positive label: its feature is +1
# for the first, -1 for the second and 0 elsewhere. With a smaller epsilon the weights move farther.

feature = np.array([[1.0], [0.0], [-1.0], [0.0]])
slacks = [0.1, 0.05, 0.0]
projections = [project(np.log(q), feature, np.array([slack])) for slack in slacks]

# %%
# On the left, the weight of each cell. On the right, what a smaller epsilon costs: the distance
# between w and q bounds how much of its edge a weak learner can lose.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), width_ratios=[2.2, 1], layout="constrained"
)
places, width = np.arange(4), 0.2
left.bar(places - 1.5 * width, q, width, color="lightgrey", edgecolor="grey", label="q (AdaBoost)")
blues = plt.colormaps["Blues"]([0.4, 0.65, 0.9])
for at, (slack, projection) in enumerate(zip(slacks, projections, strict=True)):
    label = f"w, epsilon {slack:g}"
    left.bar(places + (at - 0.5) * width, projection.mass, width, color=blues[at], label=label)
left.set_xticks(places, names)
left.set(ylabel="share of the weight", title="Weights of the cells in the first round on Adult")
left.legend()

grid = np.linspace(0, 0.2, 60)
distances = [project(np.log(q), feature, np.array([slack])).tv for slack in grid]
right.plot(grid, distances, color="tab:blue")
for slack, projection, color in zip(slacks, projections, blues, strict=True):
    right.plot(slack, projection.tv, "o", color=color, markeredgecolor="black")
right.set(xlabel="epsilon", ylabel="total variation between w and q", title="Cost", ylim=(0, None))
plt.show()
