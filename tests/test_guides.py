"""The guides, executed as they stand."""

import re
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

import oracles
from conftest import make_sample
from fairproj import FairBoostClassifier, FairnessReport, constraints, load
from fairproj.boosting import losses
from fairproj.engines import base
from fairproj.selection import GapSearchCV

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def guide(monkeypatch, tmp_path, capsys):
    """Runs the code of a page, one block after the other, and returns its names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))
    monkeypatch.setattr(losses, "_REGISTRY", dict(losses._REGISTRY))
    saved = dict(constraints.STATISTICS), dict(constraints.RATES)

    def run(name):
        text = (DOCS / name).read_text("utf-8")
        names = {"__name__": f"docs.{name}"}
        for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
            exec(compile(block, name, "exec"), names)
        return names

    yield run
    for registry, entries in zip((constraints.STATISTICS, constraints.RATES), saved, strict=True):
        registry.clear()
        registry.update(entries)


def test_add_an_engine(guide):
    names = guide("recipes/own-engine.md")
    data, model, again = names["data"], names["model"], names["again"]
    assert model.certificate_.holds
    assert model.score(data.data, data.target) > 0.55
    np.testing.assert_array_equal(
        again.decision_function(data.data), model.decision_function(data.data)
    )
    # FairBoost with the same engine, watching rows that are held out.
    X, y, groups = make_sample(1500)
    boosted = FairBoostClassifier(
        max_gap=0.5,
        tree_step="first_order",
        engine="nearest_mean",
        validation_fraction=0.3,
        random_state=0,
    )
    with pytest.raises(ValueError, match="set tree_step='first_order'"):
        clone(boosted).set_params(tree_step="newton").fit(X, y, sensitive_features=groups)
    boosted.fit(X, y, sensitive_features=groups)
    assert boosted.certificate_.holds
    assert boosted.certificate_.watched_on == "held-out rows"
    stages = list(boosted.staged_decision_function(X))
    np.testing.assert_allclose(stages[-1], boosted.decision_function(X))
    assert len(stages) == len(boosted.estimator_weights_)


def test_add_a_constraint(guide):
    names = guide("recipes/own-constraint.md")
    assert names["gap"] <= 0.05 + 1e-9
    # The new name is accepted by search and report as well.
    X, y, groups = names["X"], names["y"], names["sex"]
    report = FairnessReport.from_estimator(names["model"], X, y, sensitive_features=groups)
    gaps = report.gaps.set_index("gap")["estimate"]
    # Correct among negatives is one less the false positive rate: the gaps are equal.
    assert gaps["false_positive_rate_parity"] == pytest.approx(names["gap"])
    assert gaps["true_negative_rate_parity"] == pytest.approx(names["gap"])
    search = GapSearchCV(
        FairBoostClassifier(
            "true_negative_rate_parity",
            n_estimators=10,
            learning_rate=0.5,
            validation_fraction=None,
        ),
        max_gap=0.5,
        param_values=[0.1, 0.3],
        cv=2,
    ).fit(X, y, sensitive_features=groups)
    assert search.met_


def test_certificate(guide):
    assert guide("guide/certificate.md")


def test_add_a_loss(guide):
    names = guide("recipes/own-loss.md")
    data, model = names["data"], names["model"]
    certificate = model.certificate_
    assert certificate.bound_cost_loss is None
    assert certificate.holds
    assert certificate.met
    assert model.score(data.data, data.target) > 0.75
    # The recorded loss is that of the margins.
    y = np.where(data.target == model.classes_[1], 1, -1)
    margin = model.decision_function(data.data)
    loss = np.mean(np.maximum(1 - y * (margin - certificate.bias), 0) ** 2)
    assert certificate.loss == pytest.approx(loss, rel=1e-9)
    assert np.allclose(model.predict_proba(data.data)[:, 1], expit(2 * margin))
    # The gap binds, so costs move with this loss too, and the model can be saved.
    assert model.history_.columns["cost_change"].any()
    model.save("squared-hinge.fairproj")
    again = load("squared-hinge.fairproj")
    np.testing.assert_array_equal(again.decision_function(data.data), margin)
    assert again.certificate_ == certificate


def test_the_derivatives_of_the_guides_loss(guide):
    loss = guide("recipes/own-loss.md")["SquaredHingeLoss"]()
    m, step = np.linspace(-3, 3, 98), 1e-6
    slope = -(loss.value(m + step) - loss.value(m - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(m), slope, atol=1e-5)
    weight, starts = np.linspace(1, 2, 98), np.array([0, 40])
    for given in (None, weight):
        sums, slopes = loss.sums_and_slope(m, starts, given)
        value = loss.value(m) * (1 if given is None else given)
        np.testing.assert_allclose(sums, [value[:40].sum(), value[40:].sum()])
        np.testing.assert_allclose(slopes, loss.slope(m))
    bend = -(loss.slope(m + step) - loss.slope(m - step)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(m, loss.slope(m)), bend, atol=1e-5)


@pytest.mark.slow
def test_fairboost(guide, capsys):
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.close("all")
    try:
        names = guide("guide/fairboost.md")
        (figure,) = map(plt.figure, plt.get_fignums())
        assert len(figure.axes) == 4
    finally:
        plt.close("all")
    model, report = names["model"], names["report"]
    assert model.certificate_.met
    assert model.certificate_.gap <= 0.05 + 1e-9
    positive = signs(names["y_test"], model)
    predicted = signs(model.predict(names["X_test"]), model)
    gaps = report.gaps.set_index("gap")["estimate"]
    for statistic, gap in gaps.items():
        groups = np.asarray(names["sex_test"])
        assert gap == pytest.approx(oracles.gap(statistic, positive, predicted, groups))
    assert len(gaps) == len(constraints.STATISTICS)
    printed = capsys.readouterr().out
    assert str(model.certificate_) in printed
    assert str(report) in printed


def signs(labels, model):
    return np.where(np.asarray(labels) == model.classes_[1], 1, -1)


def test_an_unknown_loss_is_refused():
    X, y, groups = make_sample(100)
    with pytest.raises(ValueError, match="loss='hinge' is unknown; use one of 'exponential'"):
        FairBoostClassifier(loss="hinge").fit(X, y, sensitive_features=groups)


@pytest.mark.slow
def test_guides_warn_of_nothing(guide):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guide("recipes/own-constraint.md")


@pytest.mark.filterwarnings("ignore:some groups have fewer:UserWarning")
def test_scale(guide):
    names = guide("guide/scale.md")
    model, report = names["model"], names["report"]
    frame = names["frame"]
    X, y = frame.drop(columns=["income", "sex"]), frame["income"]
    in_memory = clone(model).fit(X, y, sensitive_features=frame["sex"])
    np.testing.assert_allclose(
        model.decision_function(X), in_memory.decision_function(X), rtol=0, atol=1e-9
    )
    expected = FairnessReport.from_estimator(model, X, y, sensitive_features=frame["sex"])
    assert report.to_dict() == expected.to_dict()


def test_checks(guide, capsys):
    guide("guide/checks.md")
    printed = capsys.readouterr().out
    assert "marital_status" in printed
    assert "identifier: column 'customer' has a different value in 100 % of its rows" in printed
    assert "small_group: group 'female' has 50 held-out rows with the positive label" in printed
