"""What must balance: the registry of rates and statistics, and constraints on them.

A `Rate` is a share of predictions within a group; a `Statistic` compares the groups' rates, by
difference or by ratio, and has the name that users know, such as ``"equal_opportunity"``.
Constraints, metrics, audits, reports, searches and commands all look names up here, so a name
accepted in one place is accepted in all.

A `Constraint` holds no data and knows no solver. It says, for the cells it is shown, what the
features g of each cell are (paper, appendix A), what to call them, and which cells it needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairproj.data.cells import CellCounts, Cells
from fairproj.data.checks import check_slack, counted, listing
from fairproj.data.types import Array, Codes

__all__ = [
    "RATES",
    "STATISTICS",
    "AllOf",
    "Constraint",
    "FunctionConstraint",
    "Rate",
    "RateParity",
    "RateRatio",
    "Requirement",
    "Statistic",
    "accuracy_parity",
    "demographic_parity",
    "equal_opportunity",
    "equalized_odds",
    "false_positive_rate_parity",
    "find_statistic",
    "limits_of",
    "register_statistic",
    "selection_ratio",
]

Kind = Literal["difference", "ratio"]
Event = Literal["all", "positive", "negative", "selected"]
Outcome = Literal["positive", "negative", "correct"]

_LABELS = {"all": [0, 1], "positive": [1], "negative": [0]}  # columns of CellCounts
_EVENTS, _OUTCOMES = (*_LABELS, "selected"), ("positive", "negative", "correct")
_OTHER_COLUMNS = ("count", "rows")  # of tables that have a column for each rate
MOST_PAIRED = 200  # groups of which all pairs, 19,900 of them, can be features


@dataclass(frozen=True)
class Rate:
    """A share of predictions, taken in each group over the rows of an event.

    Parameters
    ----------
    name : str
    event : {"all", "positive", "negative", "selected"}
        The rows it is taken over: all, those with the positive or the negative label, or those that
        are predicted positive. A rate over the latter can be reported, but not constrained.
    outcome : {"positive", "negative", "correct"}
        What is counted: positive predictions, negative ones, or correct ones. Of the rows that are
        predicted positive, the correct ones.
    """

    name: str
    event: Event = "all"
    outcome: Outcome = "positive"

    def __post_init__(self) -> None:
        outcomes = ("correct",) if self.event == "selected" else _OUTCOMES
        for value, known in ((self.event, _EVENTS), (self.outcome, outcomes)):
            if value not in known:
                raise ValueError(
                    f"{value!r} is unknown in the rate {self.name!r}; use one of "
                    f"{listing(list(known))}"
                )

    @property
    def words(self) -> str:
        """The name as words."""
        return self.name.replace("_", " ")

    def counts(self, counts: CellCounts) -> tuple[Array, Array]:
        """The weight that is counted and the weight of the event, for each group.

        Parameters
        ----------
        counts : CellCounts

        Returns
        -------
        hits, rows : array of shape (n_groups,)
        """
        if self.event == "selected":
            return counts.predicted[:, 1], counts.predicted.sum(axis=1)
        columns = _LABELS[self.event]
        counted = {
            "positive": counts.predicted,
            "negative": counts.size - counts.predicted,
            "correct": counts.correct,
        }[self.outcome]
        return counted[:, columns].sum(axis=1), counts.size[:, columns].sum(axis=1)

    def values(self, counts: CellCounts) -> Array:
        """The rate of each group; NaN where a group has no rows in the event.

        Parameters
        ----------
        counts : CellCounts

        Returns
        -------
        array of shape (n_groups,)
        """
        hits, rows = self.counts(counts)
        rates: Array = np.full(rows.shape, np.nan)
        return np.divide(hits, rows, out=rates, where=rows > 0)

    @property
    def statement(self) -> tuple[str, str]:
        """Equal for rates of which one determines the other, being equal to it or 1 minus it.

        Among rows of one label, a prediction is correct if it is positive, or if it is negative.
        """
        correct = self.outcome == "correct" and self.event in ("all", "selected")
        return self.event, "correct" if correct else "positive"

    @property
    def constrainable(self) -> bool:
        """Whether the rows it is taken over do not depend on the predictions."""
        return self.event != "selected"

    def check_constrainable(self) -> None:
        """Raise ValueError for a rate that can be reported only."""
        if not self.constrainable:
            raise ValueError(
                f"the {self.words} is taken over the rows predicted positive, so it can be "
                "reported, but not constrained; constrain one of "
                f"{listing(statistic_names(constraints=True), 20)}"
            )

    def inside(self, cells: Cells) -> NDArray[np.bool_]:
        """Which cells belong to the event.

        Parameters
        ----------
        cells : Cells
            The groups and labels of the rows, cell by cell.

        Returns
        -------
        array of bool of shape (n_cells,)
        """
        self.check_constrainable()
        if self.event == "all":
            return np.ones(len(cells), dtype=bool)
        return cells.positive if self.event == "positive" else ~cells.positive

    def direction(self, cells: Cells) -> Array:
        """+1 for cells whose correct predictions raise the rate, -1 where they lower it.

        Parameters
        ----------
        cells : Cells
            The groups and labels of the rows, cell by cell.

        Returns
        -------
        array of shape (n_cells,)
        """
        if self.outcome == "correct":
            return np.ones(len(cells))
        positive = np.where(cells.positive, 1.0, -1.0)
        return positive if self.outcome == "positive" else -positive


@dataclass(frozen=True)
class Requirement:
    """A rate that must be alike in all groups, and how it is compared.

    Parameters
    ----------
    rate : Rate
    kind : {"difference", "ratio"}, default="difference"
        The gap is the largest minus the smallest rate, or 1 minus the smallest divided by the
        largest rate.
    """

    rate: Rate
    kind: Kind = "difference"

    def __post_init__(self) -> None:
        if self.kind not in ("difference", "ratio"):
            raise ValueError(f"kind={self.kind!r} is unknown; use 'difference' or 'ratio'")

    @property
    def words(self) -> str:
        """What is compared, as words."""
        return self.rate.words if self.kind == "difference" else f"{self.rate.words} ratio"

    def gap(self, rates: Array) -> Array:
        """The gap between groups, which the first axis of ``rates`` holds; NaN where a rate is.

        If every rate is 0, the ratio is 0/0: the gap is then 1.

        Parameters
        ----------
        rates : array of shape (n_groups, ...)

        Returns
        -------
        array
        """
        highest, lowest = rates.max(axis=0), rates.min(axis=0)
        if self.kind == "difference":
            return np.asarray(highest - lowest)
        ratio = np.where(np.isnan(highest), np.nan, 0.0)
        return np.asarray(1 - np.divide(lowest, highest, out=ratio, where=highest > 0))


@dataclass(frozen=True)
class Statistic:
    """A gap between groups: the largest gap of one rate, or of several.

    Parameters
    ----------
    name : str
        The name that is shown.
    rates : tuple of Rate
        The rates that are compared; the statistic is the largest of their gaps.
    words : str
        What it is, for a sentence: "the {words} was 0.03".
    aliases : tuple of str
        Other names that are accepted.
    kind : {"difference", "ratio"}, default="difference"
        The gap of a rate is the largest minus the smallest, or 1 minus the smallest divided by the
        largest, which is 1 if every group's rate is 0.
    """

    name: str
    rates: tuple[Rate, ...]
    words: str
    aliases: tuple[str, ...] = ()
    kind: Kind = "difference"

    @property
    def title(self) -> str:
        """The name as words."""
        return self.name.replace("_", " ")

    @property
    def by_label(self) -> bool:
        """Whether every rate is taken among rows of one label."""
        return all(rate.event in ("positive", "negative") for rate in self.rates)

    @property
    def constrainable(self) -> bool:
        """Whether a constraint can be built on it, or it can be reported only."""
        return all(rate.constrainable for rate in self.rates)

    @property
    def constraint(self) -> Constraint:
        """What an estimator takes as ``constraints`` to bound this statistic."""
        constraint = RateParity if self.kind == "difference" else RateRatio
        parts = [constraint(rate) for rate in self.rates]
        return parts[0] if len(parts) == 1 else AllOf(parts)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The rates, each with the way that it is compared."""
        return tuple(Requirement(rate, self.kind) for rate in self.rates)

    def value(self, counts: CellCounts) -> float:
        """The gap; NaN where a group has no rows for one of the rates.

        Parameters
        ----------
        counts : CellCounts

        Returns
        -------
        float
        """
        # Python's max would pass a NaN over or not, depending on where it stands.
        return float(np.max([each.gap(each.rate.values(counts)) for each in self.requirements]))


RATES: dict[str, Rate] = {
    rate.name: rate
    for rate in (
        Rate("selection_rate"),
        Rate("true_positive_rate", "positive"),
        Rate("false_positive_rate", "negative"),
        Rate("accuracy", outcome="correct"),
        Rate("precision", "selected", "correct"),
        Rate("false_negative_rate", "positive", "negative"),
    )
}
"""The rates that have a name, as a dict of `Rate`.

``"selection_rate"``, ``"true_positive_rate"``, ``"false_positive_rate"``, ``"accuracy"``,
``"precision"``, ``"false_negative_rate"``, and those of statistics that were added with
`register_statistic`.
"""

STATISTICS: dict[str, Statistic] = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            "demographic_parity",
            (RATES["selection_rate"],),
            "gap of the selection rates (demographic parity)",
        ),
        Statistic(
            "equal_opportunity",
            (RATES["true_positive_rate"],),
            "gap of the true positive rates (equal opportunity)",
            ("true_positive_rate_parity", "false_negative_rate_parity"),
        ),
        Statistic(
            "false_positive_rate_parity",
            (RATES["false_positive_rate"],),
            "gap of the false positive rates",
        ),
        Statistic(
            "equalized_odds",
            (RATES["true_positive_rate"], RATES["false_positive_rate"]),
            "larger gap of true and false positive rates (equalized odds)",
        ),
        Statistic(
            "accuracy_parity",
            (RATES["accuracy"],),
            "gap of the accuracies",
            ("accuracy",),
        ),
        Statistic(
            "selection_ratio",
            (RATES["selection_rate"],),
            "shortfall of the selection ratio from 1 (four-fifths rule)",
            kind="ratio",
        ),
        Statistic(
            "predictive_parity",
            (RATES["precision"],),
            "gap of the precisions (predictive parity)",
        ),
    )
}
"""The statistics that have a name, as a dict of `Statistic`.

``"demographic_parity"``, ``"equal_opportunity"``, ``"false_positive_rate_parity"``,
``"equalized_odds"``, ``"accuracy_parity"``, ``"selection_ratio"``, ``"predictive_parity"``, and
those that were added with `register_statistic`. `find_statistic` knows their aliases too.
"""


def named(words: str) -> str:
    """What is compared, in quotes unless it is a rate or a ratio with a registered name.

    The words of a constraint of one's own, also of one in a model file, may say anything.
    """
    kinds: tuple[Kind, ...] = ("difference", "ratio")
    known = {Requirement(rate, kind).words for rate in RATES.values() for kind in kinds}
    return words if words in known else '"' + words.replace('"', "'") + '"'


def register_statistic(statistic: Statistic) -> None:
    """Make a statistic and its rates available by name, everywhere that names are accepted.

    Registering the same statistic again changes nothing.

    Parameters
    ----------
    statistic : Statistic
        With at least one rate. Its names must not belong to another statistic, nor those of its
        rates to other rates.
    """
    _check_names(statistic)
    _check_rates(statistic)
    RATES.update({rate.name: rate for rate in statistic.rates})
    STATISTICS[statistic.name] = statistic


def _check_names(statistic: Statistic) -> None:
    for name in (statistic.name, *statistic.aliases):
        if not name.strip():
            raise ValueError(f"a name or alias of {statistic} is empty; give it a name")
        for other in STATISTICS.values():
            if name in (other.name, *other.aliases) and other != statistic:
                raise ValueError(
                    f"the name {name!r} is taken by the statistic {other.name!r}, which is "
                    "different; choose another name"
                )


def _check_rates(statistic: Statistic) -> None:
    if not statistic.rates:
        raise ValueError(f"the statistic {statistic.name!r} compares no rates; give at least one")
    known = dict(RATES)
    for rate in (each.rate for each in statistic.requirements):
        if not rate.name.strip() or rate.name in _OTHER_COLUMNS:
            raise ValueError(
                f"a rate cannot be named {rate.name!r}, since it is a column of tables that also "
                f"have {listing(_OTHER_COLUMNS)}; choose another name"
            )
        if known.setdefault(rate.name, rate) != rate:
            raise ValueError(
                f"the rate {rate.name!r} is known with another meaning, {known[rate.name]}; "
                "choose another name"
            )


def statistic_names(*, constraints: bool = False) -> list[str]:
    """Every accepted name, aliases included; of those that can be constrained, if wanted."""
    known = [one for one in STATISTICS.values() if one.constrainable or not constraints]
    return [name for one in known for name in (one.name, *one.aliases)]


def find_statistic(name: Any, what: str = "statistic") -> Statistic:
    """The statistic of that name or alias.

    Parameters
    ----------
    name : str
        A key of `STATISTICS` or an alias of one of them.
    what : str, default="statistic"
        What to call the parameter in the error.

    Returns
    -------
    Statistic

    Raises
    ------
    ValueError
        If the name is unknown; the message lists those that are known.

    Examples
    --------
    >>> from fairproj.constraints import find_statistic
    >>> find_statistic("true_positive_rate_parity").name
    'equal_opportunity'
    """
    for statistic in STATISTICS.values():
        if isinstance(name, str) and name in (statistic.name, *statistic.aliases):
            return statistic
    names = statistic_names(constraints=what == "constraints")
    raise ValueError(f"{what}={name!r} is unknown; use one of {listing(names, 20)}")


@dataclass(frozen=True)
class Blocks:
    """Cells whose masses must be alike, for many groups: what the features of all pairs say.

    Attributes
    ----------
    block : array of shape (n_cells,)
        The block of each cell; ``len(event)`` for a cell that is in none.
    event : array of shape (n_blocks,)
        The event of each block, 0, 1, ... Masses of blocks of one event are compared.
    names : list of str
        What to call each block.
    """

    block: Codes
    event: Codes
    names: list[str]


class Constraint(ABC):
    """Base of all constraints; subclass it to write your own (see "Add a constraint")."""

    @abstractmethod
    def features(self, cells: Cells) -> Array:
        """g as a matrix of shape (n_cells, n_constraints).

        Parameters
        ----------
        cells : Cells
            The groups and labels of the rows, cell by cell.

        Returns
        -------
        array of shape (n_cells, n_constraints)
        """

    @abstractmethod
    def names(self, cells: Cells) -> list[str]:
        """What to call each column of `features`.

        Parameters
        ----------
        cells : Cells
            The groups and labels of the rows, cell by cell.

        Returns
        -------
        list of str
        """

    def touched(self, cells: Cells) -> NDArray[np.bool_]:
        """Cells that have a feature other than 0.

        Parameters
        ----------
        cells : Cells
            The groups and labels of the rows, cell by cell.

        Returns
        -------
        array of bool of shape (n_cells,)
        """
        touched: NDArray[np.bool_] = (self.features(cells) != 0).any(axis=1)
        return touched

    def needed(self, cells: Cells) -> NDArray[np.bool_]:
        """Cells that must not be empty; by default all that a feature touches.

        Parameters
        ----------
        cells : Cells
            The groups and labels of the rows, cell by cell.

        Returns
        -------
        array of bool of shape (n_cells,)
        """
        return self.touched(cells)

    def blocks(self, cells: Cells) -> Blocks | None:
        """The same as `features`, where these are all pairs of disjoint sets of cells.

        Parameters
        ----------
        cells : Cells
            The groups and labels of the rows, cell by cell.

        Returns
        -------
        Blocks or None
            None where `features` is the only form.
        """
        return None

    def requirements(self) -> tuple[Requirement, ...]:
        """The rates of predictions that must be alike, for `FairBoostClassifier`."""
        raise ValueError(
            "FairBoostClassifier compares the groups' rates of predictions, and "
            f"{type(self).__name__} names none; use one of "
            f"{listing(statistic_names(constraints=True), 20)}, or FairProjClassifier"
        )


@dataclass(frozen=True)
class _OneRate(Constraint):
    """A constraint on one rate of the groups."""

    rate: Any
    kind: ClassVar[Kind]

    def __post_init__(self) -> None:
        rate = RATES.get(self.rate) if isinstance(self.rate, str) else self.rate
        if not isinstance(rate, Rate):
            raise ValueError(
                f"rate={self.rate!r} is unknown; use one of "
                f"{listing([name for name, one in RATES.items() if one.constrainable])}, or a Rate"
            )
        rate.check_constrainable()
        object.__setattr__(self, "rate", rate)  # frozen, but a name becomes what it names

    def needed(self, cells: Cells) -> NDArray[np.bool_]:
        if self.rate.event == "all" or len(cells.group_values) < 2:
            return np.zeros(len(cells), dtype=bool)  # every group has rows, of some label
        inside: NDArray[np.bool_] = self.rate.inside(cells)
        return inside

    def requirements(self) -> tuple[Requirement, ...]:
        return (Requirement(self.rate, self.kind),)


@dataclass(frozen=True)
class RateParity(_OneRate):
    """The groups' rates are alike, up to a slack.

    For `FairProjClassifier`, which constrains training weights: every pair of groups holds the same
    mass within the rate's event,

        g_ab(i) = [i in event] ([a_i = b] - [a_i = a]),   <w, g_ab> = w(b, event) - w(a, event).

    Parameters
    ----------
    rate : Rate or str
        A rate, or the name of one in `RATES`.
    """

    kind = "difference"

    def features(self, cells: Cells) -> Array:
        n_groups = len(cells.group_values)
        if n_groups > MOST_PAIRED:
            raise ValueError(
                f"sensitive_features has {n_groups} groups; every pair of them would be a "
                f"constraint, for which the most is {MOST_PAIRED}. Constraints that do not overlap "
                "take more, such as 'equalized_odds'; else merge groups, or use FairBoostClassifier"
            )
        member = cells.group[:, None] == np.arange(n_groups)
        member = 1.0 * (member & self.rate.inside(cells)[:, None])
        first, second = _pairs(cells)
        return np.asarray(member[:, second] - member[:, first])

    def names(self, cells: Cells) -> list[str]:
        groups, where = cells.group_names, self._where(cells)
        first, second = (side.tolist() for side in _pairs(cells))
        return [f"{groups[b]} - {groups[a]}{where}" for a, b in zip(first, second, strict=True)]

    def _where(self, cells: Cells) -> str:
        event = self.rate.event
        label = cells.classes[cells.positive_class ^ (event == "negative")]
        return "" if event == "all" else f" | {label!s}"

    def touched(self, cells: Cells) -> NDArray[np.bool_]:
        return np.asarray(self.rate.inside(cells) & (len(cells.group_values) > 1))

    def blocks(self, cells: Cells) -> Blocks | None:
        """A block for each group: its cells within the event."""
        n_groups, where = len(cells.group_values), self._where(cells)
        block = np.where(self.rate.inside(cells), cells.group, n_groups).astype(np.intp)
        names = [f"2 ({name} - middle){where}" for name in cells.group_names]
        return Blocks(block, np.zeros(n_groups, dtype=np.intp), names)


@dataclass(frozen=True)
class RateRatio(_OneRate):
    """The smallest of the groups' rates is at least a share of the largest.

    For `FairBoostClassifier` only: with ``max_gap=0.2`` the ratio is at least 0.8.

    Parameters
    ----------
    rate : Rate or str
        A rate, or the name of one in `RATES`.
    """

    kind = "ratio"

    def features(self, cells: Cells) -> Array:
        raise self._refusal()

    def names(self, cells: Cells) -> list[str]:
        raise self._refusal()

    def _refusal(self) -> ValueError:
        return ValueError(
            "FairProjClassifier balances training weights and cannot limit the "
            f"{self.requirements()[0].words} of predictions; use a difference instead, such as "
            "'demographic_parity', or FairBoostClassifier"
        )


def _pairs(cells: Cells) -> tuple[Codes, Codes]:
    """The first and the second group of every pair."""
    first, second = np.triu_indices(len(cells.group_values), 1)
    return first, second


@dataclass(frozen=True)
class AllOf(Constraint):
    """Several constraints at once.

    Parameters
    ----------
    parts : sequence of Constraint or str
        Constraints, or names of them.
    """

    parts: Sequence[Any]

    def __post_init__(self) -> None:
        parts = tuple(
            find_statistic(part, "constraints").constraint if isinstance(part, str) else part
            for part in self.parts
        )
        if not parts or not all(isinstance(part, Constraint) for part in parts):
            raise TypeError(f"AllOf takes constraints or their names, got {self.parts!r}")
        object.__setattr__(self, "parts", parts)  # frozen, but names become what they name

    def features(self, cells: Cells) -> Array:
        return np.hstack([part.features(cells) for part in self.parts])

    def names(self, cells: Cells) -> list[str]:
        return [name for part in self.parts for name in part.names(cells)]

    def needed(self, cells: Cells) -> NDArray[np.bool_]:
        needed: NDArray[np.bool_] = np.stack([part.needed(cells) for part in self.parts])
        return np.asarray(needed.any(axis=0))

    def touched(self, cells: Cells) -> NDArray[np.bool_]:
        return np.asarray(np.stack([part.touched(cells) for part in self.parts]).any(axis=0))

    def blocks(self, cells: Cells) -> Blocks | None:
        """Those of all parts, if no cell is in two of them."""
        all_blocks = [part.blocks(cells) for part in self.parts]
        parts = [each for each in all_blocks if each is not None]
        inside = [each.block < len(each.event) for each in parts]
        if len(parts) < len(all_blocks) or np.sum(inside, axis=0).max(initial=0) > 1:
            return None
        block = np.full(len(cells), sum(len(each.event) for each in parts), dtype=np.intp)
        n_blocks, events, n_events = 0, [], 0
        for each, mine in zip(parts, inside, strict=True):
            block[mine] = each.block[mine] + n_blocks
            events.append(each.event + n_events)
            n_blocks, n_events = n_blocks + len(each.event), int(events[-1].max(initial=-1)) + 1
        names = [name for each in parts for name in each.names]
        return Blocks(block, np.concatenate(events), names)

    def requirements(self) -> tuple[Requirement, ...]:
        return tuple(dict.fromkeys(each for part in self.parts for each in part.requirements()))


@dataclass(frozen=True)
class FunctionConstraint(Constraint):
    """A constraint of your own: any bounded function of group and label.

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
                value_of_cell = np.atleast_1d(np.asarray(self.function(value, name), dtype=float))
                if not np.isfinite(value_of_cell).all():
                    raise ValueError(f"it returned {value_of_cell.tolist()}")
                values.append(value_of_cell)
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
                f"titles has {counted(len(titles), 'entry', 'entries')}, the function returns "
                f"{counted(n_constraints, 'number')}"
            )
        return titles


demographic_parity = STATISTICS["demographic_parity"].constraint
"""The groups have the same selection rate, P(positive prediction | group).

The label plays no part. `FairProjClassifier` gives every group the same total weight.
"""
equal_opportunity = STATISTICS["equal_opportunity"].constraint
"""The groups have the same true positive rate, P(positive prediction | positive, group).

Also called ``"true_positive_rate_parity"``. `FairProjClassifier` gives the positive rows of every
group the same total weight.
"""
false_positive_rate_parity = STATISTICS["false_positive_rate_parity"].constraint
"""The groups have the same false positive rate, P(positive prediction | negative, group).

`FairProjClassifier` gives the negative rows of every group the same total weight.
"""
equalized_odds = STATISTICS["equalized_odds"].constraint
"""The groups have the same true positive rate and the same false positive rate.

It is `equal_opportunity` and `false_positive_rate_parity` at once.
"""
accuracy_parity = STATISTICS["accuracy_parity"].constraint
"""The groups have the same accuracy, P(correct prediction | group).

`FairProjClassifier` gives every group the same total weight.
"""
selection_ratio = STATISTICS["selection_ratio"].constraint
"""The smallest selection rate of a group is at least a share of the largest (four-fifths rule).

The gap is 1 minus that ratio, so ``max_gap=0.2`` asks for a ratio of at least 0.8. For
`FairBoostClassifier` only.
"""


def find_constraint(constraints: Any) -> Any:
    """The ``constraints`` parameter with names resolved; objects, arrays and None stay.

    A list or tuple of names and constraints is all of them at once.
    """
    if isinstance(constraints, str):
        return _named(constraints)
    if _is_several(constraints):
        return AllOf([_named(part) for part in constraints])
    return constraints


def _is_several(constraints: Any) -> bool:
    """Whether it is a list of constraints, and not an array of features."""
    return isinstance(constraints, list | tuple) and any(
        isinstance(part, str | Constraint) for part in constraints
    )


def _named(constraint: Any) -> Constraint:
    if isinstance(constraint, Constraint):
        return constraint
    try:
        statistic = find_statistic(constraint, "constraints")
    except ValueError as error:
        raise ValueError(f"{error}, a Constraint object, or None for no constraint") from None
    return statistic.constraint


def _requirements_of(constraints: Any) -> tuple[Requirement, ...]:
    """The distinct requirements of a ``constraints`` parameter, in order."""
    constraint = find_constraint(constraints)
    if constraint is None:
        return ()
    if not isinstance(constraint, Constraint):
        raise ValueError(
            "FairBoostClassifier needs a constraint by name or object, or a list of them, got "
            f"{type(constraint).__name__}; use one of "
            f"{listing(statistic_names(constraints=True), 20)}"
        )
    return constraint.requirements()


def limits_of(constraints: Any, max_gap: Any) -> dict[Requirement, float]:
    """The largest gap allowed for each requirement.

    Parameters
    ----------
    constraints : str, Constraint, sequence of them or None
    max_gap : float or sequence
        One number in [0, 1] for all. Or, for a sequence of constraints, one entry for each: a
        number, or one number for each rate of that constraint. For a single constraint, one number
        for each of its rates.

    Returns
    -------
    dict of Requirement to float
        A requirement that several constraints share has the smallest of its gaps.
    """
    requirements = _requirements_of(constraints)
    entries = _entries(max_gap)
    if not _is_several(constraints) or entries is None:
        return _limits(requirements, max_gap, "max_gap")
    if len(entries) != len(constraints):
        raise ValueError(
            f"max_gap has {counted(len(entries), 'entry', 'entries')} and constraints has "
            f"{len(constraints)}; give one "
            "number, or one entry for each constraint"
        )
    limits = dict.fromkeys(requirements, 1.0)
    for position, (part, entry) in enumerate(zip(constraints, entries, strict=True)):
        of_part = _limits(_requirements_of(part), entry, f"max_gap[{position}]")
        limits.update({each: min(limit, limits[each]) for each, limit in of_part.items()})
    return limits


def _entries(max_gap: Any) -> list[Any] | None:
    """The entries of a sequence; None for a number, and for text, which is refused later."""
    try:
        return None if isinstance(max_gap, str) else list(max_gap)
    except TypeError:
        return None


def _limits(
    requirements: tuple[Requirement, ...], max_gap: Any, parameter: str
) -> dict[Requirement, float]:
    names = [each.words for each in requirements]
    gaps = check_slack(max_gap, names, parameter, largest=1.0)
    return dict(zip(requirements, gaps.tolist(), strict=True))
