"""Whether the groups have enough rows to confirm a gap on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairproj.constraints import Rate, Requirement, Statistic, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import (
    Groups,
    check_aligned,
    check_groups,
    check_labels,
    check_pos_label,
)
from fairproj.data.types import Codes
from fairproj.inference import largest_confirmable_gap, rows_to_confirm, smallest_max_gap

POWER = 0.8
_PRECISION = 1e-4  # of the smallest gap that rows confirm


@dataclass(frozen=True)
class RateSizes:
    """The rows over which a rate is taken, and what they confirm with the chance `POWER`.

    Attributes
    ----------
    rate : Rate
    max_gap : float
        The gap to confirm.
    rows, held_out : array of int
        The rows of each group, and those of them that are held out.
    needed : int or None
        The rows that each group needs if all have the same size; None for a gap of 0.
    confirmable : float or None
        The largest true gap at which the held-out rows confirm ``max_gap``; None if there is none.
    smallest : float or None
        The smallest ``max_gap`` that they confirm if there is no true gap; None if there is none,
        or if they confirm ``max_gap``. Other rates than assumed, or luck, may confirm a smaller
        one.
    assumed : float
        The rate in all groups, which is not known before training.
    """

    rate: Rate
    max_gap: float
    rows: Codes
    held_out: Codes
    needed: int | None
    confirmable: float | None
    smallest: float | None
    assumed: float


def confirmable_gaps(
    y: Any,
    sensitive_features: Any,
    statistic: str | Statistic = "equal_opportunity",
    max_gap: float = 0.05,
    *,
    pos_label: Any = None,
    test_size: float = 0.25,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """The rows of each group, and the rows needed to confirm a gap on held-out ones.

    The gap is confirmed if the upper end of its interval in a `FairnessReport` is at most
    ``max_gap``. Numbers of rows are such that this has a chance of 0.8 if there is no true gap. The
    rate is not known before training: selection rates are taken to be the share of positive labels,
    and others 0.5, which needs the most rows.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
    statistic : str or Statistic, default="equal_opportunity"
        The gap; a difference of rates, not a ratio.
    max_gap : float, default=0.05
    pos_label : label, optional
        The positive label; by default the larger in sort order.
    test_size : float, default=0.25
        The share of the rows that is held out; 1 if all rows are new to the model.
    confidence : float, default=0.95
        Of the report's intervals.

    Returns
    -------
    DataFrame
        A row for each rate and group: ``rate``, ``group``, ``rows``, ``held_out``, ``needed`` (in
        each group, if all have the same size), ``confirmable_gap`` (the largest true gap at which
        the held-out rows of all groups confirm ``max_gap``; NaN if there is none) and
        ``smallest_max_gap`` (the smallest ``max_gap`` that they confirm with a chance of 0.8 if
        there is no true gap; NaN if it is ``max_gap`` or less). An audit may confirm a smaller one.

    Examples
    --------
    >>> from fairproj.datasets import load_adult
    >>> from fairproj.inspection import confirmable_gaps
    >>> data = load_adult()
    >>> sizes = confirmable_gaps(data.target, data.sensitive_features)
    >>> sizes[["group", "rows", "held_out"]].values.tolist()
    [['Female', 1769, 442], ['Male', 9918, 2480]]
    """
    check_aligned(y=y, sensitive_features=sensitive_features)
    signs, classes = check_labels(y)
    positive = (signs > 0) == bool(check_pos_label(pos_label, classes))
    groups = check_groups(sensitive_features, len(signs), beside="y")
    found = sizes_of(positive, groups, statistic, max_gap, test_size, confidence)
    if not found:
        raise ValueError(
            f"{statistic} is no difference of rates whose rows are known before training; use "
            "another statistic, such as 'equal_opportunity'"
        )
    tables = [
        pd.DataFrame(
            {
                "rate": each.rate.name,
                "group": groups.names,
                "rows": each.rows,
                "held_out": each.held_out,
                "needed": np.nan if each.needed is None else each.needed,
                "confirmable_gap": np.nan if each.confirmable is None else each.confirmable,
                "smallest_max_gap": np.nan if each.smallest is None else each.smallest,
            }
        )
        for each in found
    ]
    return pd.concat(tables, ignore_index=True)


def sizes_of(
    positive: Any,
    groups: Groups,
    statistic: str | Statistic,
    max_gap: float,
    test_size: float,
    confidence: float = 0.95,
    held_out: Any = None,
) -> list[RateSizes]:
    """The same for each rate of a statistic.

    Rates that are compared by ratio are left out, and rates among the rows that are predicted
    positive, which are not known yet. Where it is known which rows are held out, ``held_out`` is an
    array of bool, and these are counted; otherwise each group has the share ``test_size`` of them.
    """
    if isinstance(statistic, str):
        statistic = find_statistic(statistic)
    counts = _label_counts(np.asarray(positive), groups)
    kept = replace(counts, size=test_size * counts.size)
    if held_out is not None:
        part = Groups(groups.codes[held_out], groups.values)
        kept = _label_counts(np.asarray(positive)[held_out], part)
    return list(_rate_sizes(counts, kept, statistic, max_gap, confidence))


def _label_counts(positive: NDArray[np.bool_], groups: Groups) -> CellCounts:
    """Rows by group and label; predictions are not known before training."""
    return CellCounts.of_rows(positive, positive, groups)


def is_sized(requirement: Requirement) -> bool:
    """Whether the rows that a requirement needs are known before training."""
    return requirement.kind == "difference" and requirement.rate.constrainable


def _rate_sizes(
    counts: CellCounts, kept: CellCounts, statistic: Statistic, max_gap: float, confidence: float
) -> Iterator[RateSizes]:
    level = {"confidence": 1 - (1 - confidence) / 2, "power": POWER}
    share = float(counts.size[:, 1].sum() / counts.size.sum())
    for requirement in statistic.requirements:
        if not is_sized(requirement):
            continue
        rate = requirement.rate
        rows = rate.counts(counts)[1].astype(np.intp)
        held_out = np.round(rate.counts(kept)[1]).astype(np.intp)
        assumed = share if rate.name == "selection_rate" else 0.5
        confirmable = largest_confirmable_gap(held_out, max_gap, assumed, **level)
        needed = _needed(held_out, max_gap, assumed, confirmable is not None, level)
        smallest = None
        if confirmable is None:
            smallest = smallest_max_gap(held_out, assumed, **level)
        if smallest is not None:
            smallest = max(smallest, max_gap + _PRECISION)
        yield RateSizes(rate, max_gap, rows, held_out, needed, confirmable, smallest, assumed)


def _needed(
    held_out: Codes, max_gap: float, rate: float, confirmed: bool, level: dict[str, float]
) -> int | None:
    """The rows that each group needs, for the same rate, groups and power as is confirmed.

    The chance to confirm rises with the rows up to the steps of a discrete distribution. Within
    them, the number agrees with what the held-out rows confirm: it is above the smallest group
    where they do not confirm ``max_gap``, and no more than the largest group where they do.
    """
    if not max_gap:
        return None
    needed = rows_to_confirm(max_gap, rate, n_groups=len(held_out), **level)
    if confirmed:
        return min(needed, int(held_out.max()))
    return max(needed, int(held_out.min()) + 1)
