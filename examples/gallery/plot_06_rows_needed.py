"""
How many rows confirm a target?
===============================

Before data are collected or a target is promised, `rows_to_confirm` tells how many rows of each
group an exact test needs in order to confirm that a gap is at most ``max_gap``, with a chance of
80 %.
"""

import matplotlib.pyplot as plt

from fairproj.inference import rows_to_confirm

# %%
# Each curve is for one true gap. A model without any gap is the easiest to confirm; the nearer the
# true gap is to the target, the more rows it takes. Only rows count over which the rate is taken:
# for true positive rates these are rows with the positive label.

targets = [0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2]
gaps = [0.0, 0.01, 0.02]
needed = {gap: [rows_to_confirm(limit, gap=gap) for limit in targets] for gap in gaps}

figure, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
for gap, marker in zip(gaps, "os^", strict=True):
    ax.plot(targets, needed[gap], marker=marker, label=f"true gap {gap:g}")
at = targets.index(0.05)
for gap, place, side in ((0.0, (-8, -14), "right"), (0.02, (8, 4), "left")):
    ax.annotate(f"{needed[gap][at]:,} rows", (0.05, needed[gap][at]), place, ha=side,
                textcoords="offset points")  # fmt: skip
ax.set(xscale="log", yscale="log", xlabel="largest gap allowed, max_gap")
ax.set_ylabel("rows needed in each of two groups")
ax.set_xticks(targets, [f"{limit:g}" for limit in targets])
ax.minorticks_off()
ax.grid(alpha=0.3, which="both")
ax.legend()
ax.set_title("A tight target needs many rows: 95 % confidence, 80 % power, rates of a half")
plt.show()
