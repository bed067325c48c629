"""Engines: the registry, an engine of the user's, scikit-learn learners, and memory."""

import weakref
from dataclasses import dataclass
from functools import partialmethod

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.data import sample as samples
from fairproj.data.encoder import FeatureEncoder
from fairproj.engines import (
    Fitted,
    LearnerSettings,
    Saved,
    Targets,
    base,
    find_engine,
    register_engine,
)
from fairproj.engines.lightgbm.engine import TreeEngine

X, Y, GROUPS = make_sample(2000)
WORDS = pd.DataFrame({"word": np.where(X[:, 0] > 0, "b", "a"), "number": X[:, 1], "sex": GROUPS})


# An engine of the user's


@dataclass(frozen=True)
class ColumnSign:
    """h(x) = direction * sign of one column."""

    column: int
    direction: float

    def predict_h(self, X):
        return self.direction * np.where(X[:, self.column] > 0, 1.0, -1.0)


@dataclass(frozen=True)
class Always:
    h: float

    def predict_h(self, X):
        return np.full(len(X), self.h)


def best_column_sign(X, cost):
    """The sign of the column that agrees best with ``cost``, the signed weight of each row."""
    scores = np.where(X > 0, 1.0, -1.0).T @ cost
    column = int(np.argmax(np.abs(scores)))
    return ColumnSign(column, 1.0 if scores[column] > 0 else -1.0)


class ColumnSigns:
    """The registry's entry."""

    name = "column signs"
    encodes = True
    parameters = ()
    accepts = ()

    def bind(self, settings, sample, held_out=None, before=None):
        return ColumnSignEngine(sample.X, None if held_out is None else held_out.X, before)

    def from_payload(self, payload, saved):
        raise NotImplementedError


class ColumnSignEngine:
    def __init__(self, X, held_out, before):
        self.X, self.held_out, self.before = X, held_out, before

    def fit(self, targets):
        return self._fitted(best_column_sign(self.X, -targets.gradient))

    def constant(self, h):
        return self._fitted(Always(np.sign(h) or -1.0))

    def _fitted(self, learner):
        held_out = None if self.held_out is None else learner.predict_h(self.held_out)
        h = learner.predict_h(self.X)
        return Fitted(learner, h, held_out, constant=isinstance(learner, Always))

    def ensemble(self, learners, votes, link_scale, intercept=0.0):
        earlier = ([], []) if self.before is None else (self.before.learners, self.before.votes)
        learners, votes = [*earlier[0], *learners], [*earlier[1], *votes]
        return ColumnSignEnsemble(learners, votes, link_scale, intercept)


class ColumnSignEnsemble:
    kind = "column signs"
    feature_importances = np.zeros(0)

    def __init__(self, learners, votes, link_scale, intercept):
        self.learners, self.votes = learners, votes
        self.link_scale, self.intercept = link_scale, intercept

    def margin(self, X, n_threads=1):
        return list(self.staged_margin(X))[-1]

    def staged_margin(self, X, n_threads=1):
        margin = np.full(len(X), self.intercept)
        for learner, vote in zip(self.learners, self.votes, strict=True):
            margin = margin + vote * learner.predict_h(X)
            yield margin

    def learner(self, t):
        return self.learners[t]

    def to_payload(self):
        raise NotImplementedError


class ColumnSignClassifier(ClassifierMixin, BaseEstimator):
    """The same learner as a scikit-learn classifier."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        cost = np.where(y == self.classes_[1], sample_weight, -sample_weight)
        self.learner_ = best_column_sign(X, cost)
        return self

    def predict(self, X):
        return self.classes_[(self.learner_.predict_h(X) > 0).astype(int)]


@pytest.fixture
def own_engine(monkeypatch):
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))
    register_engine(ColumnSigns())
    return "column signs"


@pytest.mark.parametrize(
    "make",
    [
        lambda **learner: FairProjClassifier(epsilon=0.05, n_estimators=12, **learner),
        lambda **learner: FairBoostClassifier(
            max_gap=0.4,
            tree_step="first_order",
            votes="discrete",
            n_estimators=12,
            validation_fraction=None,
            **learner,
        ),
        lambda **learner: FairBoostClassifier(
            max_gap=0.4,
            tree_step="first_order",
            votes="discrete",
            n_estimators=12,
            validation_fraction=0.4,
            random_state=0,
            **learner,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:the model says the same")
def test_an_engine_of_the_users(make, own_engine):
    model = make(engine=own_engine).fit(X, Y, sensitive_features=GROUPS)
    same = make(estimator=ColumnSignClassifier()).fit(X, Y, sensitive_features=GROUPS)
    assert len(model.history_) > 2
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    np.testing.assert_array_equal(model.estimators_[0].predict(X), same.estimators_[0].predict(X))
    assert model.certificate_.holds
    assert model.certificate_.to_dict() == pytest.approx(same.certificate_.to_dict())


def test_an_engine_of_the_users_reads_encoded_frames_and_goes_on(own_engine):
    frame = WORDS.drop(columns="sex")
    model = FairProjClassifier(None, engine=own_engine, n_estimators=3, warm_start=True)
    model.fit(frame, Y).set_params(n_estimators=6).fit(frame, Y)
    at_once = FairProjClassifier(None, engine=own_engine, n_estimators=6).fit(frame, Y)
    np.testing.assert_allclose(
        model.decision_function(frame), at_once.decision_function(frame), atol=1e-12
    )
    codes = np.column_stack([frame["word"] == "b", frame["number"]]).astype(float)
    np.testing.assert_array_equal(model.to_matrix(frame), codes)


def test_parameters_reach_an_engine_that_reads_them_and_no_other(own_engine, monkeypatch):
    model = FairProjClassifier(None, engine=own_engine, max_depth=3, n_estimators=2)
    with pytest.raises(ValueError, match="engine='column signs' does not use max_depth; leave"):
        model.fit(X, Y)
    bind, depths = ColumnSigns.bind, []

    def watched_bind(self, settings, *rows, **options):
        depths.append(settings.max_depth)
        return bind(self, settings, *rows, **options)

    monkeypatch.setattr(ColumnSigns, "bind", watched_bind)
    monkeypatch.setattr(ColumnSigns, "parameters", ("max_depth",))
    model.fit(X, Y)
    assert depths == [3]


# Scikit-learn learners


def mirrored(n_rows, rng):
    """Each feature twice, the second time negated: whatever splits one splits the other."""
    halves = rng.normal(size=(n_rows, 2)).round(1)
    return np.column_stack([halves, -halves])


@pytest.mark.parametrize("seed", range(3))
def test_equally_good_features_stay_equal_whatever_the_order_of_the_rows(seed):
    """New rows tell which of two features was chosen; in training they are the same split."""
    rng = np.random.default_rng(seed)
    Z, groups = mirrored(200, rng), rng.integers(0, 2, 200)
    y = (Z[:, 0] + Z[:, 1] + rng.logistic(size=200) > 0).astype(int)
    weight = rng.integers(1, 4, 200)
    new = rng.normal(size=(100, 4))

    def margin(rows, sample_weight=None):
        tree = DecisionTreeClassifier(max_depth=1)
        model = FairProjClassifier(epsilon=0.05, estimator=tree, n_estimators=20, random_state=0)
        model.fit(Z[rows], y[rows], sensitive_features=groups[rows], sample_weight=sample_weight)
        return model.decision_function(new)

    in_order = np.arange(200)
    np.testing.assert_allclose(margin(rng.permutation(200)), margin(in_order), atol=1e-9)
    repeated = margin(np.repeat(in_order, weight))
    np.testing.assert_allclose(margin(in_order, weight), repeated, atol=1e-9)


def estimator_engine(votes, held_out=None, before=None):
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    settings = LearnerSettings(votes, estimator=tree, random_state=0)
    sample = samples.make_sample(X, Y, None, None)
    return find_engine("sklearn").bind(settings, sample, held_out, before)


@pytest.mark.parametrize("votes", ["discrete", "confidence"])
def test_the_intercept_of_scikit_learn_learners(votes):
    held_out = samples.make_sample(X[:100] + 1, Y[:100], None, None)
    engine = estimator_engine(votes, held_out)
    fits = [engine.fit(Targets(-w * Y, w)) for w in np.full((2, len(Y)), 1 / len(Y))]
    fits.append(engine.constant(-1.0))
    assert [fit.constant for fit in fits] == [False, False, True]
    model = engine.ensemble([fit.learner for fit in fits], [0.4, 0.3, 0.2], 1.0, 1.7)
    stages = 1.7 + np.cumsum([0.4 * fits[0].h, 0.3 * fits[1].h, 0.2 * fits[2].h], axis=0)
    np.testing.assert_allclose(list(model.staged_margin(X)), stages)
    np.testing.assert_allclose(model.margin(X), stages[-1])
    on_held_out = 1.7 + 0.4 * fits[0].held_out + 0.3 * fits[1].held_out - 0.2
    np.testing.assert_allclose(model.margin(held_out.X), on_held_out)
    saved = Saved(
        votes=model.votes,
        learner_votes=votes,
        link_scale=1.0,
        classes=np.array([-1, 1]),
        n_features=X.shape[1],
        categories={},
        trusted=["sklearn.tree._tree.Tree"],
        intercept=model.intercept,
    )
    again = find_engine("sklearn").from_payload(model.to_payload(), saved)
    assert again.intercept == 1.7
    np.testing.assert_array_equal(again.margin(X), model.margin(X))
    later = estimator_engine(votes, before=model).ensemble([fits[0].learner], [0.1], 1.0, 0.5)
    assert later.intercept == 1.7 + 0.5
    np.testing.assert_allclose(later.margin(X), model.margin(X) + 0.5 + 0.1 * fits[0].h)


def test_scikit_learn_learners_take_no_newton_steps():
    words = r"estimator=DecisionTreeClassifier .* Newton steps; set tree_step='first_order'"
    with pytest.raises(ValueError, match=words):
        estimator_engine("newton")


# Memory


@pytest.mark.parametrize(
    ("model", "validation"),
    [
        (FairProjClassifier(n_estimators=2), {}),
        (FairBoostClassifier(None, n_estimators=2), {}),
        (FairBoostClassifier(None, n_estimators=2, validation_fraction=0.4, random_state=0), {}),
        (FairBoostClassifier(None, n_estimators=2), {"X_val": WORDS, "y_val": Y}),
    ],
)
def test_encoded_rows_are_freed_before_the_first_round(model, validation, monkeypatch):
    """They take as much memory as the data, and the binned copy is all that boosting reads."""
    matrices, alive = [], []

    def watched_encode(self, X, encode):
        matrix = encode(self, X)
        matrices.append(weakref.ref(matrix))
        return matrix

    def watched_fit(self, targets, fit=TreeEngine.fit):
        alive.append([matrix() is not None for matrix in matrices])
        return fit(self, targets)

    for name in ("fit_transform", "transform"):
        encode = partialmethod(watched_encode, encode=getattr(FeatureEncoder, name))
        monkeypatch.setattr(FeatureEncoder, name, encode)
    monkeypatch.setattr(TreeEngine, "fit", watched_fit)
    model.set_params(sensitive_columns="sex").fit(WORDS, Y, **validation)
    assert alive == 2 * [[False] * (2 if validation else 1)]


def test_an_engine_says_what_it_accepts(own_engine):
    model = FairProjClassifier(engine=own_engine, n_estimators=3)
    assert not get_tags(model).input_tags.allow_nan
    assert not get_tags(model).input_tags.sparse
    assert get_tags(FairProjClassifier()).input_tags.allow_nan
    X, y, groups = make_sample(100)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(X, y, sensitive_features=groups)
    frame = pd.DataFrame(X, columns=list("abcde"))
    words = r"engine='column signs' does not take missing values, and column 'b' has some; fill"
    with pytest.raises(ValueError, match=words):
        model.fit(frame, y, sensitive_features=groups)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.fit(sparse.csr_matrix(np.nan_to_num(X)), y, sensitive_features=groups)
