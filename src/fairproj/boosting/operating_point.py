"""Where a model decides: at a given probability, or where a share of the rows is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.rows import ScoredRows
from fairproj.data.cells import Cells
from fairproj.data.types import Array

_FLOOR = 1e-12


class OperatingPoint(Protocol):
    """Finds the cut: class 1 is predicted where the margin exceeds it.

    Attributes
    ----------
    fixed : bool
        Whether the cut does not depend on the rows, so that a bias may be added to the margin.
    """

    fixed: bool

    def cut(self, rows: ScoredRows) -> float: ...

    def error_costs(self, size: Array, class_cost: Array) -> Array:
        """What an error costs in each cell, for the comparison with constant predictions."""


@dataclass(frozen=True)
class Threshold:
    """Decide where the probability of the positive label exceeds ``probability``.

    That is the best decision where a false positive costs ``probability`` and a false negative
    1 - ``probability``, so these are the costs of errors.
    """

    probability: float
    link_scale: float
    cells: Cells
    fixed = True

    def cut(self, rows: ScoredRows) -> float:
        cut = float(np.log(self.probability / (1 - self.probability))) / self.link_scale
        return cut if self.cells.positive_class == 1 else -cut

    def error_costs(self, size: Array, class_cost: Array) -> Array:
        missed, raised = 1 - self.probability, self.probability
        costs: Array = class_cost * np.where(self.cells.positive, missed, raised)
        return costs / (size @ costs)


@dataclass(frozen=True)
class Share:
    """Decide where a share of the rows in some cells lies above the cut.

    A constant prediction does not have the share, so a model is compared with chance at the same
    share: the errors of both labels count alike.

    Attributes
    ----------
    inside : array of shape (n_cells,)
        The cells.
    share : float
    side : {"nearest", "at_most", "at_least"}
    limited : bool
        Whether the rows inside have a limit on their errors, which gets a multiplier.
    limit : float
        That limit.
    """

    inside: NDArray[np.bool_]
    share: float
    side: str
    limited: bool = False
    limit: float = 1.0
    fixed = False

    def cut(self, rows: ScoredRows) -> float:
        return rows.find_cut(self.inside, self.share, self.side)

    def error_costs(self, size: Array, class_cost: Array) -> Array:
        label = np.arange(len(size)) % 2
        weight = np.bincount(label, size, 2)[label]
        costs: Array = 1 / np.maximum(2 * weight, _FLOOR)
        return costs


def selection_rate(rate: float, cells: Cells) -> Share:
    """Predict the positive label for this share of all rows."""
    share = rate if cells.positive_class == 1 else 1 - rate
    return Share(np.ones(len(cells), dtype=bool), share, "nearest")


def error_rate_limit(limit: float, cells: Cells, *, positive: bool) -> Share:
    """Keep the error rate of one label within a limit, and decide as favourably as it allows.

    ``positive`` rows have false negatives, the others false positives.
    """
    inside = cells.positive if positive else ~cells.positive
    label = cells.positive_class if positive else 1 - cells.positive_class
    share, side = (1 - limit, "at_least") if label == 1 else (limit, "at_most")
    return Share(np.asarray(inside), share, side, limited=True, limit=limit)
