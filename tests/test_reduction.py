"""Two workers that hold some rows each compute what one worker computes on all rows."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fairproj.boosting.finish import Run, finish_closed_loop, finish_projection
from fairproj.boosting.loop import boost
from fairproj.boosting.losses import ExponentialLoss
from fairproj.boosting.moments import make_moments
from fairproj.boosting.monitor import HeldOutRows, TrainingRows, watched_rates
from fairproj.boosting.policies import ClosedLoop, ProjectedWeights
from fairproj.boosting.record import StopReason
from fairproj.data.cells import Cells
from fairproj.data.checks import Groups
from fairproj.data.reduction import LocalReduction
from fairproj.engines import Fitted

CLASSES = np.array([-1, 1])
N_GROUPS = 3


class ThreadReduction:
    """Combines the arrays of threads that wait for one another."""

    def __init__(self, barrier, parts, rank):
        self._barrier, self._parts, self._rank = barrier, parts, rank

    def sum(self, values):
        return self._combine(values, np.sum)

    def max(self, values):
        return self._combine(values, np.max)

    def _combine(self, values, how):
        self._parts[self._rank] = np.array(values)
        self._barrier.wait()
        combined = how(np.stack(self._parts), axis=0)
        self._barrier.wait()  # nobody writes before all have read
        return combined


def in_workers(work, shares):
    """``work(share, reduction)`` for every share at the same time, each in a thread."""
    barrier = threading.Barrier(len(shares), timeout=20)
    parts = [None] * len(shares)

    def worker(rank):
        try:
            return work(shares[rank], ThreadReduction(barrier, parts, rank))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(worker, range(len(shares))))


class ListedStumps:
    """An engine that chooses among fixed stumps by their edge over all rows."""

    def __init__(self, X, X_held_out, stumps, reduction, *, confidence):
        self._h = [stump_h(X, stump, confidence) for stump in stumps]
        self._held_out = [stump_h(X_held_out, stump, confidence) for stump in stumps]
        self._stumps, self._reduction = stumps, reduction

    def fit(self, targets):
        edges = np.array([-(targets.gradient * h).sum() for h in self._h])
        best = int(np.argmax(self._reduction.sum(edges)))
        return Fitted(self._stumps[best], self._h[best], self._held_out[best])

    def constant(self, h):
        return Fitted(h, np.full(self._h[0].shape, h), np.full(self._held_out[0].shape, h))

    def ensemble(self, learners, votes, link_scale):
        return list(zip(learners, votes, strict=True))


def stump_h(X, stump, confidence):
    column, cut, sign = stump
    h = sign * np.where(X[:, column] > cut, 1, -1)
    return h * (0.3 + 0.1 * column) if confidence else h.astype(np.int8)


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


def train(share, reduction, *, method, constraint, confidence=False, stumps=STUMPS, data):
    """A run on some training rows and some rows held out: learners, history and certificate."""
    (X, y, groups, weight), (X2, y2, groups2, weight2) = (
        tuple(part[rows] for part in parts) for parts, rows in zip(data, share, strict=True)
    )
    values = [f"g{g}" for g in range(N_GROUPS)]
    cells = Cells.of(y, Groups(groups, values), CLASSES, reduction=reduction)
    paper = method == "projection"
    moments = make_moments(constraint if paper else None, cells)
    loss = ExponentialLoss(
        y,
        weight,
        moments.index,
        len(moments.features),
        discrete=not confidence,
        reduction=reduction,
    )
    engine = ListedStumps(X, X2, stumps, reduction, confidence=confidence)
    watched = watched_rates(constraint, cells)
    if paper:
        limits = np.full(moments.features.shape[1], 0.05)
        policy = ProjectedWeights(moments.features, limits)
    else:
        limits = np.full(len(watched.rates), 0.03)
        monitor = TrainingRows(cells, weight)
        if method == "held-out rows":
            others = Cells.of(y2, Groups(groups2, values), CLASSES, reduction=reduction)
            monitor = HeldOutRows(y2, weight2, others)
        policy = ClosedLoop(watched, limits, monitor, step=2.0, decay=0.5)
    rounds = boost(engine, loss, policy, n_rounds=30, learning_rate=0.7)
    steps, reason = drain(rounds)
    learners, records = ([step[i] for step in steps] for i in (0, 1))
    run = Run(engine, loss, learners, records, reason, 0.7, limits)
    if paper:
        return finish_projection(run, moments.names)
    return finish_closed_loop(run, watched, monitor)


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


@pytest.mark.parametrize("how", ["halves", "one row", "no row"])
@pytest.mark.parametrize("confidence", [False, True], ids=["discrete", "confidence"])
@pytest.mark.parametrize("constraint", ["equalized_odds", "demographic_parity", "accuracy_parity"])
@pytest.mark.parametrize("method", ["projection", "training rows", "held-out rows"])
def test_two_workers_compute_what_one_does(method, constraint, confidence, how):
    empty_cell = constraint != "equalized_odds"  # which needs every cell
    data = (
        make_rows(900, 0, empty_cell=empty_cell),
        make_rows(700, 1, empty_cell=empty_cell),
    )
    settings = {"method": method, "constraint": constraint, "confidence": confidence, "data": data}
    everything = (np.arange(900), np.arange(700))
    alone = train(everything, LocalReduction(), **settings)
    assert len(alone.history) >= 10
    if method == "projection":
        assert alone.certificate.projected_rounds >= 10
    else:
        assert np.abs(alone.history.by_group("tilt")).max() > 0.1
    workers = in_workers(lambda *part: train(*part, **settings), shares_of(data, how))
    for outcome in workers:
        check_same(alone, outcome)


@pytest.mark.parametrize("method", ["projection", "training rows"])
def test_the_majority_is_that_of_all_rows(method):
    """The only stump is worse than chance; each worker has another majority."""
    X, y, groups, weight = make_rows(900, 0, empty_cell=False)
    X[:, 0] = -y
    data = (X, y, groups, weight), (X, y, groups, weight)
    settings = {
        "method": method,
        "constraint": "equalized_odds",
        "stumps": [(0, 0.0, 1)],
        "data": data,
    }
    everything = (np.arange(900), np.arange(900))
    alone = train(everything, LocalReduction(), **settings)
    mostly_negative = (y < 0) | (np.arange(900) % 10 == 0)
    rows = np.flatnonzero(mostly_negative), np.flatnonzero(~mostly_negative)
    assert (y[rows[0]].mean() < 0) != (y[rows[1]].mean() < 0)
    assert alone.history.stop_reason is StopReason.FALLBACK
    shares = [(part, part) for part in rows]
    for outcome in in_workers(lambda *part: train(*part, **settings), shares):
        check_same(alone, outcome)
