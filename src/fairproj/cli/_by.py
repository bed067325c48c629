"""``--by COLUMN``: rows counted by the values of a column, such as months or regions."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fairproj.cli._console import print_line, show_table
from fairproj.cli._task import Task
from fairproj.data.checks import Groups, listing
from fairproj.data.dates import check_no_other_date
from fairproj.data.periods import MISSING, MOST_VALUES, PERIODS, period_names
from fairproj.data.types import Array, Codes
from fairproj.inference import GapsBy
from fairproj.inference.by import counts_of
from fairproj.io.table_types import USABLE, expand, kind_of
from fairproj.io.tables import DataFiles, check_columns, natural_order
from fairproj.io.text import escape
from fairproj.report._words import interval_name

_DATES = ("date", "date and time")


@dataclass
class ByColumn:
    """A column whose values divide the rows; dates are joined to periods.

    Attributes
    ----------
    name : str
    period : str or None
        What to join dates to; None for months, where the column holds dates.
    """

    name: str
    period: str | None = None
    _holds_dates: bool | None = field(default=None, init=False)  # known from the first values

    @property
    def holds_dates(self) -> bool:
        """Whether all values so far were dates."""
        return bool(self._holds_dates)

    @classmethod
    def parse(cls, text: str, data: DataFiles, task: Task, others: list[str]) -> ByColumn:
        """The column that ``--by COLUMN`` or ``--by COLUMN:PERIOD`` names."""
        present = data.column_names()
        name, colon, period = text.rpartition(":")
        if text in present or not colon:
            name, period = text, ""
        elif period not in PERIODS:
            if name in present:
                raise ValueError(
                    f"--by {text} ends in {period!r}; after the colon use one of {listing(PERIODS)}"
                )
            name, period = text, ""
        for file in data.files:
            check_columns(file.path, file.column_names(), [name])
        if name in (task.label, *task.sensitive, *others):
            raise ValueError(
                f"--by {name} names a column that is the label, sensitive or the prediction; name "
                "another, such as a date or a region"
            )
        return cls(name, period or None)

    def replace(self, chunk: pa.Table) -> pa.Table:
        """The chunk with the column's values as text, dates as their periods."""
        at = chunk.column_names.index(self.name)
        column = expand(chunk.column(at))
        kind = kind_of(column.type)
        if kind not in (*USABLE, *_DATES):
            raise ValueError(
                f"--by {self.name} names a column of the kind {kind}; name one of dates, text or "
                "numbers"
            )
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        texts = pa.array(self._texts(encoded.dictionary), pa.string())
        new = texts.take(encoded.indices).fill_null(MISSING)
        return chunk.set_column(at, self.name, new)

    def _texts(self, different: Any) -> list[str | None]:
        values = different.to_pylist()
        known = [value for value in values if value is not None]
        if self._holds_dates is not False and known:
            names = period_names(known, self.period or "month")
            if None not in names:
                self._holds_dates = True
                found = dict(zip(known, names, strict=True))
                return [None if value is None else found[value] for value in values]
            self._check_no_dates(known[names.index(None)])
        plain: list[str | None] = different.cast(pa.string()).to_pylist()
        return plain

    def _check_no_dates(self, other: Any) -> None:
        """Refuse a value that is not a date where dates are wanted, or were found before."""
        if self.period is not None:
            raise ValueError(
                f"--by {self.name}:{self.period} needs dates such as 2026-03-31, and the column "
                f"holds {listing([other])}; leave out :{self.period}, or write dates so"
            )
        if self._holds_dates:
            raise ValueError(
                f"--by {self.name} names a column that holds dates, and also {listing([other])}; "
                "write all of them as dates such as 2026-03-31, or none"
            )
        check_no_other_date(other, f"column {self.name!r} of --by")
        self._holds_dates = False


class CountsBy:
    """Rows by the values of a column, and by group, label and prediction.

    Parameters
    ----------
    column : ByColumn
    groups : Groups
        All groups that may occur.
    """

    def __init__(self, column: ByColumn, groups: Groups) -> None:
        self.column = column
        self._names = groups.names
        self._shape = (len(groups.values), 2, 2)
        self._counts: dict[str, Array] = {}

    def add_chunk(self, chunk: pa.Table, codes: Codes, actual: Any, predicted: Any) -> None:
        """Count the rows of a chunk that has the column."""
        values = self.column.replace(chunk).column(self.column.name)
        encoded = values.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        places = encoded.indices.to_numpy(zero_copy_only=False)
        self.add(encoded.dictionary.to_pylist(), places, codes, actual, predicted)

    def add(
        self,
        values: list[str],
        places: Codes,
        codes: Codes,
        actual: Any,
        predicted: Any,
        rows: Any = None,
    ) -> None:
        """Count rows; ``places`` says which value each has, ``rows`` how often it counts."""
        cells = int(np.prod(self._shape))
        inner = 4 * codes + 2 * np.asarray(actual, dtype=np.intp) + np.asarray(predicted)
        counted = np.bincount(places * cells + inner, rows, len(values) * cells)
        for value, part in zip(values, counted.reshape(-1, *self._shape), strict=True):
            self._counts.setdefault(value, np.zeros(self._shape))
            self._counts[value] += part
        check_number(self.column, len(self._counts))

    def gaps(self, content: dict[str, Any]) -> GapsBy:
        """The gap of each value, compared with the target of a report.

        Nothing follows from rows that the model was trained on, so there they are not judged.
        """
        order = sorted(set(self._counts) - {MISSING}, key=natural_order)
        order += [MISSING] if MISSING in self._counts else []
        target = content["target"]
        return GapsBy.from_counts(
            {value: counts_of(self._counts[value]) for value in order},
            self._names,
            statistic=target["metric"],
            max_gap=None if content["data"]["seen"] else target["max_gap"],
            confidence=content["confidence"],
            simultaneous=content["simultaneous"],
        )


def check_number(column: ByColumn, n_values: int) -> None:
    if n_values > MOST_VALUES:
        advice = "name a column with fewer values, such as a region or a date"
        if column.holds_dates:
            advice = f"name a longer period, as in --by {shlex.quote(column.name)}:year"
        raise ValueError(
            f"column {column.name!r} has more than {MOST_VALUES} different values, the most that "
            f"--by compares; {advice}"
        )


def by_content(gaps: GapsBy, column: ByColumn) -> dict[str, Any]:
    return {"column": column.name, **gaps.to_dict()}


def show_by(gaps: GapsBy, column: ByColumn) -> None:
    """Print the gap of each value, and what follows."""
    head = [escape(column.name), "rows", "smallest\ngroup", "gap", "interval"]
    rows = [
        [
            row["value"],
            f"{row['rows']:,}",
            f"{row['n_smallest']:,}",
            "unknown" if row["estimate"] is None else f"{row['estimate']:z.3f}",
            f"{row['low']:z.3f} to {row['high']:z.3f}",
        ]
        for row in gaps.to_dict()["values"]
    ]
    if gaps.max_gap is not None:
        head += ["corrected", "judgement"]
        for cells, row in zip(rows, gaps.table.itertuples(), strict=True):
            cells += [f"{row.corrected_low:z.3f} to {row.corrected_high:z.3f}", row.judgement]
    interval = interval_name({"confidence": gaps.confidence, "simultaneous": gaps.simultaneous})
    name = gaps.statistic.replace("_", " ").capitalize()
    show_table(f"{name} by {column.name}, with {interval}s", head, rows)
    for sentence in gaps.sentences():
        print_line(sentence)
