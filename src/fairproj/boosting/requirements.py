"""The rates that must be alike, read off the weight of each cell that is predicted correctly."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.moments import check_cells
from fairproj.boosting.rows import ScoredRows
from fairproj.constraints import Requirement, find_constraint, limits_of
from fairproj.data.cells import Cells
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user

FEW_ROWS = 20  # a rate over fewer rows than this draws a warning
_MANY_NUMBERS = 12  # groups that are numbers; more are rather a measure, such as an age


@dataclass(frozen=True)
class Requirements:
    """The rates that must be alike, and by how much they may differ.

    Attributes
    ----------
    cells : Cells
        All (group, label) cells of the training rows, also those without rows.
    parts : tuple of Requirement
    limits : array of shape (n_requirements,)
    """

    cells: Cells
    parts: tuple[Requirement, ...]
    limits: Array

    @property
    def events(self) -> list[str]:
        return [part.words for part in self.parts]

    @property
    def kinds(self) -> list[Literal["difference", "ratio"]]:
        return [part.kind for part in self.parts]

    @property
    def names(self) -> list[str]:
        """What to call each rate of each group, rates within groups."""
        groups = self.cells.group_names
        if len(self.parts) == 1:
            return list(groups)
        return [f"{group}, {event}" for group in groups for event in self.events]

    @property
    def comparable(self) -> bool:
        """Whether there is a gap to speak of: a rate, and two groups or more."""
        return bool(self.parts) and len(self.cells.group_names) > 1

    def weights(self, size: Array) -> Array:
        """S(a, e), the weight of the rows of each group that a rate counts.

        ``size`` is the weight of each cell.
        """
        counted = [by_group(size * part.rate.inside(self.cells)) for part in self.parts]
        return np.stack(counted, axis=1) if counted else np.zeros((len(size) // 2, 0))

    def reader(self, size: Array) -> Callable[[Array], Array]:
        """A function from the correct weight of each cell to each group's rates.

        ``size`` is the weight of each cell. The rates have shape (n_groups, n_requirements, ...),
        NaN without rows; further axes of the correct weights, such as one of cuts, are kept.
        """
        n_groups = len(size) // 2
        share, offset = (
            np.zeros((len(size), len(self.parts))),
            np.zeros((n_groups, len(self.parts))),
        )
        weights = self.weights(size)
        for e, part in enumerate(self.parts):
            inside = part.rate.inside(self.cells)
            up = part.rate.direction(self.cells) > 0
            rows = weights[:, e]
            each = np.divide(1.0, rows, out=np.full(n_groups, np.nan), where=rows > 0)
            share[:, e] = np.where(up, 1.0, -1.0) * inside * each[self.cells.group]
            offset[:, e] = by_group(size * inside * ~up) * each

        def read(correct: Array) -> Array:
            extra = [1] * (correct.ndim - 1)
            parts = share.reshape(*share.shape, *extra) * correct[:, None]
            rates: Array = by_group(parts) + offset.reshape(*offset.shape, *extra)
            return rates

        return read

    def gaps(self, rates: Array) -> Array:
        """The gap of each requirement, of shape (n_requirements, ...)."""
        gaps = [part.gap(rates[:, e]) for e, part in enumerate(self.parts)]
        return np.stack(gaps) if gaps else np.zeros((0, *rates.shape[2:]))

    def standard_errors(self, rates: Array, rows: ScoredRows) -> Array:
        """Of each gap, from the binomial variances of the two extreme rates."""
        variances = []
        weight, squares = self.weights(rows.size), self.weights(rows.squares)
        by_requirement = np.maximum(weight**2 / np.maximum(squares, 1e-300), 1.0)
        for e in range(len(self.parts)):
            effective = by_requirement[:, e]
            effective = effective.reshape(-1, *[1] * (rates.ndim - 2))
            # With one success and one failure more: a rate of 0 or 1 is not known exactly.
            rate = (rates[:, e] * effective + 1) / (effective + 2)
            variances.append(rate * (1 - rate) / effective)
        by_ratio = np.array([kind == "ratio" for kind in self.kinds], dtype=bool)
        by_ratio = by_ratio.reshape(-1, *[1] * (rates.ndim - 2))
        return _gap_errors(rates, np.stack(variances, axis=1), by_ratio)


def _gap_errors(rates: Array, variances: Array, by_ratio: NDArray[np.bool_]) -> Array:
    """Standard errors of largest less smallest, or of 1 less their ratio by the delta method.

    That of a ratio low / high is sqrt(var_low + ratio^2 var_high) / high.
    """
    highest, lowest = np.argmax(rates, axis=0)[None], np.argmin(rates, axis=0)[None]
    low, high = (np.take_along_axis(rates, at, 0)[0] for at in (lowest, highest))
    var_low, var_high = (np.take_along_axis(variances, at, 0)[0] for at in (lowest, highest))
    high = np.maximum(high, 1e-12)
    weight = np.where(by_ratio, (low / high) ** 2, 1.0)
    errors: Array = np.sqrt(var_low + weight * var_high) / np.where(by_ratio, high, 1.0)
    return errors


def by_group(values: Array) -> Array:
    """Sums over the two cells of each group; cells are along axis 0."""
    total: Array = values.reshape(len(values) // 2, 2, *values.shape[1:]).sum(axis=1)
    return total


def find_requirements(constraints: Any, max_gap: Any, cells: Cells) -> Requirements:
    """The requirements of the ``constraints`` and ``max_gap`` parameters."""
    limits = limits_of(constraints, max_gap)
    constraint = find_constraint(constraints)
    if constraint is not None:
        check_cells(constraint, cells)
    return Requirements(cells, tuple(limits), np.array(list(limits.values()), dtype=float))


def check_watched_rows(requirements: Requirements, cells: Cells) -> None:
    """Refuse rows that leave a rate unwatched: its gap would look like zero."""
    for event, rows in _rows(requirements, cells).items():
        if not rows.all():
            group = cells.group_names[int(np.argmin(rows))]
            raise ValueError(
                f"the rows held out to watch the gap have none of group {group!r} for the {event}; "
                "add some, merge the group with another, or watch the training rows with "
                "validation_fraction=None"
            )


def warn_of_few_rows(requirements: Requirements, cells: Cells) -> None:
    """Name groups whose rates are mostly noise, where there are groups to compare."""
    if not requirements.comparable:
        return
    few = [
        f"{cells.group_names[g]}, {event}: {rows[g]:.0f}"
        for event, rows in _rows(requirements, cells).items()
        for g in np.flatnonzero(rows < FEW_ROWS)
    ]
    if few:
        advice = "consider merging groups"
        if len(cells.group_names) > _MANY_NUMBERS and all(map(_is_number, cells.group_names)):
            advice = "cut the numbers into ranges, as with fairproj.data.cut_ranges"
        warn_user(
            f"some groups have fewer than {FEW_ROWS} watched rows ({'; '.join(few[:6])}), too "
            f"few to say much about their rates; {advice}"
        )


def _is_number(name: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d*)?", name) is not None


def fewest_rows(requirements: Requirements, cells: Cells) -> int:
    """The rows of the smallest group in an event that is compared."""
    return int(min(rows.min() for rows in _rows(requirements, cells).values()))


def _rows(requirements: Requirements, cells: Cells) -> dict[str, Array]:
    """The rows of each group, for each rate."""
    counts = cells.counts.astype(float)
    return {
        part.words: (counts * part.rate.inside(cells)).reshape(-1, 2).sum(axis=1)
        for part in requirements.parts
    }
