"""The package as a whole: names, optional imports, plots, examples."""

import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import fairproj
from conftest import make_sample
from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier, plot_dynamics

mpl.use("Agg")
ROOT = Path(__file__).parents[1]


def test_public_names_exist():
    assert len(fairproj.__all__) <= 25
    for name in fairproj.__all__:
        assert hasattr(fairproj, name)


def test_the_root_of_the_package_shows_the_architecture():
    """Packages and a few public modules, nothing private."""
    packages = "baselines boosting cli data datasets distributed engines estimators experiments"
    packages += " inference inspection io metrics report selection"
    modules = "__init__.py __main__.py constraints.py py.typed"
    entries = {path.name for path in Path(fairproj.__file__).parent.iterdir()}
    assert entries - {"__pycache__"} == {*packages.split(), *modules.split()}


def test_importing_fairproj_imports_no_extra():
    """An extra is imported where it is used, and only then."""
    extras = "matplotlib polars fairlearn cvxpy pyarrow.csv jinja2 skops onnx typer msgspec"
    extras += " xgboost fairproj.distributed"
    code = "from fairproj import *; import sys; "
    code += f"print([name for name in '{extras}'.split() if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_show_versions(capsys):
    fairproj.show_versions()
    out = capsys.readouterr().out
    assert f"fairproj      {fairproj.__version__}" in out
    assert "lightgbm" in out


@pytest.mark.parametrize("constraints", ["equal_opportunity", "equalized_odds", None])
def test_plot_of_the_dynamics(constraints):
    import matplotlib.pyplot as plt

    X, y, groups = make_sample(400)
    model = FairProjClassifier(constraints, 0.1, n_estimators=40).fit(
        X, y, sensitive_features=groups
    )
    axes = plot_dynamics(model)
    assert len(axes) == 4
    loss = axes[0].lines[0]
    np.testing.assert_array_equal(loss.get_ydata(), model.history_.columns["loss"])
    assert [ax.get_title() for ax in axes] == [
        "Exponential loss",
        "Edge of the learner",
        "Distance from q to w",
        "Largest imbalance of the weights",
    ]
    _, own = plt.subplots(1, 4)
    assert plot_dynamics(model.history_, ax=own)[0] is own[0]
    with pytest.raises(ValueError, match="ax must be four matplotlib axes, got 1"):
        plot_dynamics(model, ax=own[:1])
    plt.close("all")


@pytest.mark.parametrize("constraints", ["equal_opportunity", "equalized_odds"])
def test_plot_of_the_dynamics_of_fairboost(constraints):
    import matplotlib.pyplot as plt

    X, y, groups = make_sample(400)
    model = FairBoostClassifier(constraints, 0.1, n_estimators=40, validation_fraction=None)
    model.fit(X, y, sensitive_features=groups)
    axes = plot_dynamics(model)
    assert [ax.get_title() for ax in axes] == [
        "Loss",
        "Edge of the learner",
        "Gap of the predictions",
        "Multipliers of the costs",
    ]
    history = model.history_
    for line, gaps in zip(axes[2].lines, history.by_event().T, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), gaps)
    named = [text.get_text() for text in axes[2].get_legend().get_texts()]
    assert named == [*history.events, "max_gap 0.1"]
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), history.columns["loss"])
    for line, values in zip(axes[3].lines, history.by_group("multipliers").T, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert axes[0].lines[-1].get_xdata()[0] == history.n_kept
    plt.close("all")


def test_plots_of_rates_and_gaps():
    import matplotlib.pyplot as plt

    y, groups = np.tile([0, 1], 50), np.repeat(["a", "b"], 50)
    predicted = np.where(groups == "a", y, 1)
    report = FairnessReport.from_predictions(y, predicted, sensitive_features=groups)
    axes = fairproj.plot_rates(report)
    assert [ax.get_title() for ax in axes] == [
        "selection rate",
        "true positive rate",
        "false positive rate",
        "accuracy",
        "precision",
        "false negative rate",
    ]
    np.testing.assert_allclose(axes[2].lines[0].get_xdata(), [0.0, 1.0])
    with pytest.raises(ValueError, match="ax must be 6 matplotlib axes"):
        fairproj.plot_rates(report, ax=axes[:2])
    ax = fairproj.plot_gaps(report, max_gap=0.1)
    assert ax.get_yticklabels()[0].get_text() == "demographic parity"
    np.testing.assert_allclose(ax.lines[0].get_xdata(), report.gaps["estimate"])
    plt.close("all")


def test_html_of_an_estimator():
    text = FairProjClassifier(epsilon=0.07)._repr_html_()
    assert "FairProjClassifier" in text
    assert "0.07" in text


@pytest.mark.slow
def test_the_notebook_runs(monkeypatch, tmp_path):
    """As kept in the repository, from top to bottom."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(ROOT / "examples" / "adult.ipynb", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's own machinery
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    said = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )
    assert "the best score of the" in said


@pytest.mark.slow
def test_the_example_runs(capsys):
    runpy.run_path(str(ROOT / "examples" / "german_credit.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "female" in out
    assert "Certificate" in out
