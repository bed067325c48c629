"""Values of new rows that are unlike any in training: counts, notes and sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd

from fairproj.data.checks import counted

_MOST_COLUMNS = 8  # in a sentence
_FIRST_ROWS = 3  # of a column in a sentence
_LISTED_ROWS = 100


class Missing(Enum):
    """What to do with rows that have such values."""

    error = "error"
    score = "score"
    skip = "skip"


@dataclass
class _Finding:
    """The rows in which one column is missing, or unknown."""

    column: str
    kind: str  # missing or unknown
    n_rows: int = 0
    first_rows: list[int] = field(default_factory=list)
    example: Any = None

    def __str__(self) -> str:
        such_as = "" if self.example is None else f"such as {self.example!r}, "
        more = ", ..." if self.n_rows > len(self.first_rows) else ""
        rows = f"{'rows' if self.n_rows > 1 else 'row'} {', '.join(map(str, self.first_rows))}"
        return f"{self.column} {self.kind} in {counted(self.n_rows, 'row')} ({such_as}{rows}{more})"


class UnseenValues:
    """Collects, over the chunks of a file, values that are unlike any in training.

    These are values missing in a column that missed none in training, and categories that no
    training row had. Rows are counted from 1, as they are in the output.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._complete: list[str] = []
        if model.encoding_ is not None:
            columns = zip(model.encoding_.columns, model.encoding_.had_missing, strict=True)
            self._complete = [name for name, had_missing in columns if not had_missing]
        self._findings: dict[tuple[str, str], _Finding] = {}
        self.n_rows = 0
        self.n_affected = 0
        self.first_rows: list[int] = []

    def add(self, frame: pd.DataFrame, matrix: Any) -> dict[int, str]:
        """Look at some rows; a note on each affected one, by its position among them."""
        notes: dict[int, list[str]] = defaultdict(list)
        for column, kind, rows, values in self._find(frame, matrix):
            finding = self._findings.setdefault((column, kind), _Finding(column, kind))
            finding.n_rows += len(rows)
            finding.first_rows += self._numbers(rows[: _FIRST_ROWS - len(finding.first_rows)])
            if values is not None and finding.example is None:
                finding.example = values[0]
            for at, row in enumerate(rows.tolist()):
                what = kind if values is None else f"{kind}: {values[at]!r}"
                notes[row].append(f"{column} {what}")
        affected = np.sort(np.array(list(notes), dtype=np.intp))
        self.first_rows += self._numbers(affected[: _LISTED_ROWS - len(self.first_rows)])
        self.n_affected += len(affected)
        self.n_rows += len(frame)
        return {row: "; ".join(parts) for row, parts in notes.items()}

    def _find(
        self, frame: pd.DataFrame, matrix: Any
    ) -> Iterator[tuple[str, str, Any, list[Any] | None]]:
        """Columns, what is wrong with them, in which rows, and unknown values."""
        for name in self._complete:
            rows = np.flatnonzero(frame[name].isna().to_numpy())
            if len(rows):
                yield name, "missing", rows, None
        for name, values in self._model.unknown_values(frame, matrix).items():
            if len(values):
                yield name, "unknown", values.index.to_numpy(), values.tolist()

    def _numbers(self, rows: Any) -> list[int]:
        return [self.n_rows + 1 + int(row) for row in rows]

    def refusal(self) -> str:
        return (
            f"{self._summary()}; nothing was written: correct the values, or add --missing score "
            "to score such rows all the same, or --missing skip to leave their predictions empty"
        )

    def sentence(self, policy: Missing) -> str:
        done = "their predictions are empty"
        if policy is Missing.score:
            done = (
                "missing numbers were scored as the median of training, other values as none of "
                "the known categories"
            )
        return f"{self._summary()}; {done}, and the column 'note' names the values."

    def _summary(self) -> str:
        found = sorted(self._findings.values(), key=lambda finding: -finding.n_rows)
        parts = [str(finding) for finding in found[:_MOST_COLUMNS]]
        if len(found) > _MOST_COLUMNS:
            parts.append(f"and {len(found) - _MOST_COLUMNS} more columns")
        verb = "has" if self.n_affected == 1 else "have"
        return (
            f"{self.n_affected:,} of {counted(self.n_rows, 'row')} {verb} values unlike any in "
            "training: "
            f"{', '.join(parts)}"
        )

    def to_dict(self) -> dict[str, Any]:
        counts: dict[str, dict[str, int]] = {"missing": {}, "unknown": {}}
        for finding in self._findings.values():
            counts[finding.kind][finding.column] = finding.n_rows
        return {"rows": self.n_affected, "first_rows": self.first_rows, **counts}
