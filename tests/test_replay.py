"""A run that goes on from the learners of its first rounds equals one that was not interrupted."""

import numpy as np
import pytest
from sklearn.base import clone

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.boosting.replay import Progress, ReplayEngine, RunControl

MODELS = [
    FairProjClassifier(engine="xgboost", n_estimators=20),
    FairProjClassifier(engine="xgboost", n_estimators=20, votes="confidence", max_depth=2),
    FairBoostClassifier(engine="xgboost", n_estimators=20, random_state=0),
    FairBoostClassifier(
        engine="xgboost", n_estimators=20, random_state=0, subsample=0.5, max_features=0.5
    ),
    FairBoostClassifier(engine="xgboost", n_estimators=20, random_state=0, loss="exponential"),
    FairBoostClassifier(
        engine="xgboost", n_estimators=40, random_state=0, early_stopping=True, learning_rate=0.5
    ),
]


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    group = rng.integers(3, size=len(X))
    signal = np.nan_to_num(X[:, 0]) + 0.5 * group + rng.logistic(size=len(X))
    return X, (signal > 0.8).astype(int), group


def fit(model, rows, control=None):
    X, y, group = rows
    model = clone(model)
    if control is not None:
        model._control = control
    return model.fit(X, y, sensitive_features=group)


def first_rounds(model, rows, n_rounds):
    """What an interrupted run leaves behind."""
    learners, records = [], []

    def keep(learner, record):
        learners.append(learner)
        records.append(record)

    fit(model, rows, RunControl(after_round=keep))
    done = records[:n_rounds]
    return Progress(learners[:n_rounds], [one.vote for one in done], [one.log_loss for one in done])


@pytest.mark.parametrize("n_done", [1, 7])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_resumed_run_equals_the_undisturbed_one(model, n_done):
    rows = make_rows()
    whole = fit(model, rows)
    done = first_rounds(model, rows, n_done)
    fitted_anew = []
    resumed = fit(
        model,
        rows,
        RunControl(done, lambda learner, _: fitted_anew.append(learner not in done.learners)),
    )
    assert fitted_anew == [False] * n_done + [True] * (len(whole.history_) - n_done)
    for name in ("vote", "log_loss"):
        np.testing.assert_allclose(
            resumed.history_.columns[name], whole.history_.columns[name], rtol=0, atol=1e-12
        )
    assert resumed.history_.n_kept == whole.history_.n_kept
    X = rows[0]
    np.testing.assert_allclose(
        resumed.decision_function(X), whole.decision_function(X), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("model", MODELS[1:3])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_learners_of_other_rows_are_refused(model):
    done = first_rounds(model, make_rows(), 5)
    with pytest.raises(ValueError, match=r"^in round \d+ the vote was"):
        fit(model, make_rows(seed=1), RunControl(done))


def test_given_learners_come_first():
    class Engine:
        def fit(self, targets):
            return f"fitted on {targets}"

        def evaluate(self, learners):
            return (f"evaluated {learner}" for learner in learners)

    engine = ReplayEngine(Engine(), ["a", "b"])
    assert [engine.fit(t) for t in range(3)] == ["evaluated a", "evaluated b", "fitted on 2"]
