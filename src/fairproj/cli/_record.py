"""What `fairproj train` records in a model file about the data, the split and the search."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairproj.cli._rows import Rows
from fairproj.cli._split import held_out_words, split_by_time, split_rows
from fairproj.cli._task import Task
from fairproj.constraints import STATISTICS
from fairproj.data.checks import in_words
from fairproj.data.time_split import TimeCut
from fairproj.inspection import Finding
from fairproj.io.records import RecordError, from_dict, to_dict
from fairproj.report._frontier import METHODS
from fairproj.selection import GapSearchCV

_KEY = "fairproj train"


@dataclass(frozen=True)
class FileRecord:
    """The file that a model was trained from."""

    name: str
    sha256: str
    rows: int


@dataclass(frozen=True)
class HeldOut:
    """The split; the checksum is that of the positions of the held-out rows.

    ``streamed`` tells which of two rules split the rows: `fairproj.data.held_out.HeldOutRule`,
    which reads any number of rows in chunks, or `fair_train_test_split`. With ``time`` neither did:
    the rows from a point in time on are held out.
    """

    fraction: float
    seed: int
    sha256: str
    streamed: bool = False
    time: TimeCut | None = None

    def __post_init__(self) -> None:
        _check(0 < self.fraction < 1 and 0 <= self.seed < 2**32, "held_out is out of range")

    @property
    def which(self) -> str:
        """What to call the rows."""
        return held_out_words(self.fraction) if self.time is None else self.time.which

    def split(self, rows: Rows) -> tuple[Rows, Rows]:
        """The training rows and the held-out rows, out of all rows."""
        if self.time is not None:
            training, test, digest = split_by_time(rows, self.time)
        else:
            training, test, digest = split_rows(rows, self.fraction, self.seed)
        self.check(digest)
        return training, test

    def check(self, sha256: str) -> None:
        """Refuse rows that were found again, if they are others."""
        if sha256 != self.sha256:
            ours = self.streamed or self.time is not None
            rule = "fairproj" if ours else "scikit-learn"
            raise ValueError(
                "the rows held out from training cannot be found again, because this version of "
                f"{rule} splits differently; audit on a file of rows the model has not seen"
            )


@dataclass(frozen=True)
class Candidate:
    """One value that a search tried; without several folds there are no standard errors."""

    value: float
    score: float
    score_se: float | None
    gap: float
    gap_se: float | None
    bound: float
    meets: bool
    useful: bool

    def __post_init__(self) -> None:
        drawn = (self.score, self.score_se or 0.0, self.gap, self.gap_se or 0.0)
        _check(all(0 <= number <= 1 for number in drawn), "a candidate is out of range")


@dataclass(frozen=True)
class SearchRecord:
    """A search with `GapSearchCV` and its candidates."""

    param_name: str
    value: float
    method: str
    metric: str
    scoring: str
    rule: str
    max_gap: float
    met: bool
    reason: str
    candidates: list[Candidate]

    def __post_init__(self) -> None:
        _check(self.method in METHODS and self.metric in STATISTICS, "search is of unknown kind")

    @classmethod
    def from_search(cls, search: GapSearchCV) -> SearchRecord:
        ((param_name, value),) = search.best_params_.items()
        return cls(
            param_name=param_name,
            value=value,
            method=type(search.estimator).__name__,
            metric=str(search.metric),
            scoring=search.scoring,
            rule=search.selection_rule,
            max_gap=search.max_gap,
            met=search.met_,
            reason=search.reason_,
            candidates=_candidates(search, param_name),
        )


def _candidates(search: GapSearchCV, param_name: str) -> list[Candidate]:
    results = search.cv_results_
    columns = {
        "value": np.asarray(results[f"param_{param_name}"]),
        "score": results["mean_test_score"],
        "score_se": _standard_errors(results["std_test_score"], search.n_splits_),
        "gap": results["mean_test_gap"],
        "gap_se": _standard_errors(results["std_test_gap"], search.n_splits_),
        "bound": results["gap_bound"],
        "meets": results["meets_gap"],
        "useful": results["useful"],
    }
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return [Candidate(**dict(zip(columns, row, strict=True))) for row in rows]


def _standard_errors(deviations: Any, n_splits: int) -> Any:
    """Standard errors of means from standard deviations as NumPy takes them, with ddof=0.

    The standard error s / sqrt(n) has s with ddof=1, which is sqrt(n / (n - 1)) times as large.
    """
    if n_splits == 1:
        return [None] * len(deviations)
    return deviations / np.sqrt(n_splits - 1)


@dataclass(frozen=True)
class Target:
    """A gap that was constrained, and its limit in the model's predictions, if there was one."""

    metric: str
    max_gap: float | None

    def __post_init__(self) -> None:
        _check(self.metric in STATISTICS, f"metric {self.metric!r} is unknown")
        _check(0 <= (self.max_gap or 0) <= 1, "max_gap must lie between 0 and 1")


def other_targets(targets: Sequence[Target], metric: str) -> dict[str, float]:
    """The limits of the other gaps that were constrained."""
    return {
        target.metric: target.max_gap
        for target in targets
        if target.metric != metric and target.max_gap is not None
    }


@dataclass(frozen=True)
class Confirmation:
    """The exact test of the finished model on rows that were kept for it alone.

    ``bounds`` has for each gap that was constrained a number that it is at most, each with this
    confidence.
    """

    confidence: float
    n_rows: int
    bounds: dict[str, float]
    reason: str

    def __post_init__(self) -> None:
        _check(0 < self.confidence < 1 and self.n_rows > 0, "confirmation is out of range")
        _check(set(self.bounds) <= set(STATISTICS), "confirmation is about an unknown gap")


@dataclass(frozen=True)
class TrainingRecord:
    """The task, data and date of a training run, and the split, the targets and the search.

    ``findings`` are those of the checks before training. ``alternatives`` is what
    `fairproj alternatives` came to, where that chose the model. ``decimals`` has the sign before
    the decimals of each column of numbers of a CSV file, ``"."`` or ``","``.
    """

    task: Task
    data: FileRecord
    kinds: dict[str, str]
    held_out: HeldOut | None
    targets: list[Target]
    search: SearchRecord | None
    command: str
    confirmation: Confirmation | None = None
    findings: list[Finding] = field(default_factory=list)
    alternatives: str | None = None
    decimals: dict[str, str] = field(default_factory=dict)
    date: str = field(default_factory=lambda: datetime.date.today().isoformat(), kw_only=True)

    def __post_init__(self) -> None:
        _check(len(self.targets) > 0, "targets is empty")
        _check(len(self.task.sensitive) > 0, "task.sensitive is empty")
        _check(set(self.decimals.values()) <= {".", ","}, "decimals has an unknown sign")
        day = datetime.date.fromisoformat(self.date)  # ValueError unless it is a date
        _check(day.isoformat() == self.date, "date must be written as in 2026-01-31")

    def to_metadata(self) -> dict[str, Any]:
        return {_KEY: to_dict(self)}

    @property
    def notes(self) -> list[str]:
        """What to say beside an audit."""
        notes = []
        if self.task.weights is not None:
            notes.append(
                f"Training weighed rows by the column {self.task.weights}; this audit counts each "
                "row once."
            )
        if self.task.complete:
            notes.append(
                f"Training left out rows without a value of {in_words(self.task.complete, 'or')}."
            )
        return notes

    @property
    def tested(self) -> list[float]:
        """The limits of the test of the finished model, if there was one."""
        if self.confirmation is None:
            return []
        return [target.max_gap for target in self.targets if target.max_gap is not None]

    @property
    def searched(self) -> float | None:
        """The largest gap allowed in the search that chose the model, if `GapSearchCV` did."""
        return None if self.search is None else self.search.max_gap

    @property
    def search_reason(self) -> str | None:
        """What the search that chose the model says about its choice, if there was one."""
        return self.alternatives if self.search is None else self.search.reason

    def matches(self, metric: str, task: Task) -> bool:
        """Whether training was for this gap, between these groups, of this label."""
        same_groups = set(task.sensitive) == set(self.task.sensitive)  # crossed in any order
        same_groups &= task.ranges == self.task.ranges
        known = any(target.metric == metric for target in self.targets)
        return known and same_groups and task.label == self.task.label

    def is_data(self, sha256: str) -> bool:
        """Whether a checksum is that of the data that the model was trained from."""
        return self.data.sha256 == sha256

    def trained_on(self, rows: Rows) -> Rows:
        """The rows that the model was trained on, out of all rows of its file."""
        return rows if self.held_out is None else self.held_out.split(rows)[0]


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def read_record(model: Any) -> TrainingRecord | None:
    """The record in a model's metadata; None if there is none, or one of another form.

    A model that was not saved yet has no metadata.
    """
    try:
        return from_dict(getattr(model, "metadata_", {}).get(_KEY), TrainingRecord)
    except RecordError:
        return None
