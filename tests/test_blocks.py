"""Rows that are parts of a larger table: their places there, the split, and lean row state."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.data.blocks import Blocks
from fairproj.data.checks import Groups
from fairproj.data.sample import compact_weights, make_sample, split_sample
from workers import in_workers

LENGTHS = st.lists(st.integers(0, 7), min_size=1, max_size=6)


def shares_of(lengths, n_workers):
    """Row numbers of each worker, part by part, and its blocks."""
    ends = np.cumsum([0, *lengths])
    shares = []
    for worker in range(n_workers):
        numbers = tuple(range(worker, len(lengths), n_workers))
        rows = [np.arange(ends[i], ends[i + 1]) for i in numbers]
        blocks = Blocks(numbers, tuple(len(part) for part in rows), len(lengths))
        shares.append((np.concatenate([np.zeros(0, int), *rows]), blocks))
    return shares


@settings(max_examples=30, deadline=None)
@given(LENGTHS, st.integers(1, 3), st.integers(0, 10**6))
def test_rows_are_found_by_their_position_in_the_table(lengths, n_workers, seed):
    n_rows = sum(lengths)
    drawn = np.flatnonzero(np.random.default_rng(seed).random(n_rows) < 0.5)

    def work(share, reduction):
        rows, blocks = share
        starts, total = blocks.starts(reduction)
        assert total == n_rows
        here, local = blocks.find(drawn, starts)
        np.testing.assert_array_equal(rows[local], drawn[here])
        return here

    found = in_workers(work, shares_of(lengths, n_workers))
    np.testing.assert_array_equal(np.sum(found, axis=0), np.ones(len(drawn)))


@settings(max_examples=30, deadline=None)
@given(LENGTHS, st.integers(0, 10**6))
def test_blocks_of_some_rows(lengths, seed):
    kept = np.flatnonzero(np.random.default_rng(seed).random(sum(lengths)) < 0.5)
    blocks = Blocks(tuple(range(len(lengths))), tuple(lengths), len(lengths))
    part = np.repeat(np.arange(len(lengths)), lengths)
    expected = np.bincount(part[kept], minlength=len(lengths))
    assert blocks.take(kept).lengths == tuple(expected)


def make_table(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    group = np.where(rng.random(n_rows) < 0.3, "b", "a")
    y = (X[:, 0] + 0.7 * (group == "a") + rng.normal(size=n_rows) > 0.3).astype(int)
    return X, y, group


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_split_does_not_depend_on_the_workers(n_workers):
    X, y, group = make_table(500)
    whole = make_sample(X, y, group, None)
    expected = [part.X[:, 0] for part in split_sample(whole, 0.3, 7)]

    def work(share, reduction):
        rows, blocks = share
        # A worker without rows of a group still knows the group.
        local = whole.take(rows, keep_groups=True)
        local = replace(local, reduction=reduction, parts=blocks)
        parts = split_sample(local, 0.3, 7)
        assert all(sum(part.blocks.lengths) == len(part) for part in parts)
        return [part.X[:, 0] for part in parts]

    shares = shares_of([90, 0, 210, 150, 50], n_workers)
    results = in_workers(work, shares)
    for position in range(2):
        together = np.concatenate([result[position] for result in results])
        np.testing.assert_array_equal(np.sort(together), np.sort(expected[position]))


def test_split_holds_out_the_same_share_of_every_cell():
    X, y, group = make_table(1000)
    sample = make_sample(X, y, group, None)
    training, held_out = split_sample(sample, 0.25, 0)
    counts = sample.cells.counts
    np.testing.assert_array_equal(training.cells.counts + held_out.cells.counts, counts)
    np.testing.assert_allclose(held_out.cells.counts, 0.25 * counts, atol=0.5)
    assert not np.isin(training.X[:, 0], held_out.X[:, 0]).any()


@pytest.mark.parametrize(
    "model",
    [
        FairProjClassifier(n_estimators=20),
        FairProjClassifier(n_estimators=20, votes="confidence", max_depth=2),
        FairBoostClassifier(n_estimators=20, random_state=0),
        FairBoostClassifier(n_estimators=20, max_gap=0.0, validation_fraction=None),
        FairBoostClassifier(n_estimators=20, loss="exponential", random_state=0),
        FairBoostClassifier(n_estimators=20, selection_rate=0.3, random_state=0),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_small_types_change_nothing(model):
    X, y, group = make_table(3000)
    prepared = model._prepare(X, y, group)
    expected = model._fit_prepared(prepared).history_
    sample = prepared.sample
    lean = replace(
        sample,
        y=sample.y.astype(np.int8),
        weight=np.broadcast_to(1.0, len(sample)),
        groups=Groups(sample.groups.codes.astype(np.uint8), sample.groups.values),
        cache={},
    )
    assert lean.cells.index.dtype == np.uint8
    history = model._fit_prepared(replace(prepared, sample=lean)).history_
    np.testing.assert_allclose(history.columns["vote"], expected.columns["vote"], atol=1e-12)
    np.testing.assert_allclose(
        history.columns["log_loss"], expected.columns["log_loss"], atol=1e-12
    )


def test_cells_of_many_groups_fit_their_type():
    groups = Groups(np.arange(200, dtype=np.uint8), [f"g{i}" for i in range(200)])
    sample = make_sample(np.zeros((200, 1)), np.arange(200) % 2, np.arange(200), None)
    cells = replace(sample, groups=groups, cache={}).cells
    np.testing.assert_array_equal(cells.index, sample.cells.index)


@pytest.mark.parametrize("n_rows", [0, 1, 2])
@pytest.mark.parametrize("compact", [False, True])
def test_weights_come_back_from_a_pickle_as_they_were(n_rows, compact):
    """Defect: the weight of one row became one that is repeated."""
    sample = make_sample(np.eye(4), [0, 1, 0, 1], list("abab"), None).take(np.arange(n_rows))
    weight = np.full(n_rows, 1.5)
    sample = replace(sample, weight=compact_weights(weight) if compact else weight)
    assert sample.has_one_weight == (compact and n_rows > 0)
    again = pickle.loads(pickle.dumps(sample))
    assert again.has_one_weight == sample.has_one_weight
    np.testing.assert_array_equal(again.weight, weight)


def test_no_weights_are_not_one_weight():
    """Defect: the smallest of no weights was asked for."""
    assert compact_weights(np.empty(0)).shape == (0,)
