"""Signed costs: what a correct prediction is worth in each cell, given the multipliers.

The Lagrangian of the error under constraints on rates of predictions,

    err(f) + sum_{a,e} lam(a, e) rate(a, e) + nu rate(all rows of a label),

is a sum over rows. In a cell c, whose rows share group and label, a correct prediction costs
``correct_c`` and a wrong one ``wrong_c`` (both divided by the row's weight s_i), so that

    err(f) + sum lam rate = sum_c S_c min(correct_c, wrong_c)
                            + sum_i s_i |worth_c| [sign f(x_i) != sign(worth_c) y_i],

with worth_c = wrong_c - correct_c and S_c the weight of the cell. Where worth_c is negative the
cell's label flips. (The signed cost zeta_c of docs/guide/notation.md is worth_c y_c.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairproj.constraints import Rate
from fairproj.data.cells import Cells
from fairproj.data.types import Array


@dataclass(frozen=True)
class Costs:
    """What predictions cost in each cell.

    Attributes
    ----------
    worth : array of shape (n_cells,)
        What a correct prediction saves; negative where the label flips.
    constant : float
        sum_c S_c min(correct_c, wrong_c), the part that no model can change.
    """

    worth: Array
    constant: float

    @property
    def flipped(self) -> NDArray[np.bool_]:
        return np.asarray(self.worth < 0)

    @property
    def magnitude(self) -> Array:
        return np.abs(self.worth)


class CostModel:
    """Turns multipliers into costs.

    Parameters
    ----------
    cells : Cells
    size : array of shape (n_cells,)
        Their weights S_c, which sum to one.
    rates : sequence of Rate
        The rates with a multiplier for each group.
    class_cost : array of shape (n_cells,)
        What an error costs in each cell, by its label; sum_c S_c class_cost_c = 1.
    limited : array of bool, optional
        Cells whose share of wrong predictions has a global limit.
    """

    def __init__(
        self,
        cells: Cells,
        size: Array,
        rates: Sequence[Rate],
        class_cost: Array,
        limited: NDArray[np.bool_] | None = None,
    ) -> None:
        self._size, self.class_cost = size, class_cost
        self._group = cells.group
        shape = (len(size), len(rates))
        self._raised_by_correct, self._raised_by_wrong = np.zeros(shape), np.zeros(shape)
        for e, rate in enumerate(rates):
            inside = rate.inside(cells)
            weight = np.bincount(cells.group, size * inside)[cells.group]
            share = np.divide(inside, weight, out=np.zeros(len(size)), where=weight > 0)
            up = rate.direction(cells) > 0
            self._raised_by_correct[:, e] = share * up
            self._raised_by_wrong[:, e] = share * ~up
        self._limited = np.zeros(len(size))
        if limited is not None:
            self._limited = limited / size[limited].sum()

    def __call__(self, multipliers: Array, limit_multiplier: float = 0.0) -> Costs:
        """Costs for multipliers of shape (n_groups, n_rates) and that of the global limit."""
        by_cell = multipliers[self._group]
        correct = (by_cell * self._raised_by_correct).sum(axis=1)
        wrong = self.class_cost + (by_cell * self._raised_by_wrong).sum(axis=1)
        wrong = wrong + limit_multiplier * self._limited
        return Costs(wrong - correct, float(self._size @ np.minimum(correct, wrong)))
