"""A constraint applied to a sample: the cell of each row, and the features of each cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairproj.constraints import Blocks, Constraint, find_constraint, statistic_names
from fairproj.data.cells import Cells
from fairproj.data.checks import counted, listing
from fairproj.data.types import Array, Codes
from fairproj.data.user_warning import warn_user

FEW_ROWS = 10  # a needed cell with fewer rows draws a warning
MOST_BY_PAIR = 50  # groups; the masses of more are recorded by group


@dataclass(frozen=True)
class Moments:
    """Which cell a row is in, and the cells' features g.

    Cells without rows are left out, so that every mass is positive. With more than `MOST_BY_PAIR`
    groups whose masses must be alike, ``blocks`` says so, and there are no features.
    """

    index: Codes
    features: Array
    names: list[str]
    blocks: Blocks | None = None


def make_moments(constraints: Any, cells: Cells) -> Moments:
    """Resolve the ``constraints`` parameter: a name, a `Constraint`, an (n_rows, K) array, None."""
    constraint = find_constraint(constraints)
    if constraint is None:
        return _without_empty(cells, np.zeros((len(cells), 0)), [])
    if isinstance(constraint, Constraint):
        check_cells(constraint, cells)
        _warn_of_small_cells(constraint, cells)
        blocks = find_blocks(constraint, cells)
        if blocks is not None:
            return _without_empty(cells, np.zeros((len(cells), 0)), blocks.names, blocks)
        return _without_empty(cells, constraint.features(cells), constraint.names(cells))
    return _moments_of_array(constraint, len(cells.index))


def find_blocks(constraint: Constraint, cells: Cells) -> Blocks | None:
    """What takes the place of features, where groups are many and have alike masses."""
    return constraint.blocks(cells) if len(cells.group_values) > MOST_BY_PAIR else None


def constraint_rows(constraints: Any, rows: Codes) -> Any:
    """The parameter for some rows only: an array loses the others, the rest stays as it is."""
    if constraints is None or isinstance(find_constraint(constraints), Constraint):
        return constraints
    array = np.asarray(constraints)
    return array[rows] if array.ndim and len(array) > rows.max() else constraints


def _moments_of_array(constraints: Any, n_rows: int) -> Moments:
    """Rows with equal features form a cell; in the worst case every row is one."""
    try:
        features = np.asarray(constraints, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"constraints must be a name ({listing(statistic_names(constraints=True), 20)}), a "
            f"Constraint object, an array or None, got {type(constraints).__name__}"
        ) from None
    if features.ndim == 0:
        raise ValueError(
            f"constraints={constraints!r} is a number; did you mean epsilon={constraints!r}?"
        )
    if features.ndim == 1:
        features = features[:, None]
    if features.ndim != 2 or len(features) != n_rows:
        raise ValueError(
            f"constraints is an array of shape {features.shape}; it must have a row of features "
            f"for each of the {counted(n_rows, 'row')} of X"
        )
    if not np.isfinite(features).all():
        raise ValueError("constraints has missing or infinite entries; features must be finite")
    unique, index = np.unique(features, axis=0, return_inverse=True)
    names = [f"constraint {k}" for k in range(features.shape[1])]
    return Moments(index.reshape(-1).astype(np.intp), unique, names)


def check_cells(constraint: Constraint, cells: Cells) -> None:
    """Refuse data in which a cell that the constraint needs has no rows."""
    needed, counts = constraint.needed(cells), cells.counts
    empty = np.flatnonzero(needed & (counts == 0))
    if len(empty):
        known = ", ".join(f"{cells.name(c)}: {counts[c]}" for c in np.flatnonzero(needed)[:12])
        raise ValueError(
            f"{cells.name(empty[0])} has no rows, and the constraint needs some; merge this group "
            f"with another or drop it (rows of the cells needed: {known})"
        )


def _warn_of_small_cells(constraint: Constraint, cells: Cells) -> None:
    needed, counts = constraint.needed(cells), cells.counts
    few = np.flatnonzero(needed & (counts < FEW_ROWS)).tolist()
    small = [f"{cells.name(c)}: {counts[c]}" for c in few]
    touched = constraint.touched(cells) & ~needed
    by_group = np.bincount(cells.group, counts * touched, len(cells.group_names))
    small += [
        f"group {cells.group_names[g]!r}: {by_group[g]:.0f}"
        for g in np.flatnonzero((by_group > 0) & (by_group < FEW_ROWS))
    ]
    if small:
        warn_user(
            f"the constraint weighs groups of fewer than {FEW_ROWS} rows ({', '.join(small[:12])})"
            "; a few rows may get most of the weight, so consider merging groups"
        )


def _without_empty(
    cells: Cells, features: Array, names: list[str], blocks: Blocks | None = None
) -> Moments:
    present = cells.counts > 0
    renumbered = (np.cumsum(present) - 1).astype(cells.index.dtype)
    if blocks is not None:
        blocks = replace(blocks, block=blocks.block[present])
    return Moments(renumbered[cells.index], features[present], names, blocks)
