"""Two workers that hold some rows each compute what one worker computes on all rows."""

import numpy as np
import pytest

from fairproj.boosting.finish import Run, finish_projection, finish_signed_costs
from fairproj.boosting.loop import boost
from fairproj.boosting.losses import find_loss
from fairproj.boosting.moments import make_moments
from fairproj.boosting.monitor import Monitor
from fairproj.boosting.multipliers import Multipliers, StepRule
from fairproj.boosting.operating_point import Threshold, error_rate_limit
from fairproj.boosting.projected import ProjectedWeights
from fairproj.boosting.projection import Projector
from fairproj.boosting.record import StopReason
from fairproj.boosting.requirements import find_requirements
from fairproj.boosting.rows import ScoredRows
from fairproj.boosting.signed_costs import SignedCosts
from fairproj.boosting.weights import ExponentialWeights
from fairproj.data.checks import Groups
from fairproj.data.reduction import LocalReduction
from fairproj.data.sample import Sample
from fairproj.engines import Fitted
from workers import in_workers

CLASSES = np.array([-1, 1])
N_GROUPS = 3
LARGE_STEPS = StepRule(by_weight=np.inf)  # labels flip within few rounds


class ListedStumps:
    """An engine that chooses among fixed stumps by their edge over all rows."""

    def __init__(self, X, X_held_out, stumps, reduction, votes):
        self._h = [stump_h(X, stump, votes) for stump in stumps]
        self._held_out = [stump_h(X_held_out, stump, votes) for stump in stumps]
        self._stumps, self._reduction, self._votes = stumps, reduction, votes

    def fit(self, targets):
        edges = np.array([-(targets.gradient * h).sum() for h in self._h])
        best = int(np.argmax(self._reduction.sum(edges)))
        both = self._h[best], self._held_out[best]
        if self._votes == "newton":
            both = self._newton_steps(targets, *both)
        return Fitted(self._stumps[best], *both)

    def _newton_steps(self, targets, h, held_out):
        """-gradient / Hessian of each side of a stump."""
        sums = [
            [part[h == side].sum() for part in (targets.gradient, targets.hessian)]
            for side in (-1, 1)
        ]
        sums = self._reduction.sum(np.array(sums))
        steps = np.clip(-sums[:, 0] / sums[:, 1], -targets.max_step, targets.max_step)
        return tuple(np.where(part > 0, steps[1], steps[0]) for part in (h, held_out))

    def constant(self, h):
        return Fitted(h, np.full(self._h[0].shape, h), np.full(self._held_out[0].shape, h))

    def ensemble(self, learners, votes, link_scale, intercept=0.0):
        return list(zip(learners, votes, strict=True))


def stump_h(X, stump, votes):
    column, cut, sign = stump
    h = sign * np.where(X[:, column] > cut, 1, -1)
    return h * (0.3 + 0.1 * column) if votes == "confidence" else h.astype(np.int8)


STUMPS = [(c, t, s) for c in range(4) for t in np.linspace(-1.05, 1.15, 9) for s in (1, -1)]


def make_rows(n_rows, seed, *, empty_cell):
    """Features, labels, groups and weights; with ``empty_cell``, group 2 has no positive row."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(N_GROUPS, size=n_rows)
    X = rng.normal(size=(n_rows, 4)) + 0.4 * groups[:, None]
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * groups + rng.logistic(size=n_rows) > 0.7, 1.0, -1.0)
    if empty_cell:
        y[groups == 2] = -1.0
    return X, y, groups, rng.uniform(0.2, 2, n_rows)


def train(share, reduction, *, run, data, **settings):
    """``run`` on some training rows and some rows held out: learners, history, certificate."""
    values = [f"g{g}" for g in range(N_GROUPS)]
    samples = []
    for parts, rows in zip(data, share, strict=True):
        X, y, groups = (part[rows] for part in parts[:3])
        equal = np.broadcast_to(1.0, len(y))
        weight = equal if parts[3] is None else parts[3][rows]
        groups = Groups(groups, values)
        samples.append(Sample(X, y, CLASSES, weight, groups, 1, reduction=reduction))
    return run(*samples, **settings)


def collect(engine, objective, link_scale, limits):
    steps, reason = drain(boost(engine, objective, n_rounds=20, learning_rate=0.7))
    learners, records = ([step[i] for step in steps] for i in (0, 1))
    return Run(engine, link_scale, learners, records, reason, 0.7, limits)


def projection(training, held_out, constraint, votes, stumps=STUMPS):
    moments = make_moments(constraint, training.cells)
    weights = ExponentialWeights(
        training.y,
        training.weight,
        moments.index,
        len(moments.features),
        discrete=votes == "discrete",
        reduction=training.reduction,
    )
    limits = np.full(moments.features.shape[1], 0.05)
    engine = ListedStumps(training.X, held_out.X, stumps, training.reduction, votes)
    objective = ProjectedWeights(weights, Projector(moments.features, limits))
    run = collect(engine, objective, weights.link_scale, limits)
    return finish_projection(run, moments.names, weights.train_error())


def signed_costs(
    training, held_out, constraint, votes, loss, watch="training", point="cut", stumps=STUMPS
):
    loss, newton = find_loss(loss), votes == "newton"
    rows = ScoredRows(training, loss, keep_slopes=True)
    watched = rows if watch == "training" else ScoredRows(held_out, loss)
    required = find_requirements(constraint, 0.03, training.cells)
    class_cost = np.tile([0.8, 1.3], N_GROUPS)
    class_cost = class_cost / (class_cost @ rows.size)
    cells = training.cells
    where = {
        "cut": Threshold(0.5, loss.link_scale, cells),
        "limit": error_rate_limit(0.1, cells, positive=False),
    }[point]
    unit = float(loss.value(np.zeros(1))[0])
    monitor = Monitor(watched, watch, required, where, class_cost, unit=unit, spare=True)
    objective = SignedCosts(
        rows,
        monitor,
        loss,
        class_cost,
        newton=newton,
        discrete=votes == "discrete",
        multipliers=Multipliers(required.kinds, required.weights(rows.size), LARGE_STEPS),
    )
    engine = ListedStumps(training.X, held_out.X, stumps, training.reduction, votes)
    run = collect(engine, objective, loss.link_scale, required.limits)
    return finish_signed_costs(run, objective, choose_best=False)


def drain(rounds):
    steps = []
    while True:
        try:
            steps.append(next(rounds))
        except StopIteration as end:
            return steps, end.value


def shares_of(data, how):
    """The rows of each of two workers, for training and held out."""

    def split(y, groups):
        n_rows = len(y)
        first = np.arange(n_rows) % 2 == 0
        if how == "halves":  # the first worker has no positive row of group 1
            first &= ~((groups == 1) & (y > 0))
        elif how == "one row":
            first = np.arange(n_rows) == 7
        elif how == "no row":
            first = np.zeros(n_rows, dtype=bool)
        return np.flatnonzero(first), np.flatnonzero(~first)

    training, held_out = (split(y, groups) for _, y, groups, _ in data)
    return list(zip(training, held_out, strict=True))


def check_same(alone, outcome):
    """Learners, votes, every number of every round and of the certificate.

    The fairness cost is left out: it is the root of KL, so that rounding of 1e-16 shows as 1e-8.
    """
    assert [stump for stump, _ in outcome.ensemble] == [stump for stump, _ in alone.ensemble]
    assert outcome.history.stop_reason is alone.history.stop_reason
    assert outcome.history.n_kept == alone.history.n_kept
    frame, expected = (o.history.to_frame().drop(columns="fairness_cost") for o in (outcome, alone))
    assert list(frame) == list(expected)
    np.testing.assert_allclose(frame, expected, rtol=1e-12, atol=1e-12)
    for name, value in alone.certificate.to_dict().items():
        same = pytest.approx(value, rel=1e-12, abs=1e-12) if isinstance(value, float) else value
        assert name == "mean_fairness_cost" or getattr(outcome.certificate, name) == same, name


def check_workers(data, how, **settings):
    everything = tuple(np.arange(len(parts[1])) for parts in data)
    alone = train(everything, LocalReduction(), data=data, **settings)
    assert len(alone.history) >= 10
    for outcome in in_workers(
        lambda *part: train(*part, data=data, **settings), shares_of(data, how)
    ):
        check_same(alone, outcome)
    return alone


def rows_for(constraint):
    empty_cell = constraint != "equalized_odds"  # which needs every cell
    return make_rows(500, 0, empty_cell=empty_cell), make_rows(400, 1, empty_cell=empty_cell)


SPLITS = pytest.mark.parametrize("how", ["halves", "one row", "no row"])


@SPLITS
@pytest.mark.parametrize(
    ("constraint", "votes"),
    [
        ("equalized_odds", "discrete"),
        ("demographic_parity", "confidence"),
        ("accuracy_parity", "discrete"),
    ],
)
def test_two_workers_project_as_one_does(constraint, votes, how):
    data = rows_for(constraint)
    alone = check_workers(data, how, run=projection, constraint=constraint, votes=votes)
    assert alone.certificate.projected_rounds >= 10


LEARNERS = [
    ("exponential", "discrete"),
    ("exponential", "confidence"),
    ("logistic", "confidence"),
    ("logistic", "newton"),
]
WATCHED = [
    ("training", "equalized_odds"),
    ("held out", "demographic_parity"),
    ("held out", "selection_ratio"),
]


@pytest.mark.parametrize(
    ("learner", "watched", "how"),
    [  # every pair of two of them
        (learner, watched, SPLITS.args[1][(i + j) % 3])
        for i, learner in enumerate(LEARNERS)
        for j, watched in enumerate(WATCHED)
    ],
)
def test_two_workers_move_costs_as_one_does(learner, watched, how):
    (loss, votes), (watch, constraint) = learner, watched
    settings = {"constraint": constraint, "loss": loss, "votes": votes, "watch": watch}
    alone = check_workers(rows_for(constraint), how, run=signed_costs, **settings)
    assert np.abs(alone.history.by_group("multipliers")).max() > 0.05
    assert alone.certificate.holds


@SPLITS
def test_equal_weights_are_one_number_on_every_worker(how):
    data = tuple((*parts[:3], None) for parts in rows_for("demographic_parity"))
    settings = {"constraint": "demographic_parity", "loss": "logistic", "votes": "newton"}
    check_workers(data, how, run=signed_costs, watch="held out", **settings)


@SPLITS
def test_two_workers_limit_a_rate_and_flip_labels_as_one_does(how):
    data = rows_for("demographic_parity")
    settings = {"constraint": "demographic_parity", "loss": "logistic", "votes": "newton"}
    alone = check_workers(data, how, run=signed_costs, point="limit", **settings)
    assert alone.history.columns["limit_multiplier"].max() > 0
    strong = data[0][0], data[0][1], data[0][2], np.where(data[0][2] == 1, 0.05, data[0][3])
    alone = check_workers((strong, data[1]), how, run=signed_costs, **settings)
    assert alone.history.columns["flipped"].any()


@pytest.mark.parametrize("run", [projection, signed_costs])
def test_the_majority_is_that_of_all_rows(run):
    """The only stump is worse than chance; each worker has another majority."""
    X, y, groups, weight = make_rows(900, 0, empty_cell=False)
    X[:, 0] = -y
    data = (X, y, groups, weight), (X, y, groups, weight)
    settings = {
        "run": run,
        "constraint": "equalized_odds",
        "votes": "discrete",
        "stumps": [(0, 0.0, 1)],
        "data": data,
    }
    if run is signed_costs:
        settings["loss"] = "exponential"
    everything = (np.arange(900), np.arange(900))
    alone = train(everything, LocalReduction(), **settings)
    mostly_negative = (y < 0) | (np.arange(900) % 10 == 0)
    rows = np.flatnonzero(mostly_negative), np.flatnonzero(~mostly_negative)
    assert (y[rows[0]].mean() < 0) != (y[rows[1]].mean() < 0)
    assert alone.history.stop_reason is StopReason.FALLBACK
    shares = [(part, part) for part in rows]
    for outcome in in_workers(lambda *part: train(*part, **settings), shares):
        check_same(alone, outcome)
