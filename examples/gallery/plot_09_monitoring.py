"""
Monitoring a model over time
============================

A gap that was small when a model was approved can grow when the people who apply change. `gaps_by`
follows the gap month by month and raises an alarm only where the rows of a month prove that the
gap is above the limit, with a correction for the number of months.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fairproj import plot_gaps_by
from fairproj.inference import gaps_by

# %%
# Decisions of two years, simulated: people of group b who should be accepted are accepted as often
# as those of group a at first, and less and less often from the second year on.

rng = np.random.default_rng(0)
n_rows = 48_000
day = rng.integers(0, 730, n_rows)
date = pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")
group = rng.choice(["a", "b"], n_rows, p=[0.7, 0.3])
suitable = rng.random(n_rows) < 0.4
drift = 0.4 * np.clip((day - 365) / 365, 0, 1)
chance = np.where(suitable, 0.8 - drift * (group == "b"), 0.15)
accepted = rng.random(n_rows) < chance

gaps = gaps_by(suitable, accepted, sensitive_features=group, by=date, max_gap=0.1)
print(f"alarms: {', '.join(gaps.alarms)}")

# %%
# Thick lines are 95 % intervals of each month by itself; thin lines allow for all months together
# and decide about alarms.

figure, ax = plt.subplots(figsize=(10, 4.5), layout="constrained")
plot_gaps_by(gaps, ax=ax)
figure.suptitle("True positive rates drift apart in the second year")
plt.show()
