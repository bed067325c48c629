"""Write and run examples/adult.ipynb.

python examples/make_notebook.py
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

CELLS = [
    """# The most accurate model with a gap of at most 5 points

Adult: who earns more than 50,000 dollars? Among those who do, men and women should be found
equally often (equal opportunity). Everything here runs offline.""",
    """>>>
import fairproj
from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier, GapSearchCV
from fairproj.datasets import load_adult
from fairproj.selection import fair_train_test_split, fairness_frontier

data = load_adult()
X = data.data.assign(sex=data.sensitive_features)  # the model may see the sensitive column here
X, X_test, y, y_test, sex, sex_test = fair_train_test_split(
    X, data.target, data.sensitive_features, random_state=0
)
X.head(3)""",
    "What does a smaller gap cost? Fits along the allowed gap, in three folds of training rows.",
    """>>>
frontiers = [
    fairness_frontier(
        model, X, y, sensitive_features=sex, param_values=[0.01, 0.05, 0.1, 0.2], cv=3, name=name,
    )
    for name, model in (
        ("FairBoost, max_gap", FairBoostClassifier(n_estimators=50)),
        ("FairProj, epsilon", FairProjClassifier(n_estimators=50)),
    )
]
ax = frontiers[0].plot(marker="^")
frontiers[1].plot(ax=ax)
ax.legend();""",
    "Choose: the best accuracy among the settings whose gap plus a standard error is within 0.05.",
    """>>>
search = GapSearchCV(FairBoostClassifier(n_estimators=50), max_gap=0.05, cv=3)
search.fit(X, y, sensitive_features=sex)
print(search.reason_)
model = search.best_estimator_
model""",
    "What did the constraint cost? The same settings without it, on rows held out from training.",
    """>>>
from sklearn.base import clone

again = clone(model).set_params(baseline=True).fit(X, y, sensitive_features=sex)
print(again.price_)""",
    "What holds for people the model has not seen? Exact intervals, valid at any sample size.",
    """>>>
report = FairnessReport.from_estimator(model, X_test, y_test, sensitive_features=sex_test)
report""",
    """>>>
fairproj.plot_gaps(report, max_gap=0.05);""",
    """>>>
fairproj.plot_rates(report);""",
    "What the training run proves, and how it went.",
    """>>>
model.certificate_""",
    """>>>
fairproj.plot_dynamics(model);""",
    "A file that is safe to open, and a page for the auditor.",
    """>>>
import tempfile
from pathlib import Path
from fairproj.report import frontier_content, summarize_estimator, write_report

folder = Path(tempfile.mkdtemp())
model.save(folder / "model.fairproj")
loaded = fairproj.load(folder / "model.fairproj")
assert (loaded.predict_proba(X_test) == model.predict_proba(X_test)).all()
content = summarize_estimator(
    loaded, X_test, y_test, sensitive_features=sex_test, max_gap=0.05,
    frontier=frontier_content(frontiers),
)
write_report(content, folder / "report.html")
for sentence in content["summary"]:
    print(sentence)""",
]


def main() -> None:
    cells = [
        new_code_cell(text.removeprefix(">>>\n"))
        if text.startswith(">>>")
        else new_markdown_cell(text)
        for text in CELLS
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    notebook = new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    for cell in cells:
        cell.get("metadata", {}).pop("execution", None)
    nbformat.write(notebook, Path(__file__).with_name("adult.ipynb"))


KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}

if __name__ == "__main__":
    main()
