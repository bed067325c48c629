"""
Audit of a model that is not ours
=================================

`FairnessReport.from_predictions` needs labels, predictions and groups, and nothing of the model
that made them. Here it audits logistic regression and a random forest.
"""

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairproj import FairnessReport
from fairproj.datasets import load_compas
from fairproj.selection import fair_train_test_split

data = load_compas()
X, X_test, y, y_test, race, race_test = fair_train_test_split(
    data.data, data.target, data.sensitive_features, test_size=0.4, random_state=0
)

# %%
# Any classifier will do, and so would a column of decisions in a file.

models = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "random forest": RandomForestClassifier(200, min_samples_leaf=10, random_state=0),
}
figure, panels = plt.subplots(1, 2, figsize=(10.5, 4), sharey=True, layout="constrained")
for panel, (name, model) in zip(panels, models.items(), strict=True):
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    )
    predicted = make_pipeline(columns, model).fit(X, y).predict(X_test)
    report = FairnessReport.from_predictions(y_test, predicted, sensitive_features=race_test)
    gaps = report.gaps[report.gaps["kind"] == "difference"].iloc[::-1]
    places = range(len(gaps))
    panel.hlines(places, gaps["low"], gaps["high"], color="tab:blue", linewidth=5, alpha=0.4)
    panel.plot(gaps["estimate"], places, "o", color="tab:blue")
    panel.axvline(0.1, color="tab:orange", linestyle="--")
    panel.set_yticks(places, gaps["gap"].str.replace("_", " "))
    panel.set(title=name, xlim=(0, 0.5), xlabel="gap, with its 95 % interval")
    panel.grid(alpha=0.3, axis="x")

# %%
# An interval to the right of the dashed line proves a gap above 0.1.

figure.suptitle("COMPAS, test rows: which gaps are above 0.1?")
plt.show()
