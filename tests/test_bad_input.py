"""Bad input gets one sentence that names what was found, what is wanted and what to do."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.constraints import AllOf, FunctionConstraint, Rate, RateParity

X, Y, GROUPS = make_sample(60)
FRAME = pd.DataFrame(X, columns=list("abcde"))
Y_WORDS = np.where(Y > 0, "yes", "no")


def changed(array, position, value, dtype=None):
    array = np.array(array, dtype=dtype or array.dtype)
    array[position] = value
    return array


def fit(model=None, X=X, y=Y, groups=GROUPS, **kwargs):
    return (model or FairProjClassifier(n_estimators=3)).fit(
        X, y, sensitive_features=groups, **kwargs
    )


def with_column(values):
    return FRAME.assign(f=values)


def watch(model=None, **validation):
    """Fit with the training rows as validation rows, some of their parts changed or left out."""
    rows = {"X_val": X, "y_val": Y, "sensitive_features_val": GROUPS} | validation
    return fit(model or FairBoostClassifier(n_estimators=3), **rows)


TABLE = {
    "NaN in labels": (
        lambda: fit(y=changed(Y, 3, np.nan, float)),
        "Input y contains NaN: 1 of 60 labels are missing; drop those rows",
    ),
    "None in labels": (
        lambda: fit(y=changed(Y_WORDS, 3, None, object)),
        "Input y contains NaN: 1 of 60 labels are missing",
    ),
    "infinite label": (
        lambda: fit(y=changed(Y, 3, np.inf, float)),
        "Input y contains infinity: 1 of 60 labels; labels must be two finite",
    ),
    "no labels": (lambda: fit(y=None), "requires y to be passed, but the target y is None"),
    "one class": (lambda: fit(y=np.ones(60)), r"y must hold two classes, found one class \(1.0\)"),
    "three classes": (
        lambda: fit(y=np.arange(60) % 3),
        r"Only binary classification is supported. y has 3 classes \(0, 1, 2\); keep two",
    ),
    "real-valued labels": (lambda: fit(y=X[:, 0]), "Unknown label type: continuous"),
    "labels of another length": (
        lambda: fit(y=Y[:50], groups=GROUPS[:50]),
        "X has 60 rows and y has 50; they must be equal",
    ),
    "groups of another length": (
        lambda: fit(groups=GROUPS[:50]),
        "sensitive_features has 50 rows and X has 60; they must be equal",
    ),
    "weights of another length": (
        lambda: fit(sample_weight=np.ones(3)),
        "sample_weight has 3 entries and X has 60 rows",
    ),
    "unknown constraint": (
        lambda: fit(FairProjClassifier("equal_opportunities")),
        "constraints='equal_opportunities' is unknown; use one of 'demographic_parity', "
        "'equal_opportunity', 'true_positive_rate_parity', 'false_negative_rate_parity', "
        "'false_positive_rate_parity', 'equalized_odds', 'accuracy_parity', 'accuracy', "
        "'selection_ratio', a Constraint object, or None",
    ),
    "constraint of another type": (
        lambda: fit(FairProjClassifier(object())),
        "constraints must be a name .*, a Constraint object, an array or None, got object",
    ),
    "constraint array of another length": (
        lambda: fit(FairProjClassifier(np.ones((5, 2)))),
        r"constraints is an array of shape \(5, 2\); it must have .* each of the 60 rows of X",
    ),
    "constraint array with NaN": (
        lambda: fit(FairProjClassifier(np.full(60, np.nan))),
        "constraints has missing or infinite entries",
    ),
    "constraint that cannot be met": (
        lambda: fit(FairProjClassifier(np.ones(60))),
        "no distribution on these groups and labels satisfies every constraint; raise epsilon",
    ),
    "negative epsilon": (
        lambda: fit(FairProjClassifier(epsilon=-0.1)),
        "epsilon must be zero or more, got -0.1",
    ),
    "NaN epsilon": (
        lambda: fit(FairProjClassifier(epsilon=np.nan)),
        "epsilon must be zero or more",
    ),
    "epsilon in words": (
        lambda: fit(FairProjClassifier(epsilon="small")),
        "epsilon must be a number or a sequence of numbers, got 'small'",
    ),
    "epsilons for other constraints": (
        lambda: fit(FairProjClassifier("equalized_odds", [0.1, 0.1, 0.1])),
        r"one for each of '1 - 0 \| 1', '1 - 0 \| -1'; got 3",
    ),
    "negative weight": (
        lambda: fit(sample_weight=changed(np.ones(60), 0, -1.0)),
        "Negative values in data passed to `sample_weight`: 1 of 60; weights must be zero or more",
    ),
    "all weights zero": (
        lambda: fit(sample_weight=np.zeros(60)),
        "sample_weight is zero for every row",
    ),
    "weight on one class only": (
        lambda: fit(sample_weight=(Y > 0) * 1.0),
        "rows of positive sample_weight must hold two classes, found one",
    ),
    "infinite weight": (
        lambda: fit(sample_weight=changed(np.ones(60), 0, np.inf)),
        "sample_weight has missing or infinite entries",
    ),
    "weights in a table": (
        lambda: fit(sample_weight=np.ones((60, 2))),
        r"Sample weights must be 1D array or scalar: one number for each row; got shape \(60, 2\)",
    ),
    "empty cell": (
        lambda: fit(groups=np.where(Y > 0, "a", np.where(X[:, 0] > 0, "a", "b"))),
        "group 'b' with label 1 has no rows, and the constraint needs some; merge this group with "
        r"another or drop it \(rows of the cells needed: group 'a' with label 1: \d+, group 'b' "
        r"with label 1: 0\)",
    ),
    "groups with NaN": (
        lambda: fit(groups=changed(GROUPS, [1, 2], np.nan, float)),
        "sensitive_features has 2 missing values; every row needs a group: drop those rows or fill "
        "them with a value of their own",
    ),
    "a named group column with None": (
        lambda: fit(groups=pd.DataFrame({"sex": changed(GROUPS, 0, None, object)})),
        "sensitive feature 'sex' has 1 missing value",
    ),
    "NaN among words in a list": (
        lambda: fit(groups=[float("nan") if i == 3 else "ab"[g] for i, g in enumerate(GROUPS)]),
        "sensitive_features has 1 missing value",
    ),
    "NaN turned into text": (
        lambda: fit(groups=np.array([np.nan if i == 3 else "ab"[g] for i, g in enumerate(GROUPS)])),
        "sensitive_features holds the text 'nan', as missing values turned into text do",
    ),
    "NaN among words in labels": (
        lambda: fit(y=[float("nan") if i == 3 else w for i, w in enumerate(Y_WORDS)]),
        "Input y contains NaN: 1 of 60 labels",
    ),
    "the name of a column as groups": (
        lambda: fit(X=FRAME, groups="a"),
        "sensitive_features must hold a value for each row, got 'a'; to name a column of X, use "
        "sensitive_columns='a'",
    ),
    "names of columns as groups": (
        lambda: fit(X=FRAME, groups=["a", "b"]),
        r"sensitive_features has 2 rows and X has 60; .* \(to name columns of X, use sensitive_col",
    ),
    "a number as groups": (
        lambda: fit(
            FairProjClassifier("demographic_parity"),
            X=np.zeros((1500, 1)),
            y=np.tile([0, 1], 750),
            groups=np.arange(1500.0),
        ),
        "sensitive_features has 1500 groups, the most is 1000; .* cut it into a few ranges",
    ),
    "epsilon in place of constraints": (
        lambda: fit(FairProjClassifier(0.1)),
        "constraints=0.1 is a number; did you mean epsilon=0.1?",
    ),
    "epsilon as text": (lambda: fit(FairProjClassifier(epsilon="0.1")), "epsilon must be a number"),
    "no column left": (
        lambda: fit(
            FairProjClassifier(sensitive_columns="a"), X=FRAME[["a"]].round(0), groups=None
        ),
        "sensitive_columns names every column of X; none is left to learn from",
    ),
    "sensitive column twice": (
        lambda: fit(FairProjClassifier(sensitive_columns=["a", "a"]), X=FRAME, groups=None),
        "must be names or positions of columns, each once",
    ),
    "columns of one name": (
        lambda: fit(X=pd.DataFrame(X, columns=list("aacde"))),
        "X has several columns called 'a'; rename or drop some",
    ),
    "a lazy frame": (
        lambda: fit(X=pl.DataFrame(X).lazy()),
        r"X must be an array, a sparse matrix or a data frame, got LazyFrame; call collect\(\)",
    ),
    "no X at predict": (lambda: fit().predict(None), "X must be an array, .* got NoneType"),
    "no X": (lambda: fit(X=None), "X must be an array, .* got NoneType; pass the features"),
    "weights in words": (
        lambda: fit(sample_weight="balanced"),
        "sample_weight must hold one weight for each row, got 'balanced'",
    ),
    "text where there were numbers": (
        lambda: fit(X=FRAME).predict(FRAME.assign(a=FRAME["a"].astype(str))),
        "column 'a' is of type String, and it held numbers in training; turn it into numbers",
    ),
    "a category left out": (
        lambda: fit(
            FairProjClassifier(categorical_features=["a"]),
            X=FRAME.assign(a=FRAME["a"].round(0), f=Y_WORDS),
        ),
        "column 'f' is of type String, and categorical_features leaves it out; name it there too",
    ),
    "tree size with an estimator": (
        lambda: fit(FairProjClassifier(estimator=GaussianNB(), max_depth=3)),
        "estimator=GaussianNB takes the place of the built-in trees, so max_depth would be ignored",
    ),
    "unknown engine": (
        lambda: fit(FairProjClassifier(engine="nonsense")),
        "engine='nonsense' is unknown; use one of 'lightgbm', 'sklearn', 'xgboost', or add one "
        "with register_engine",
    ),
    "unknown engine and an estimator": (
        lambda: fit(FairBoostClassifier(engine="nonsense", estimator=GaussianNB())),
        "estimator= is fitted by engine='sklearn', and engine='nonsense' would ignore it; leave",
    ),
    "an engine that lacks its estimator": (
        lambda: fit(FairProjClassifier(engine="sklearn")),
        "engine='sklearn' needs a classifier to fit; pass estimator=",
    ),
    "no threads": (lambda: fit(FairProjClassifier(n_jobs=0)), "n_jobs must be a number of threads"),
    "unknown event": (
        lambda: Rate("odd", "some"),
        "'some' is unknown in the rate 'odd'; use one of 'all', 'positive', 'negative'",
    ),
    "unknown outcome": (
        lambda: Rate("odd", outcome="wrong"),
        "'wrong' is unknown in the rate 'odd'; use one of 'positive', 'negative', 'correct'",
    ),
    "unknown rate": (
        lambda: RateParity("recall"),
        "rate='recall' is unknown; use one of 'selection_rate', 'true_positive_rate', ",
    ),
    "rate that cannot be constrained": (
        lambda: RateParity("precision"),
        "the precision is taken over the rows predicted positive, so it can be reported, but not",
    ),
    "joined with nonsense": (lambda: AllOf((1,)), "AllOf takes constraints or their names"),
    "groups in three dimensions": (
        lambda: fit(groups=np.zeros((60, 1, 1))),
        "sensitive_features must be one column or a table of columns, got an array of 3",
    ),
    "groups given twice": (
        lambda: fit(FairProjClassifier(sensitive_columns=[0])),
        "groups are given twice, by sensitive_columns and by sensitive_features; use one",
    ),
    "sensitive column not in X": (
        lambda: fit(FairProjClassifier(sensitive_columns="sex"), X=FRAME, groups=None),
        "sensitive_columns names 'sex', which X does not have; its columns are 'a', 'b'",
    ),
    "sensitive column by name in an array": (
        lambda: fit(FairProjClassifier(sensitive_columns="sex"), groups=None),
        "sensitive_columns names 'sex', which X does not have; it has no column names, so give pos",
    ),
    "no sensitive columns": (
        lambda: fit(FairProjClassifier(sensitive_columns=[]), groups=None),
        "sensitive_columns is empty",
    ),
    "positive label not in y": (
        lambda: fit(FairProjClassifier(pos_label="maybe"), y=Y_WORDS),
        r"pos_label='maybe' is not one of the labels in y \('no', 'yes'\)",
    ),
    "complex column": (lambda: fit(X=X.astype(complex)), "Complex data not supported"),
    "complex column in a frame": (
        lambda: fit(X=with_column(np.full(60, 1j))),
        "column 'f' is of type .*, which trees cannot use; turn it into numbers, categories or",
    ),
    "dates": (
        lambda: fit(X=with_column([datetime.datetime(2026, 1, 1)] * 60)),
        "column 'f' is of type Datetime.*, which trees cannot use",
    ),
    "dates as text": (
        lambda: fit(X=with_column(["2026-01-01", "31.03.2026", None] * 20)),
        "column 'f' holds dates as text, such as '2026-01-01', which trees cannot use; turn "
        "it into numbers, drop it, or make it a categorical column if its dates are categories$",
    ),
    "many dates as text": (
        lambda: fit(
            FairProjClassifier(max_bins=20),
            X=with_column(pd.date_range("2026-01-01", periods=60).astype(str)),
        ),
        "column 'f' holds dates as text, such as '2026-01-01', which trees cannot use",
    ),
    "lists in a column": (
        lambda: fit(X=with_column([[1, 2]] * 60)),
        "column 'f' is of type object, which trees cannot use",
    ),
    "text and numbers in a column": (
        lambda: fit(X=with_column(["a", 1] * 30)),
        "column 'f' is of type object, which trees cannot use",
    ),
    "too many categories": (
        lambda: fit(FairProjClassifier(max_bins=20), X=with_column([f"id {i}" for i in range(60)])),
        "column 'f' has 60 categories, the most a tree can tell apart is max_bins=20; drop it",
    ),
    "text in an array": (
        lambda: fit(X=np.full((60, 2), "a", dtype=object)),
        "X is an array that holds text .*; pass a data frame, whose text columns are read as categ",
    ),
    "infinity in an array": (
        lambda: fit(X=changed(X, (0, 0), np.inf)),
        "Input X contains infinity",
    ),
    "infinity in a frame": (
        lambda: fit(X=with_column(changed(X[:, 0], 0, -np.inf))),
        "Input X contains infinity in column 'f'",
    ),
    "unknown categorical feature": (
        lambda: fit(FairProjClassifier(categorical_features=["z"]), X=FRAME),
        "categorical_features has 'z', which is no column of X",
    ),
    "mask of another length": (
        lambda: fit(FairProjClassifier(categorical_features=[True, False])),
        "categorical_features is a mask of 2 entries for 5 columns",
    ),
    "categories in a sparse matrix": (
        lambda: fit(FairProjClassifier(categorical_features=[0]), X=sparse.csr_matrix(X)),
        "categorical_features needs a dense X, got a sparse one",
    ),
    "no rows": (
        lambda: fit(X=X[:0], y=Y[:0], groups=GROUPS[:0]),
        r"Found array with 0 sample\(s\)",
    ),
    "no rows in a frame": (
        lambda: fit(X=FRAME[:0], y=Y[:0], groups=GROUPS[:0]),
        "X has 0 rows; at least one is required",
    ),
    "no columns": (lambda: fit(X=X[:, :0]), r"Found array with 0 feature\(s\)"),
    "one row, flat": (lambda: fit(X=X[0]), "Reshape your data"),
    "a column is missing at predict": (
        lambda: fit(X=FRAME).predict(FRAME[["a", "b", "c", "d"]]),
        "Feature names seen at fit time, yet now missing:\n- e",
    ),
    "columns reordered at predict": (
        lambda: fit(X=FRAME).predict(FRAME[["b", "a", "c", "d", "e"]]),
        "Feature names must be in the same order as they were in fit",
    ),
    "other columns at predict": (
        lambda: fit(X=FRAME).predict(FRAME.rename(columns={"a": "z"})),
        "Feature names unseen at fit time",
    ),
    "fewer columns at predict": (
        lambda: fit().predict(X[:, :3]),
        "X has 3 features, but FairProjClassifier is expecting 5 features as input",
    ),
    "missing values only at predict": (
        lambda: fit(X=FRAME).predict(FRAME.assign(b=np.nan)),
        "missing values in column 'b', which had none in training, so the trees have no branch",
    ),
    "missing values only at predict, array": (
        lambda: fit().predict(changed(X, (0, 2), np.nan)),
        "missing values in column 2, which had none in training",
    ),
    "not fitted": (lambda: FairProjClassifier().predict(X), "is not fitted yet"),
    "estimator without weights": (
        lambda: fit(FairProjClassifier(estimator=KNeighborsClassifier())),
        "estimator KNeighborsClassifier does not take sample_weight in fit",
    ),
    "estimator without probabilities": (
        lambda: fit(FairProjClassifier(estimator=LinearSVC(), votes="confidence")),
        "votes='confidence' needs predict_proba, which estimator LinearSVC lacks",
    ),
    "estimator that does not classify": (
        lambda: fit(FairProjClassifier(estimator=LinearRegression())),
        "estimator must be a classifier, got LinearRegression",
    ),
    "NaN for an estimator that takes none": (
        lambda: fit(FairProjClassifier(estimator=GaussianNB()), X=changed(X, (0, 0), np.nan)),
        "Input X contains NaN",
    ),
    "learning rate above one": (
        lambda: fit(FairProjClassifier(learning_rate=2.0)),
        "The 'learning_rate' parameter .* must be a float in the range",
    ),
    "unknown votes": (
        lambda: fit(FairProjClassifier(votes="loud")),
        "The 'votes' parameter .* must be a str among",
    ),
    "function without an answer for a group": (
        lambda: fit(FairProjClassifier(FunctionConstraint(lambda g, y: {0: 1.0}[g]))),
        "the constraint's function failed for group 1 and label -1",
    ),
    "function with NaN": (
        lambda: fit(FairProjClassifier(FunctionConstraint(lambda g, y: np.nan))),
        "the constraint's function failed for group 0 and label -1 .*it returned .nan",
    ),
    "function of varying length": (
        lambda: fit(FairProjClassifier(FunctionConstraint(lambda g, y: [1.0] * (g + 1)))),
        "returned different numbers of values",
    ),
    "function with other names": (
        lambda: fit(FairProjClassifier(FunctionConstraint(lambda g, y: 1.0 * y, ["a", "b"]))),
        "titles has 2 entries, the function returns 1 number",
    ),
    "fewer rounds than there are": (
        lambda: fit(
            fit(FairProjClassifier(n_estimators=3, warm_start=True)).set_params(n_estimators=2)
        ),
        "n_estimators=2 is below the 3 rounds that the model has",
    ),
    "other rows at a warm start": (
        lambda: fit(
            fit(FairProjClassifier(n_estimators=3, warm_start=True)).set_params(n_estimators=5),
            X=-X,
        ),
        "warm_start continues with the rows, weights and constraints of the first fit; the model's "
        r"log loss was -0.\d+ there and is \d.\d+ here; fit from scratch",
    ),
    "another epsilon at a warm start": (
        lambda: fit(
            fit(FairProjClassifier(n_estimators=3, warm_start=True)).set_params(
                n_estimators=5, epsilon=0.3
            )
        ),
        r"epsilon was \(0.1,\) there and is \(0.3,\) here; fit from scratch with warm_start=False",
    ),
    "other rows after the end of a run": (
        lambda: fit(
            fit(FairProjClassifier(n_estimators=500, warm_start=True, epsilon=0.01)), X=X[::-1]
        ),
        "warm_start continues with the rows",
    ),
    "new groups at a warm start": (
        lambda: fit(
            fit(FairProjClassifier(n_estimators=3, warm_start=True)).set_params(n_estimators=5),
            groups=GROUPS + 5,
        ),
        "sensitive_features has groups seen for the first time: '5', '6'; warm_start continues",
    ),
    "negative gap": (
        lambda: fit(FairBoostClassifier(max_gap=-0.1)),
        "max_gap must be zero or more, got -0.1",
    ),
    "gaps for other rates": (
        lambda: fit(FairBoostClassifier("equalized_odds", [0.1, 0.1, 0.1])),
        "max_gap must be one number, or one for each of 'true positive rate', "
        "'false positive rate'; got 3 numbers",
    ),
    "a gap in percent": (
        lambda: fit(FairBoostClassifier(max_gap=5)),
        "max_gap must be at most 1, got 5; 5 percentage points are 0.05",
    ),
    "no gap": (
        lambda: fit(FairBoostClassifier(max_gap=None)),
        "max_gap must be a number or a sequence of numbers, got None",
    ),
    "parameters of the encoding with an estimator": (
        lambda: fit(FairProjClassifier(estimator=DecisionTreeClassifier(), max_bins=10)),
        "takes the place of the built-in trees, so max_bins would be ignored",
    ),
    "unknown loss": (
        lambda: fit(FairBoostClassifier(loss="hinge")),
        "loss='hinge' is unknown; use one of 'exponential', .*or add one with register_loss",
    ),
    "validation rows without X_val": (
        lambda: watch(X_val=None),
        "y_val, sensitive_features_val and sample_weight_val go with X_val, which is missing; pass "
        "X_val too",
    ),
    "validation weights without X_val": (
        lambda: fit(FairBoostClassifier(), sample_weight_val=np.ones(60)),
        "sample_weight_val go with X_val, which is missing",
    ),
    "validation rows without labels": (
        lambda: watch(y_val=None),
        "X_val is given without y_val; pass it too",
    ),
    "validation rows without groups": (
        lambda: watch(sensitive_features_val=None),
        "X_val is given without sensitive_features_val; pass it too",
    ),
    "validation rows twice": (
        lambda: watch(FairBoostClassifier(validation_fraction=0.3)),
        "X_val and validation_fraction both say which rows to watch; leave one of them out",
    ),
    "validation rows of other groups": (
        lambda: watch(sensitive_features_val=GROUPS + 5),
        "the validation rows have groups that the training rows lack: 5, 6; drop these rows",
    ),
    "validation rows of other labels": (
        lambda: watch(y_val=Y_WORDS),
        "the validation rows have the labels 'no', 'yes', the training rows -1, 1; they must be",
    ),
    "validation rows of one label": (
        lambda: watch(y_val=np.ones(60)),
        "in the validation rows: y must hold two classes, found one class",
    ),
    "validation rows without a group": (
        lambda: watch(sensitive_features_val=np.zeros(60, int)),
        "the rows held out to watch the gap have none of group '1' for the true positive rate; add",
    ),
    "validation rows with fewer columns": (
        lambda: watch(X_val=X[:, :3]),
        "in the validation rows: X has 3 features, but FairBoostClassifier is expecting 5 features",
    ),
    "validation weights of another length": (
        lambda: watch(sample_weight_val=np.ones(3)),
        "in the validation rows: sample_weight has 3 entries and X has 60 rows",
    ),
    "validation rows with new missing values": (
        lambda: watch(X_val=changed(X, (0, 2), np.nan)),
        "in the validation rows: missing values in column 2, which had none in training",
    ),
}


@pytest.mark.filterwarnings("ignore:the constraint weighs groups")
@pytest.mark.parametrize("name", TABLE)
def test_bad_input(name):
    call, sentence = TABLE[name]
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        call()
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: fit(groups=None), "no sensitive_features were given, so there is nothing to bal"),
        (lambda: fit(groups=np.zeros(60)), r"holds one group only \(0.0\), so there is nothing"),
        (
            lambda: fit(groups=np.r_[np.ones(3), np.zeros(57)], y=np.tile([0, 1], 30)),
            r"weighs groups of fewer than 10 rows \(group '1.0' with label 1: 1\)",
        ),
        (
            lambda: fit(
                FairProjClassifier("demographic_parity", n_estimators=3),
                groups=np.r_[np.ones(3), np.zeros(57)],
            ),
            r"weighs groups of fewer than 10 rows \(group '1.0': 3\)",
        ),
        (
            lambda: fit(sample_weight=(GROUPS == 0) * 1.0),
            r"sensitive_features holds one group only \(0\), so there is nothing to balance",
        ),
    ],
)
def test_warnings(call, sentence):
    with pytest.warns(UserWarning, match=sentence):
        call()
