"""The gap in each part of the rows, such as months or regions, and alarms.

Parts share no rows, so that, given their sizes, what is counted in one is independent of the
others. Of m parts each is judged at the confidence ``confidence^(1 / m)`` (Sidak): it raises an
alarm if a lower bound of its gap at that confidence, one-sided, exceeds the largest gap allowed,
and it is within the limit if an upper bound is. A part can be judged wrongly in one of these two
ways only, since its true gap is either above the limit or not. Therefore all judgements are right
together with at least ``confidence``, and so is the absence of any false alarm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from fairproj.constraints import Statistic, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import check_aligned, check_groups
from fairproj.data.periods import split_by
from fairproj.inference.intervals import check_confidence
from fairproj.inference.report import (
    Bounds,
    gap_row,
    lower_bound,
    upper_bound,
    with_interval,
)
from fairproj.inference.simultaneous import Errors, sidak
from fairproj.metrics.gaps import positive_masks

_MOST_NAMES = 12  # of values in a sentence


class Judgement(StrEnum):
    """What the rows of a part show about its gap, with all parts taken into account."""

    ALARM = "alarm"
    WITHIN = "within"
    WITHIN_WHERE_COMPARED = "within where compared"
    UNDECIDED = "undecided"
    TOO_FEW_ROWS = "too few rows"


@dataclass(frozen=True)
class GapsBy:
    """The gap between groups in each part of the rows, with exact intervals and alarms.

    Made by `gaps_by`, or from counts by `from_counts`.

    Attributes
    ----------
    table : DataFrame
        One row for each part: ``value``, ``rows``, ``n_smallest`` (rows of the smallest group that
        the gap rests on), ``estimate``, its interval ``low``, ``high``, and the groups ``highest``
        and ``lowest``; and ``not_compared``, the groups that have no rows in the part. With
        ``max_gap`` also ``corrected_low`` and ``corrected_high``, the bounds that are compared with
        it, and ``judgement``: "alarm" if the gap is above ``max_gap``, "within" if it is not,
        "within where compared" if it is not but some groups have no rows, "undecided" if the rows
        do not tell, and "too few rows" if so few would not tell whatever was predicted for them.
    statistic : str
        The name of the gap.
    max_gap : float or None
        The largest gap allowed.
    confidence : float
        Of each interval by itself, or of all intervals together; and of all judgements together.
    simultaneous : bool
        Whether all intervals hold together.
    """

    table: pd.DataFrame
    statistic: str
    max_gap: float | None
    confidence: float
    simultaneous: bool = False

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, CellCounts],
        group_names: list[str],
        *,
        statistic: str = "equal_opportunity",
        max_gap: float | None = None,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> GapsBy:
        """From the counts of each part; a group without rows in a part is not compared there.

        Parameters
        ----------
        counts : mapping of str to CellCounts
            Of each part by its name, with one row for each group.
        group_names : list of str
        statistic, max_gap, confidence, simultaneous : as for `gaps_by`

        Returns
        -------
        GapsBy
        """
        check_confidence(confidence)
        if max_gap is not None and not 0 <= max_gap <= 1:
            raise ValueError(f"max_gap must lie between 0 and 1, got {max_gap!r}")
        if not counts:
            raise ValueError("counts has no parts; at least one is required")
        compared = find_statistic(statistic)
        error = sidak(1 - confidence, len(counts))
        interval_error = error if simultaneous else 1 - confidence
        rows = [
            {"value": value, **_gap(compared, part, group_names, interval_error)}
            | ({} if max_gap is None else _judge(compared, part, error, max_gap))
            for value, part in counts.items()
        ]
        return cls(pd.DataFrame(rows), compared.name, max_gap, confidence, simultaneous)

    @property
    def alarms(self) -> list[str]:
        """The parts whose gap is above ``max_gap``."""
        return self._judged(Judgement.ALARM)

    @property
    def corrected_confidence(self) -> float:
        """At which each part is judged."""
        return 1 - sidak(1 - self.confidence, len(self.table))

    def _judged(self, judgement: Judgement) -> list[str]:
        if self.max_gap is None:
            return []
        chosen: list[str] = self.table.loc[self.table["judgement"] == judgement, "value"].tolist()
        return chosen

    def sentences(self) -> list[str]:
        """What the table says, and how parts were judged."""
        texts = [*self._not_compared(), self._held()]
        if self.max_gap is not None:
            texts = [self._alarmed(), *self._open(), self._corrected(), *texts]
        return texts

    def _not_compared(self) -> list[str]:
        missing: dict[str, list[str]] = {}
        for value, names in zip(self.table["value"], self.table["not_compared"], strict=True):
            for name in names:
                missing.setdefault(name, []).append(value)
        if not missing:
            return []
        texts = [f"{name} in {_some(values)}" for name, values in missing.items()]
        return [f"Not compared, because the group has no rows there: {_some(texts, '; ')}."]

    def _held(self) -> str:
        how = "together" if self.simultaneous else "by itself"
        subject = "All intervals hold" if self.simultaneous else "Each interval holds"
        more = "" if self.simultaneous else "; looking at many of them, some will be wrong"
        return f"{subject} with {_percent(self.confidence)} confidence {how}{more}."

    def _alarmed(self) -> str:
        alarms = self.alarms
        if not alarms:
            return f"No alarm: no gap is shown to be above {self.max_gap:g}."
        return f"Alarm, the gap is above {self.max_gap:g}: {_some(alarms)}."

    def _open(self) -> list[str]:
        undecided = self._judged(Judgement.UNDECIDED)
        few = self._judged(Judgement.TOO_FEW_ROWS)
        texts = []
        if undecided:
            texts.append(
                f"Undecided, the rows neither show a gap above {self.max_gap:g} nor rule it out: "
                f"{_some(undecided)}."
            )
        if few:
            texts.append(f"Too few rows to decide, whatever was predicted: {_some(few)}.")
        return texts

    def _corrected(self) -> str:
        m = len(self.table)
        if m == 1:
            return (
                f"One value was looked at: a false alarm has a chance of at most "
                f"{_percent(1 - self.confidence)}."
            )
        return (
            f"{m} values were looked at, so each is judged at {_percent(self.corrected_confidence)}"
            f" confidence, one-sided (Sidak's correction for {m} independent parts of the rows): "
            f"the chance of any false alarm is at most {_percent(1 - self.confidence)}. The "
            "corrected bounds are one-sided; the intervals are two-sided and not corrected for "
            "the number of values, so either may be wider."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists and numbers, None for what is not known."""
        plain = self.table.astype(object).where(self.table.notna(), None)
        return {
            "metric": self.statistic,
            "max_gap": self.max_gap,
            "confidence": self.confidence,
            "simultaneous": self.simultaneous,
            "corrected_confidence": None if self.max_gap is None else self.corrected_confidence,
            "values": plain.to_dict("records"),
            "alarms": self.alarms,
            "summary": self.sentences(),
        }

    def __str__(self) -> str:
        shown = pd.DataFrame(
            {
                "rows": self.table["rows"].to_numpy(),
                self.statistic: [with_interval(row) for row in self.table.itertuples()],
            },
            index=self.table["value"].tolist(),
        )
        if self.max_gap is not None:
            shown["judgement"] = self.table["judgement"].to_numpy()
        return "\n".join([shown.to_string(), *self.sentences()])


def gaps_by(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    by: Any,
    period: str | None = None,
    statistic: str = "equal_opportunity",
    max_gap: float | None = None,
    confidence: float = 0.95,
    simultaneous: bool = False,
    pos_label: Any = None,
) -> GapsBy:
    """The gap between groups in each part of the rows, such as months or regions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Labels and predictions, of rows that the model has not seen.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    by : array-like of shape (n_rows,)
        What the rows are divided by: dates, or at most 400 different values of any kind. Missing
        values are a part of their own.
    period : {"day", "month", "quarter", "year"}, optional
        What dates are joined to, by their own clock; by default months. Texts such as 2026-03-31
        and 2026-03-31T12:00 are dates, if all values are.
    statistic : str, default="equal_opportunity"
        A name of `fairproj.constraints.STATISTICS` or an alias.
    max_gap : float, optional
        The largest gap allowed. A part raises an alarm if a lower bound of its gap exceeds it, at a
        confidence that takes into account how many parts there are.
    confidence : float, default=0.95
        Of each interval; and that there is no false alarm at all.
    simultaneous : bool, default=False
        Whether all intervals hold together with that confidence.
    pos_label : label, optional
        The positive label; by default the larger in sort order.

    Returns
    -------
    GapsBy

    Examples
    --------
    >>> import numpy as np
    >>> from fairproj.inference import gaps_by
    >>> month = np.repeat(["2026-01-31", "2026-02-28"], 400)
    >>> sex = np.tile(["f", "m"], 400)
    >>> y = np.ones(800, dtype=int)
    >>> predicted = np.where((month == "2026-02-28") & (sex == "f"), np.arange(800) % 4 < 2, 1)
    >>> found = gaps_by(
    ...     y, predicted, sensitive_features=sex, by=month, max_gap=0.2, pos_label=1)
    >>> found.alarms
    ['2026-02']
    """
    check_aligned(y_true=y_true, y_pred=y_pred, sensitive_features=sensitive_features, by=by)
    actual, predicted = positive_masks(y_true, y_pred, pos_label)
    groups = check_groups(sensitive_features, len(actual), beside="y_true")
    codes, names = split_by(by, len(actual), period)
    shape = (len(names), len(groups.values), 2, 2)
    place = ((codes * shape[1] + groups.codes) * 2 + actual) * 2 + predicted
    counted = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(float)
    return GapsBy.from_counts(
        {name: counts_of(part) for name, part in zip(names, counted, strict=True)},
        groups.names,
        statistic=statistic,
        max_gap=max_gap,
        confidence=confidence,
        simultaneous=simultaneous,
    )


def counts_of(cells: Any) -> CellCounts:
    """From numbers of rows by group, label and prediction."""
    return CellCounts(cells.sum(axis=2), cells[:, :, 1])


def _present(counts: CellCounts) -> tuple[CellCounts, Any]:
    """Without groups that have no rows, and which are left."""
    kept = counts.size.sum(axis=1) > 0
    return CellCounts(counts.size[kept], counts.predicted[kept]), kept


def _gap(statistic: Statistic, part: CellCounts, names: list[str], error: float) -> dict[str, Any]:
    """The row of one part; nothing is known where there is one group only."""
    counts, kept = _present(part)
    there = [name for name, has_rows in zip(names, kept, strict=True) if has_rows]
    absent = [name for name, has_rows in zip(names, kept, strict=True) if not has_rows]
    rows = {"rows": int(counts.size.sum())}
    if len(there) < 2:
        unknown = {"estimate": np.nan, "low": 0.0, "high": 1.0}
        groups = {"highest": "unknown", "lowest": "unknown", "not_compared": absent}
        return rows | {"n_smallest": 0, **unknown, **groups}
    row = gap_row(statistic, counts, there, Bounds(counts, Errors.alone(1 - error)))
    shown = ("n_smallest", "estimate", "low", "high", "highest", "lowest")
    return rows | {name: row[name] for name in shown} | {"not_compared": absent}


def _judge(statistic: Statistic, part: CellCounts, error: float, max_gap: float) -> dict[str, Any]:
    """One-sided bounds, each wrong with at most ``error``, and what follows from them."""
    counts, kept = _present(part)
    if kept.sum() < 2:
        return _judgement(0.0, 1.0, Judgement.TOO_FEW_ROWS)
    seen = [each.rate.counts(counts) for each in statistic.requirements]
    low, high = _one_sided(statistic, seen, error)
    if low > max_gap:
        return _judgement(low, high, Judgement.ALARM)
    if high <= max_gap:
        all_there = Judgement.WITHIN if kept.all() else Judgement.WITHIN_WHERE_COMPARED
        return _judgement(low, high, all_there)
    decidable = _decidable(statistic, [rows for _, rows in seen], error, max_gap)
    return _judgement(low, high, Judgement.UNDECIDED if decidable else Judgement.TOO_FEW_ROWS)


def _judgement(low: float, high: float, judgement: Judgement) -> dict[str, Any]:
    return {"corrected_low": low, "corrected_high": high, "judgement": str(judgement)}


def _one_sided(statistic: Statistic, seen: list[Any], error: float) -> tuple[float, float]:
    """Bounds of the largest of one or more gaps, from the hits and rows of each rate."""
    kind = statistic.kind
    low = max(lower_bound(kind, hits, rows, error / len(seen)) for hits, rows in seen)
    return low, max(upper_bound(kind, hits, rows, 1 - error) for hits, rows in seen)


def _decidable(statistic: Statistic, rows: list[Any], error: float, max_gap: float) -> bool:
    """Whether so many rows could raise an alarm, or be within the limit.

    The clearest alarm is a rate of 1 in the largest group and of 0 in the others. A gap is most
    clearly small if all rates are 1.
    """
    apart = [np.where(np.arange(len(one)) == one.argmax(), one, 0.0) for one in rows]
    low, _ = _one_sided(statistic, list(zip(apart, rows, strict=True)), error)
    _, high = _one_sided(statistic, list(zip(rows, rows, strict=True)), error)
    return low > max_gap or high <= max_gap


def _percent(share: float) -> str:
    return f"{100 * share:.5g} %"


def _some(names: list[str], separator: str = ", ") -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return separator.join(names[:_MOST_NAMES]) + more
