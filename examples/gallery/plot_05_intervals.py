"""
How sure can you be of a gap?
=============================

The gap of a model is measured on a sample. `FairnessReport` gives each gap an exact interval. Here
the same model is audited on more and more rows of Adult that it has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairproj import FairBoostClassifier, FairnessReport
from fairproj.datasets import load_adult
from fairproj.selection import fair_train_test_split

data = load_adult()
X, X_test, y, y_test, sex, sex_test = fair_train_test_split(
    *(data.data.drop(columns="fnlwgt"), data.target, data.sensitive_features),
    test_size=0.5,
    random_state=0,
)
model = FairBoostClassifier(max_gap=0.05, n_estimators=60, random_state=0)
model.fit(X, y, sensitive_features=sex)
predicted = model.predict(X_test)

# %%
# The gap of the true positive rates rests on women with a high income, who are about one row in
# twenty-eight.

sizes = [500, 1_000, 2_000, 4_000, 8_000, 16_000, len(y_test)]
order = np.random.default_rng(0).permutation(len(y_test))
found = []
for size in sizes:
    rows = order[:size]
    report = FairnessReport.from_predictions(
        y_test.iloc[rows], predicted[rows], sensitive_features=sex_test.iloc[rows]
    )
    found.append(report.gaps.set_index("gap").loc["equal_opportunity"])

# %%
# An interval that lies below 0.05 confirms the target, one above it refutes the target, and one
# that contains 0.05 says that the rows are too few to tell.

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for at, gap in enumerate(found):
    color = "tab:green" if gap["high"] <= 0.05 else "tab:red" if gap["low"] > 0.05 else "tab:blue"
    ax.plot([at, at], [gap["low"], gap["high"]], color=color, linewidth=5, alpha=0.5)
    ax.plot(at, gap["estimate"], "o", color=color)
    ax.annotate(f"{gap['n_smallest']} women", (at, gap["high"]), (0, 5), ha="center",
                textcoords="offset points", fontsize="small")  # fmt: skip
ax.axhline(0.05, color="black", linestyle="--", label="target, 0.05")
ax.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
ax.set(xlabel="rows in the audit", ylabel="gap of the true positive rates", ylim=(0, 0.32))
ax.margins(x=0.08)
ax.set_title("95 % intervals of one model's gap, with the women they rest on")
ax.legend()
plt.show()
