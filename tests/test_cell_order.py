"""Rows in the order of their cells: sums, signs and places against a plain loop over the rows."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairproj.boosting.losses import ExponentialLoss, LogisticLoss
from fairproj.boosting.rows import ScoredRows
from fairproj.data import cell_order
from fairproj.data.cell_order import CellOrder
from fairproj.data.cells import Cells
from fairproj.data.checks import Groups
from fairproj.data.sample import Sample


@st.composite
def cells_of_rows(draw):
    """Cells of one to five groups, some without rows, as wide or narrow integers."""
    n_groups = draw(st.integers(1, 5))
    index = draw(st.lists(st.integers(0, 2 * n_groups - 1), min_size=0, max_size=60))
    kind = draw(st.sampled_from([np.intp, np.uint8]))
    names = [f"g{number}" for number in range(n_groups)]
    return Cells(np.array(index, dtype=kind), names, names, np.array([0, 1]), 1)


@contextmanager
def small(chunk_rows, segment_rows):
    """Chunks and segments of few rows, and places in 32 bits from 31 rows on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_order, "CHUNK_ROWS", chunk_rows)
        patch.setattr(cell_order, "SEGMENT_ROWS", segment_rows)
        patch.setattr(cell_order, "MANY_ROWS", 30)
        yield


sizes = pytest.mark.parametrize("sizes", [(4, 3), (7, 100), (1000, 2), (1000, 1000)], ids=str)


@sizes
@given(cells=cells_of_rows(), seed=st.integers(0, 1000))
def test_sums_signs_and_places(sizes, cells, seed):
    values = np.random.default_rng(seed).normal(size=len(cells.index))
    with small(*sizes):
        order = CellOrder(cells)
    assert sorted(order.rows) == list(range(len(cells.index)))
    assert order.rows.dtype == (np.int32 if len(values) > 30 else np.intp)
    expected = np.zeros(len(cells))
    for cell, value in zip(cells.index, values, strict=True):
        expected[cell] += value
    total = order.sum(lambda chunk: chunk.sum(values[chunk.rows]))
    np.testing.assert_allclose(total, expected, atol=1e-12)
    for cell in range(len(cells)):
        members = order.rows[order.places(cell)]
        np.testing.assert_array_equal(members, np.flatnonzero(cells.index == cell))
    y = np.where(cells.index % 2 == 1, 1.0, -1.0)
    for chunk in order:
        np.testing.assert_array_equal(chunk.rows, order.rows[chunk.places])
        np.testing.assert_array_equal(chunk.expand(np.arange(len(cells))), cells.index[chunk.rows])
        for sign in (1.0, -1.0):
            signed = chunk.signed(values[chunk.rows], sign)
            np.testing.assert_array_equal(signed, sign * (y * values)[chunk.rows])


@pytest.mark.parametrize("loss", [ExponentialLoss(), LogisticLoss()])
@given(
    margins=st.lists(st.floats(-700, 700), min_size=1, max_size=512),
    seed=st.integers(0, 1000),
)
def test_sums_of_losses_are_sums_of_values(loss, margins, seed):
    rng = np.random.default_rng(seed)
    margin = np.array(margins)
    weight = rng.random(len(margin))
    starts = np.unique(np.append(rng.integers(0, len(margin), 3), 0))
    for given_weight in (None, weight):
        sums, slope = loss.sums_and_slope(margin, starts, given_weight)
        value = loss.value(margin) * (1.0 if given_weight is None else given_weight)
        expected = [part.sum() for part in np.split(value, starts[1:])]
        np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(slope, loss.slope(margin), rtol=1e-13)


@sizes
@pytest.mark.parametrize("weighted", [False, True])
@given(cells=cells_of_rows().filter(lambda cells: len(cells.index) > 0), seed=st.integers(0, 1000))
def test_losses_of_scored_rows(sizes, weighted, cells, seed):
    rng = np.random.default_rng(seed)
    n_rows = len(cells.index)
    y = np.where(cells.index % 2 == 1, 1.0, -1.0)
    weight = 1 + rng.random(n_rows) if weighted else np.broadcast_to(1.0, n_rows)
    groups = Groups(cells.index.astype(np.intp) // 2, cells.group_values)
    with small(*sizes):
        rows = ScoredRows(Sample(None, y, np.array([0, 1]), weight, groups, 1), LogisticLoss())
    h, shift = rng.normal(size=n_rows), 0.3
    rows.add(h, 2.0)
    rows.add(0.5, 1.0)
    f, s = 2 * h + 0.5, weight / weight.sum()

    def by_cell(values):
        return np.bincount(cells.index, s * values, len(cells))

    np.testing.assert_allclose(rows.size, by_cell(1.0), atol=1e-14)
    np.testing.assert_allclose(rows.squares, by_cell(s), atol=1e-14)
    for found, margin in (
        (rows.losses(), y * f),
        (rows.flipped_losses(), -y * f),
        (rows.shifted_losses(shift), y * (f + shift)),
    ):
        np.testing.assert_allclose(found, by_cell(np.logaddexp(0, -margin)), atol=1e-13)
    for cut in (0.0, 0.4):
        correct = by_cell((f > cut) == (y > 0))
        np.testing.assert_allclose(rows.correct(cut), correct, atol=1e-14)
