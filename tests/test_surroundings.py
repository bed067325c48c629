"""Use with scikit-learn's tools: pipelines, searches, routing, clones."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import oracles
from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier, metrics
from fairproj.datasets import load_german

X, Y, GROUPS = make_sample(300)
WEIGHT = np.random.default_rng(0).uniform(0.2, 3, len(Y))


def by_fold(n_folds, fit, measure):
    """``measure(model, test)`` for each of scikit-learn's folds, fitted by ``fit(train)``."""
    splits = StratifiedKFold(n_folds).split(X, Y)
    return [measure(fit(train), test) for train, test in splits]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize(
    "model",
    [
        FairProjClassifier("equalized_odds", [0.1, 0.2], votes="confidence", max_depth=2),
        FairBoostClassifier("equalized_odds", [0.4, 0.5], votes="confidence", max_depth=2),
    ],
)
def test_clone_keeps_parameters_and_nothing_else(model):
    fitted = clone(model).fit(X, Y, sensitive_features=GROUPS)
    again = clone(fitted)
    assert not hasattr(again, "history_")
    assert not hasattr(again, "estimators_")
    assert again.get_params() == model.get_params()


def test_cross_validation_with_sensitive_columns():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(sex=GROUPS)
    scores = cross_validate(FairProjClassifier(n_estimators=10, sensitive_columns="sex"), frame, Y)
    assert (scores["test_score"] > 0.5).all()
    search = GridSearchCV(
        FairProjClassifier(n_estimators=10, sensitive_columns="sex"), {"epsilon": [0.05, 0.3]}
    ).fit(frame, Y)
    accuracy = search.cv_results_["mean_test_score"]
    assert search.best_score_ == accuracy.max() > 0.5
    assert search.predict(frame.drop(columns="sex")).shape == (300,)


def test_a_search_for_fairness_with_sensitive_columns():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(sex=GROUPS)
    scorer = metrics.make_gap_scorer(metrics.equal_opportunity_difference, "sex")
    model = FairProjClassifier(n_estimators=10, sensitive_columns="sex")
    search = GridSearchCV(model, {"epsilon": [0.05, 0.3]}, scoring=scorer, cv=3).fit(frame, Y)

    def fair_score(epsilon):
        def fit(train):
            return clone(model).set_params(epsilon=epsilon).fit(frame.iloc[train], Y[train])

        def gap(fitted, test):
            predicted = fitted.predict(frame.iloc[test])
            return oracles.gap("equal_opportunity", Y[test], predicted, GROUPS[test])

        return -np.mean(by_fold(3, fit, gap))

    scores = [fair_score(0.05), fair_score(0.3)]
    assert scores[0] != scores[1]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores)
    assert search.best_score_ == pytest.approx(max(scores))
    expected = metrics.equal_opportunity_difference(
        Y, search.predict(frame), sensitive_features=frame["sex"]
    )
    assert scorer(search, frame, Y) == -expected


def test_cross_validation_with_routing(routing):
    model = FairProjClassifier(n_estimators=10).set_fit_request(
        sensitive_features=True, sample_weight=True
    )
    gap = metrics.equal_opportunity_scorer.set_score_request(
        sensitive_features=True, sample_weight=True
    )
    auc = get_scorer("roc_auc").set_score_request(sample_weight=False)
    params = {"sensitive_features": GROUPS, "sample_weight": WEIGHT}
    scores = cross_validate(model, X, Y, params=params, scoring={"gap": gap, "auc": auc})

    def fit(train):
        return clone(model).fit(
            X[train], Y[train], sensitive_features=GROUPS[train], sample_weight=WEIGHT[train]
        )

    def measure(fitted, test):
        predicted = fitted.predict(X[test])
        gap = oracles.gap("equal_opportunity", Y[test], predicted, GROUPS[test], WEIGHT[test])
        return -gap, roc_auc_score(Y[test], fitted.decision_function(X[test]))

    gaps, aucs = zip(*by_fold(5, fit, measure), strict=True)
    np.testing.assert_allclose(scores["test_gap"], gaps)
    np.testing.assert_allclose(scores["test_auc"], aucs)


def test_grid_search_over_a_pipeline_with_routing(routing):
    model = FairProjClassifier(n_estimators=10).set_fit_request(sensitive_features=True)
    pipeline = make_pipeline(StandardScaler(), model)
    scorer = metrics.demographic_parity_scorer.set_score_request(sensitive_features=True)
    search = GridSearchCV(
        pipeline, {"fairprojclassifier__epsilon": [0.02, 0.5]}, scoring=scorer, cv=3
    ).fit(X, Y, sensitive_features=GROUPS)

    def score(epsilon):
        def fit(train):
            scaler = StandardScaler().fit(X[train])
            fitted = clone(model).set_params(epsilon=epsilon)
            fitted.fit(scaler.transform(X[train]), Y[train], sensitive_features=GROUPS[train])
            return scaler, fitted

        def gap(fitted, test):
            scaler, classifier = fitted
            predicted = classifier.predict(scaler.transform(X[test]))
            return oracles.gap("demographic_parity", Y[test], predicted, GROUPS[test])

        return -np.mean(by_fold(3, fit, gap))

    scores = [score(0.02), score(0.5)]
    assert scores[0] != scores[1]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores)
    assert search.best_score_ == pytest.approx(max(scores))


def validation_rows():
    X2, y2, groups2 = make_sample(400, seed=1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 400)
    names = ("X_val", "y_val", "sensitive_features_val", "sample_weight_val")
    return dict(zip(names, (X2, y2, groups2, weight), strict=True))


def test_validation_rows_are_routed(routing):
    rows = validation_rows()
    model = FairBoostClassifier(max_gap=0.4, n_estimators=10)
    model.set_fit_request(sensitive_features=True, **dict.fromkeys(rows, True))
    pipeline = make_pipeline(StandardScaler(), clone(model), transform_input=["X_val"])
    pipeline.fit(X, Y, sensitive_features=GROUPS, **rows)
    scaler = StandardScaler().fit(X)
    scaled = rows | {"X_val": scaler.transform(rows["X_val"])}
    model.fit(scaler.transform(X), Y, sensitive_features=GROUPS, **scaled)
    np.testing.assert_array_equal(
        pipeline.decision_function(X), model.decision_function(scaler.transform(X))
    )
    assert pipeline[-1].certificate_ == model.certificate_
    gap = metrics.equal_opportunity_difference(
        rows["y_val"],
        pipeline.predict(rows["X_val"]),
        sensitive_features=rows["sensitive_features_val"],
        sample_weight=rows["sample_weight_val"],
    )
    assert pipeline[-1].certificate_.gap == pytest.approx(gap)


@pytest.mark.parametrize("name", validation_rows())
def test_each_part_of_the_validation_rows_must_be_requested(name, routing):
    rows = validation_rows()
    model = FairBoostClassifier(n_estimators=2)
    requested = dict.fromkeys({"sensitive_features", *rows} - {name}, True)
    pipeline = make_pipeline(StandardScaler(), model.set_fit_request(**requested))
    with pytest.raises(UnsetMetadataPassedError, match=rf"\[.*{name}.*\] are passed but are not"):
        pipeline.fit(X, Y, sensitive_features=GROUPS, **rows)


def test_a_pipeline_without_routing():
    pipeline = make_pipeline(StandardScaler(), FairProjClassifier(n_estimators=10))
    pipeline.fit(X, Y, fairprojclassifier__sensitive_features=GROUPS)
    assert pipeline.score(X, Y) > 0.5


def test_a_column_transformer_with_pandas_output():
    data = load_german()
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), data.categorical), remainder="passthrough"
    ).set_output(transform="pandas")
    pipeline = make_pipeline(encode, FairProjClassifier(n_estimators=20))
    pipeline.fit(
        data.data, data.target, fairprojclassifier__sensitive_features=data.sensitive_features
    )
    assert "purpose_new car" in " ".join(pipeline[-1].feature_names_in_)
    assert pipeline.score(data.data, data.target) > 0.7


def test_set_output_of_steps_before_it_does_not_disturb():
    scaler = StandardScaler().set_output(transform="polars")
    pipeline = make_pipeline(scaler, FairProjClassifier(n_estimators=5))
    pipeline.fit(X, Y, fairprojclassifier__sensitive_features=GROUPS)
    assert pipeline.predict(X).shape == (300,)


def test_seeds_reach_the_estimators():
    def run(seed):
        tree = DecisionTreeClassifier(max_depth=1, max_features=1)
        model = FairProjClassifier(None, estimator=tree, n_estimators=10, random_state=seed)
        return model.fit(X, Y).decision_function(X)

    np.testing.assert_array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


def test_fit_leaves_the_parameters_alone():
    tree = DecisionTreeClassifier(max_depth=1)
    epsilon = [0.1, 0.2]
    model = FairProjClassifier("equalized_odds", epsilon, estimator=tree, random_state=0)
    model.fit(X, Y, sensitive_features=GROUPS)
    assert model.estimator is tree
    assert model.epsilon is epsilon
    assert tree.random_state is None
    assert not hasattr(tree, "tree_")


def test_html_repr():
    model = FairProjClassifier(n_estimators=2).fit(X, Y, sensitive_features=GROUPS)
    assert "FairProjClassifier" in model._repr_html_()
