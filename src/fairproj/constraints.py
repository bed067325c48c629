"""What must balance: constraint features g as functions of group and label (paper, appendix A).

A constraint holds no data and knows no solver. It says, for the cells it is shown, what each
cell's features are, what to call them, and which cells it cannot do without. `moments` joins a
constraint with a sample.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairproj._cells import Cells
from fairproj._validation import Array, Codes, listing

__all__ = [
    "Constraint",
    "FunctionConstraint",
    "MassParity",
    "Together",
    "demographic_parity",
    "equal_opportunity",
    "equalized_odds",
    "false_positive_rate_parity",
]

FEW_ROWS = 10  # a needed cell with fewer rows draws a warning


class Constraint(ABC):
    """Base of all constraints; subclass it for an own one (see the guide "Add a constraint")."""

    @abstractmethod
    def features(self, cells: Cells) -> Array:
        """g as a matrix of shape (n_cells, n_constraints)."""

    @abstractmethod
    def names(self, cells: Cells) -> list[str]:
        """What to call each column of `features`."""

    def needed(self, cells: Cells) -> NDArray[np.bool_]:
        """Cells that must not be empty; by default all that a feature touches."""
        touched: NDArray[np.bool_] = (self.features(cells) != 0).any(axis=1)
        return touched

    def events(self, cells: Cells) -> dict[str, NDArray[np.bool_]]:
        """The rates of predictions that must be alike, as cells; for ``enforce="classifier"``."""
        raise ValueError(
            f"enforce='classifier' compares the groups' rates of predictions, and "
            f"{type(self).__name__} names none; use one of {listing(list(BY_NAME))}, or "
            "enforce='distribution'"
        )


@dataclass(frozen=True)
class MassParity(Constraint):
    """Every pair of groups holds the same mass, up to epsilon, within an event.

    g_ab(i) = [i in event] ([a_i = a] - [a_i = b]), so <w, g_ab> = w(a, event) - w(b, event).

    Parameters
    ----------
    event : {"all", "positive", "negative"}
        Which rows count: all (demographic parity), those with the positive label (equal
        opportunity) or those with the other (false positive rate parity).
    """

    event: Literal["all", "positive", "negative"]

    def __post_init__(self) -> None:
        if self.event not in ("all", "positive", "negative"):
            raise ValueError(f"event must be 'all', 'positive' or 'negative', got {self.event!r}")

    def _inside(self, cells: Cells) -> NDArray[np.bool_]:
        if self.event == "all":
            return np.ones(len(cells), dtype=bool)
        return cells.positive if self.event == "positive" else ~cells.positive

    def features(self, cells: Cells) -> Array:
        member = cells.group[:, None] == np.arange(len(cells.group_values))
        member = member & self._inside(cells)[:, None]
        pairs = list(_pairs(cells))
        if not pairs:
            return np.zeros((len(cells), 0))
        return np.column_stack([member[:, b] * 1.0 - member[:, a] for a, b in pairs])

    def names(self, cells: Cells) -> list[str]:
        label = cells.classes[cells.positive_class ^ (self.event == "negative")]
        where = "" if self.event == "all" else f" | {label!s}"
        groups = cells.group_names
        return [f"{groups[b]} - {groups[a]}{where}" for a, b in _pairs(cells)]

    def needed(self, cells: Cells) -> NDArray[np.bool_]:
        if self.event == "all" or len(cells.group_values) < 2:
            return np.zeros(len(cells), dtype=bool)  # every group has rows, of some label
        return self._inside(cells)

    def events(self, cells: Cells) -> dict[str, NDArray[np.bool_]]:
        """The rows over which a rate of predictions is taken, by what to call that rate."""
        if self.event == "all":
            return {"selection rate": self._inside(cells)}
        label = cells.classes[cells.positive_class ^ (self.event == "negative")]
        return {f"positive rate | {label!s}": self._inside(cells)}


def _pairs(cells: Cells) -> combinations[tuple[int, int]]:
    return combinations(range(len(cells.group_values)), 2)


@dataclass(frozen=True)
class Together(Constraint):
    """Several constraints at once.

    Parameters
    ----------
    parts : sequence of Constraint or str
        Constraints, or names of them.
    """

    parts: Sequence[Any]

    def __post_init__(self) -> None:
        parts = tuple(named(part) if isinstance(part, str) else part for part in self.parts)
        if not parts or not all(isinstance(part, Constraint) for part in parts):
            raise TypeError(f"Together takes constraints or their names, got {self.parts!r}")
        object.__setattr__(self, "parts", parts)  # frozen, but names become what they name

    def features(self, cells: Cells) -> Array:
        return np.hstack([part.features(cells) for part in self.parts])

    def names(self, cells: Cells) -> list[str]:
        return [name for part in self.parts for name in part.names(cells)]

    def needed(self, cells: Cells) -> NDArray[np.bool_]:
        needed: NDArray[np.bool_] = np.stack([part.needed(cells) for part in self.parts])
        return np.asarray(needed.any(axis=0))

    def events(self, cells: Cells) -> dict[str, NDArray[np.bool_]]:
        return {name: inside for part in self.parts for name, inside in part.events(cells).items()}


@dataclass(frozen=True)
class FunctionConstraint(Constraint):
    """An own constraint: any bounded function of group and label.

    Parameters
    ----------
    function : callable
        ``function(group, label)`` gives one number, or a sequence with one number for each
        constraint. `group` is a value of the sensitive feature (a tuple where several columns were
        crossed), `label` one of the two labels.
    titles : str or sequence of str, optional
        What to call the constraints.

    Examples
    --------
    Rejected applicants of two branches hold the same mass:

    >>> from fairproj.constraints import FunctionConstraint
    >>> sign = {"north": 1.0, "south": -1.0}
    >>> rejected = FunctionConstraint(lambda group, label: (label == "no") * sign[group])
    """

    function: Callable[[Any, Any], float | Sequence[float]]
    titles: str | Sequence[str] | None = None

    def features(self, cells: Cells) -> Array:
        values = []
        for group, label in zip(cells.group, cells.label, strict=True):
            value, name = cells.group_values[group], cells.classes[label]
            try:
                found = np.atleast_1d(np.asarray(self.function(value, name), dtype=float))
                if not np.isfinite(found).all():
                    raise ValueError(f"it returned {found.tolist()}")
                values.append(found)
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"the constraint's function failed for group {value!r} and label {name!s} "
                    f"({type(error).__name__}: {error}); it must return a finite number for every "
                    "group and label of the data"
                ) from error
        if len({len(value) for value in values}) != 1:
            raise ValueError(
                "the constraint's function returned different numbers of values for different "
                "groups or labels; it must return as many for each"
            )
        return np.array(values)

    def names(self, cells: Cells) -> list[str]:
        n_constraints = self.features(cells).shape[1]
        if self.titles is None:
            return [f"constraint {k}" for k in range(n_constraints)]
        titles = [self.titles] if isinstance(self.titles, str) else list(self.titles)
        if len(titles) != n_constraints:
            raise ValueError(
                f"titles has {len(titles)} entries, the function returns {n_constraints} numbers"
            )
        return titles


def named(name: str) -> Constraint:
    """The constraint of that name."""
    if name not in BY_NAME:
        raise ValueError(
            f"constraints={name!r} is unknown; use one of {listing(list(BY_NAME))}, "
            "a Constraint object, an array with a row of features for each row of X, or None"
        )
    return BY_NAME[name]


demographic_parity = MassParity("all")
equal_opportunity = MassParity("positive")
false_positive_rate_parity = MassParity("negative")
equalized_odds = Together((equal_opportunity, false_positive_rate_parity))

BY_NAME: dict[str, Constraint] = {
    "demographic_parity": demographic_parity,
    "equal_opportunity": equal_opportunity,
    "true_positive_rate_parity": equal_opportunity,
    "false_positive_rate_parity": false_positive_rate_parity,
    "equalized_odds": equalized_odds,
}


@dataclass(frozen=True)
class Moments:
    """A constraint applied to a sample: which cell a row is in, and that cell's features.

    Cells without rows are left out, so that every mass here is positive.
    """

    index: Codes
    features: Array
    names: list[str]


def moments(constraints: Any, cells: Cells) -> Moments:
    """Resolve the ``constraints`` parameter: a name, a `Constraint`, an (n_rows, K) array, None."""
    if constraints is None:
        return _compressed(cells.index, np.zeros((len(cells), 0)), [])
    if isinstance(constraints, str):
        constraints = named(constraints)
    if isinstance(constraints, Constraint):
        _check_cells(constraints, cells)
        return _compressed(cells.index, constraints.features(cells), constraints.names(cells))
    return _moments_of_array(constraints, len(cells.index))


@dataclass(frozen=True)
class Watched:
    """The rates of predictions that must be alike: positive predictions by group and event.

    Attributes
    ----------
    cells : Cells
        All (group, label) cells, also those without rows.
    inside : array of shape (n_events, n_cells)
        Which cells an event holds.
    events : list of str
    """

    cells: Cells
    inside: NDArray[np.bool_]
    events: list[str]

    @property
    def names(self) -> list[str]:
        """What to call each rate, events within groups."""
        groups = self.cells.group_names
        if len(self.events) == 1:
            return list(groups)
        return [f"{group}, {event}" for group in groups for event in self.events]


def watched(constraints: Any, cells: Cells) -> Watched:
    """What ``enforce="classifier"`` keeps alike under this ``constraints`` parameter."""
    if isinstance(constraints, str):
        constraints = named(constraints)
    if constraints is None:
        return Watched(cells, np.zeros((0, len(cells)), dtype=bool), [])
    if not isinstance(constraints, Constraint):
        raise ValueError(
            "enforce='classifier' needs a constraint by name or object, got "
            f"{type(constraints).__name__}; use one of {listing(list(BY_NAME))}, or "
            "enforce='distribution'"
        )
    events = constraints.events(cells)
    _check_empty(constraints, cells)
    return Watched(cells, np.array(list(events.values())), list(events))


def rows_of_constraint(constraints: Any, rows: Codes) -> Any:
    """The parameter for some rows only: an array loses the others, the rest stays as it is."""
    if constraints is None or isinstance(constraints, str | Constraint):
        return constraints
    array = np.asarray(constraints)
    return array[rows] if array.ndim and len(array) > rows.max() else constraints


def _moments_of_array(constraints: Any, n_rows: int) -> Moments:
    """Rows with equal features form a cell; in the worst case every row is one."""
    try:
        features = np.asarray(constraints, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"constraints must be a name ({listing(list(BY_NAME))}), a Constraint object, an array "
            f"or None, got {type(constraints).__name__}"
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
            f"for each of the {n_rows} rows of X"
        )
    if not np.isfinite(features).all():
        raise ValueError("constraints has missing or infinite entries; features must be finite")
    unique, index = np.unique(features, axis=0, return_inverse=True)
    names = [f"constraint {k}" for k in range(features.shape[1])]
    return Moments(index.reshape(-1).astype(np.intp), unique, names)


def _check_cells(constraint: Constraint, cells: Cells) -> None:
    _check_empty(constraint, cells)
    _warn_of_few(constraint, cells)


def _check_empty(constraint: Constraint, cells: Cells) -> None:
    needed, counts = constraint.needed(cells), cells.counts
    empty = np.flatnonzero(needed & (counts == 0))
    if len(empty):
        known = ", ".join(f"{cells.name(c)}: {counts[c]}" for c in np.flatnonzero(needed)[:12])
        raise ValueError(
            f"{cells.name(empty[0])} has no rows, and the constraint needs some; merge this group "
            f"with another or drop it (rows of the cells needed: {known})"
        )


def _warn_of_few(constraint: Constraint, cells: Cells) -> None:
    needed, counts = constraint.needed(cells), cells.counts
    few = np.flatnonzero(needed & (counts < FEW_ROWS)).tolist()
    found = [f"{cells.name(c)}: {counts[c]}" for c in few]
    touched = (constraint.features(cells) != 0).any(axis=1) & ~needed
    by_group = np.bincount(cells.group, counts * touched, len(cells.group_names))
    found += [
        f"group {cells.group_names[g]!r}: {by_group[g]:.0f}"
        for g in np.flatnonzero((by_group > 0) & (by_group < FEW_ROWS))
    ]
    if found:
        warnings.warn(
            f"the constraint weighs groups of fewer than {FEW_ROWS} rows ({', '.join(found[:12])})"
            "; a few rows may get most of the weight, so consider merging groups",
            UserWarning,
            stacklevel=6,
        )


def _compressed(index: Codes, features: Array, names: list[str]) -> Moments:
    present = np.bincount(index, minlength=len(features)) > 0
    renumbered = np.cumsum(present) - 1
    return Moments(renumbered[index].astype(np.intp), features[present], names)
