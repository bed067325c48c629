"""
Which columns give the group away?
==================================

A model that does not see the sensitive column may still tell the groups apart by other columns.
`find_proxies` measures how well each column does so, and `joint_auc` all of them together.
"""

import matplotlib.pyplot as plt

from fairproj.datasets import load_adult, load_compas, load_german
from fairproj.inspection import find_proxies, joint_auc

data_sets = {
    "Adult, sex": load_adult(),
    "German, sex": load_german(),
    "COMPAS, race": load_compas(),
}

# %%
# An area under the ROC curve of 0.5 is chance. At 0.9 or above a column nearly determines the
# group.

figure, panels = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
for panel, (name, data) in zip(panels, data_sets.items(), strict=True):
    proxies = find_proxies(data.data, data.sensitive_features).head(7).iloc[::-1]
    colors = ["tab:red" if auc >= 0.9 else "tab:blue" for auc in proxies["auc"]]
    panel.barh(proxies["column"], proxies["auc"] - 0.5, left=0.5, color=colors, alpha=0.8)
    together = joint_auc(data.data, data.sensitive_features)
    panel.axvline(together, color="black", linestyle="--")
    place, side = ((-4, 0), "right") if together > 0.75 else ((4, 0), "left")
    panel.annotate(f"all columns\n{together:.2f}", (together, 0), place, ha=side,
                   textcoords="offset points", fontsize="small")  # fmt: skip
    panel.set(title=name, xlim=(0.5, 1.0), xlabel="AUC for the group")
figure.suptitle("One column gives sex away in German Credit; all columns together do in Adult")
plt.show()
