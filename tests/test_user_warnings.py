"""Warnings point at the line of the user that called, through pipelines and searches too."""

import warnings
from linecache import getline

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier

X, Y, GROUPS = make_sample(200)
ONE_GROUP = np.zeros(200, int)
FEW = np.where(np.arange(200) < 12, 2, GROUPS)
CONSTANT, HALF = np.zeros((200, 1)), np.tile([0, 1], 100)
NOISE = np.random.default_rng(0).normal(size=(200, 2))
RARE = np.where(np.arange(200) % 20 == 0, 1, -1)
WORDS = pd.DataFrame({"word": np.where(X[:, 0] > 0, "a", "b"), "number": X[:, 1]})

FITS = {
    "no groups": (FairProjClassifier(), X, Y, None, "no sensitive_features were given"),
    "one group": (FairProjClassifier(), X, Y, ONE_GROUP, "holds one group only"),
    "few rows": (FairProjClassifier(), X, Y, FEW, "weighs groups of fewer than 10 rows"),
    "fallback": (FairProjClassifier(), CONSTANT, HALF, GROUPS, "raise epsilon"),
    "no groups, loop": (FairBoostClassifier(), X, Y, None, "no sensitive_features were given"),
    "one group, loop": (FairBoostClassifier(), X, Y, ONE_GROUP, "holds one group only"),
    "few rows, loop": (FairBoostClassifier(), X, Y, FEW, "fewer than 20 watched rows"),
    "missed target, loop": (FairBoostClassifier(max_gap=0), NOISE, Y, GROUPS, "max_gap"),
    "fallback, loop": (FairBoostClassifier(), CONSTANT, HALF, GROUPS, "smaller leaves"),
    "missed by a class weight": (FairBoostClassifier(), X, RARE, GROUPS, "says the same"),
}


CALL = (__file__, "method(*args, **kwargs)")


def places(words, method, *args, **kwargs):
    """The files and lines that the warnings with these words point at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method(*args, **kwargs)
    return {
        (one.filename, getline(one.filename, one.lineno).strip())
        for one in caught
        if words in str(one.message)
    }


@pytest.mark.parametrize("name", FITS)
def test_fit(name):
    model, X, y, groups, words = FITS[name]
    model = clone(model).set_params(n_estimators=5)
    assert places(words, model.fit, X, y, sensitive_features=groups) == {CALL}


@pytest.mark.parametrize("name", FITS)
def test_fit_in_a_pipeline(name):
    model, X, y, groups, words = FITS[name]
    pipeline = make_pipeline(FunctionTransformer(), clone(model).set_params(n_estimators=5))
    arguments = {f"{type(model).__name__.lower()}__sensitive_features": groups}
    assert places(words, pipeline.fit, X, y, **arguments) == {CALL}


def test_fit_in_a_search():
    table = np.column_stack([ONE_GROUP, X])
    model = FairProjClassifier(n_estimators=3, sensitive_columns=0)
    search = GridSearchCV(model, {"epsilon": [0.1, 0.2]}, cv=2)
    assert places("holds one group only", search.fit, table, Y) == {CALL}


@pytest.mark.parametrize("make", [lambda model: model, make_pipeline])
def test_an_unknown_category(make):
    model = make(FairProjClassifier(None, n_estimators=3)).fit(WORDS, Y)
    new, words = WORDS.assign(word="c"), "has no value known from training"
    for method in (model.predict, model.predict_proba, model.decision_function):
        assert places(words, method, new) == {CALL}
    assert places(words, model.score, new, Y) == {CALL}


def test_a_warm_start_that_adds_no_round():
    model = FairProjClassifier(n_estimators=3, warm_start=True)
    model.fit(X, Y, sensitive_features=GROUPS)
    again = places("warm_start adds no round", model.fit, X, Y, sensitive_features=GROUPS)
    assert again == {CALL}
