"""Pandas objects whose rows do not correspond are refused; rows correspond by position."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier, GapSearchCV
from fairproj.baselines import Reweighing, reweighing_weights
from fairproj.data.checks import check_aligned
from fairproj.inference import gaps_by
from fairproj.inspection import confirmable_gaps, find_leaks, find_proxies, inspect_rows
from fairproj.metrics import (
    adverse_impact_ratio,
    calibration_error,
    equal_opportunity_difference,
    equal_opportunity_scorer,
    gap_curve,
    group_rates,
    ks_statistic,
    standardized_mean_difference,
)
from fairproj.report import summarize_estimator
from fairproj.selection import (
    ConfirmedClassifier,
    fair_train_test_split,
    find_alternatives,
)
from simulated import unfair

REFUSED = "have labels in common in different rows"


@pytest.fixture(scope="module")
def rows():
    X, y, groups = unfair(1000)
    return (
        pd.DataFrame(X, columns=["a", "b", "c"]),
        pd.Series(y, name="y"),
        pd.Series(groups, name="group"),
    )


@pytest.fixture(scope="module")
def model(rows):
    X, y, groups = rows
    return small().fit(X, y, sensitive_features=groups)


def small():
    return FairBoostClassifier(max_gap=0.9, n_estimators=5, validation_fraction=None)


FITS = {
    "FairBoostClassifier": lambda X, y, g: small().fit(X, y, sensitive_features=g),
    "FairProjClassifier": lambda X, y, g: FairProjClassifier(n_estimators=2).fit(
        X, y, sensitive_features=g
    ),
    "GapSearchCV": lambda X, y, g: GapSearchCV(small(), cv=2).fit(X, y, sensitive_features=g),
    "Reweighing": lambda X, y, g: Reweighing().fit(X, y, sensitive_features=g),
    "ConfirmedClassifier": lambda X, y, g: ConfirmedClassifier(small()).fit(
        X, y, sensitive_features=g
    ),
    "find_alternatives": lambda X, y, g: find_alternatives(small(), X, y, sensitive_features=g),
    "fair_train_test_split": lambda X, y, g: fair_train_test_split(X, y, g),
    "find_proxies": lambda X, y, g: find_proxies(X, g),
    "inspect_rows": lambda X, y, g: inspect_rows(X, y, g),
}
SCORES = {
    "equal_opportunity_difference": lambda y, p, g: equal_opportunity_difference(
        y, p, sensitive_features=g
    ),
    "group_rates": lambda y, p, g: group_rates(y, p, sensitive_features=g),
    "FairnessReport": lambda y, p, g: FairnessReport.from_predictions(y, p, sensitive_features=g),
    "gap_curve": lambda y, p, g: gap_curve(y, p, sensitive_features=g),
    "calibration_error": lambda y, p, g: calibration_error(y, p > 0, sensitive_features=g),
    "confirmable_gaps": lambda y, p, g: confirmable_gaps(y, g),
    "gaps_by": lambda y, p, g: gaps_by(y, p, sensitive_features=g, by=p),
    "adverse_impact_ratio": lambda y, p, g: adverse_impact_ratio(y, sensitive_features=g),
    "standardized_mean_difference": lambda y, p, g: standardized_mean_difference(
        y, sensitive_features=g
    ),
    "reweighing_weights": lambda y, p, g: reweighing_weights(y, g),
}


@pytest.mark.parametrize("name", FITS)
def test_shuffled_groups_are_refused(rows, name):
    """Defect: they trained silently on the wrong groups."""
    X, y, groups = rows
    with pytest.raises(ValueError, match=f"the indexes of X and sensitive_features {REFUSED}"):
        FITS[name](X, y, groups.sample(frac=1, random_state=0))


@pytest.mark.parametrize("name", SCORES)
def test_shuffled_groups_are_refused_by_metrics(rows, name):
    _, y, groups = rows
    with pytest.raises(ValueError, match=f"y(_true|_score)? and sensitive_features {REFUSED}"):
        SCORES[name](y, y.to_numpy(), groups.sample(frac=1, random_state=0))


def test_everything_else_that_is_shuffled(rows, model):
    X, y, groups = rows
    shuffled = y.sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match=f"X and y {REFUSED}"):
        small().fit(X, shuffled, sensitive_features=groups)
    with pytest.raises(ValueError, match=f"y_true and y_pred {REFUSED}"):
        equal_opportunity_difference(y, shuffled, sensitive_features=groups)
    with pytest.raises(ValueError, match=f"y_true and y_score {REFUSED}"):
        ks_statistic(y, shuffled)
    with pytest.raises(ValueError, match=f"X and sample_weight {REFUSED}"):
        small().fit(X, y, sensitive_features=groups, sample_weight=shuffled.abs())
    with pytest.raises(ValueError, match=f"X and y {REFUSED}"):
        FairnessReport.from_estimator(model, X, shuffled, sensitive_features=groups)
    with pytest.raises(ValueError, match=f"X and y {REFUSED}"):
        summarize_estimator(model, X, shuffled, sensitive_features=groups)
    with pytest.raises(ValueError, match=f"X and y {REFUSED}"):
        find_leaks(X, shuffled)
    watched = {"X_val": X, "y_val": shuffled, "sensitive_features_val": groups}
    with pytest.raises(ValueError, match=f"in the validation rows: .* X and y {REFUSED}"):
        small().fit(X, y, sensitive_features=groups, **watched)


def test_the_sentence_says_what_to_do(rows):
    X, y, groups = rows
    with pytest.raises(ValueError, match="in different rows") as caught:
        check_aligned(X=X, y=y, sensitive_features=groups[::-1])
    assert str(caught.value) == (
        "the indexes of X and sensitive_features have labels in common in different rows (row 0 is "
        "0 in X and 999 in sensitive_features); align them, as in "
        "sensitive_features.loc[X.index], or pass sensitive_features.to_numpy() if their rows "
        "correspond by position"
    )
    aligned = groups[::-1].loc[X.index]
    check_aligned(X=X, y=y, sensitive_features=aligned)
    check_aligned(X=X, y=y, sensitive_features=groups[::-1].to_numpy())


def test_a_shuffled_subset_is_refused_and_other_labels_are_not(rows):
    X, _, groups = rows
    with pytest.raises(ValueError, match=REFUSED):
        check_aligned(X=X[:100], sensitive_features=groups.sample(100, random_state=0))
    named = groups.set_axis([f"person {i}" for i in range(1000)])
    check_aligned(X=X, sensitive_features=named)
    check_aligned(X=X, sensitive_features=groups.set_axis(X.index + 1000))
    check_aligned(X=X, sensitive_features=groups.set_axis(X.index.astype(float)))
    check_aligned(X=X, sensitive_features=groups[:7])  # the error about lengths says more
    check_aligned(X=None, y=[1, 2], sensitive_features=pl.Series([1, 2]))
    check_aligned()


def test_frames_without_an_index_and_arrays_have_no_order(rows):
    X, y, groups = rows
    shuffled = groups.sample(frac=1, random_state=0)
    expected = small().fit(X, y, sensitive_features=shuffled.to_numpy()).decision_function(X)
    for other in (pl.from_pandas(shuffled), shuffled.tolist()):
        found = small().fit(pl.from_pandas(X), y, sensitive_features=other)
        np.testing.assert_array_equal(found.decision_function(pl.from_pandas(X)), expected)


def test_scikit_learn_s_own_tools_still_work(rows):
    """Folds and transformers keep the labels of pandas' rows, or drop all of them."""
    X, y, groups = (part.sample(frac=1, random_state=1) for part in rows)
    X = X.assign(kind=np.where(X["a"] > 0, "x", "y"))
    encode = make_column_transformer(
        (OrdinalEncoder(), ["kind"]), (StandardScaler(), ["a", "b"]), remainder="passthrough"
    )
    with config_context(enable_metadata_routing=True):
        estimator = small().set_fit_request(sensitive_features=True, sample_weight=False)
        params = {"sensitive_features": groups}
        for pipeline in (
            make_pipeline(encode, estimator),
            make_pipeline(encode.set_output(transform="pandas"), estimator),
        ):
            scores = cross_val_score(pipeline, X, y, params=params, cv=2)
            assert len(scores) == 2
        scorer = equal_opportunity_scorer.set_score_request(sensitive_features=True)
        search = GridSearchCV(estimator, {"max_gap": [0.8, 0.9]}, scoring=scorer, cv=2)
        search.fit(X[["a", "b"]], y, **params)
        assert search.best_score_ <= 0
    parts = train_test_split(X[["a", "b"]], y, groups, random_state=0)
    model = small().fit(parts[0], parts[2], sensitive_features=parts[4])
    predicted = pd.Series(model.predict(parts[1]), parts[1].index)
    FairnessReport.from_predictions(parts[3], predicted, sensitive_features=parts[5])


def test_labels_and_groups_are_compared_where_features_have_other_labels(rows):
    X, y, groups = rows
    ids = pd.Index([f"customer {i}" for i in range(len(X))])
    X, y, groups = X.reset_index(drop=True), y.set_axis(ids), groups.set_axis(ids)
    small().fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="the indexes of y and sensitive_features have labels in"):
        small().fit(X, y, sensitive_features=groups.sample(frac=1, random_state=0))


def test_a_default_index_beside_labels_that_it_lacks_says_nothing(rows):
    """As after ``reset_index``, or where fairlearn passes labels on."""
    X, y, _ = rows
    kept = np.random.default_rng(0).permutation(1000)[:500]
    check_aligned(X=X.iloc[kept], y=y.iloc[kept].reset_index(drop=True))
    with pytest.raises(ValueError, match=REFUSED):  # here the labels of y are its own
        check_aligned(X=X.iloc[kept].reset_index(drop=True), y=y.iloc[kept])
    with pytest.raises(ValueError, match=REFUSED):
        check_aligned(X=X.iloc[np.random.default_rng(0).permutation(1000)], y=y)
    with pytest.raises(ValueError, match=REFUSED):
        check_aligned(X=X.iloc[kept], y=y.iloc[kept[::-1]])


@pytest.mark.filterwarnings("ignore:Setting a")  # by fairlearn
def test_reductions_of_fairlearn_take_rows_of_a_split(rows):
    pytest.importorskip("fairlearn")
    from fairlearn.reductions import DemographicParity, GridSearch

    X, y, groups = (each.iloc[np.random.default_rng(0).permutation(1000)[:500]] for each in rows)
    search = GridSearch(FairBoostClassifier(None, n_estimators=2), DemographicParity(), grid_size=2)
    search.fit(X, (y == y.max()).astype(int), sensitive_features=groups)
    assert search.predict(X).shape == (500,)
