"""The rows of files of any size as a model reads them, and counts of its predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fairproj.cli._by import CountsBy
from fairproj.cli._choice import Choice
from fairproj.cli._columns import check_kinds
from fairproj.cli._console import row_bar
from fairproj.cli._files import feature_types, trained_decimals
from fairproj.cli._labels import find_label, is_spelling
from fairproj.cli._rows import without_numbers
from fairproj.cli._streams import (
    Keys,
    check_names,
    feature_chunks,
    find_keys,
    with_complete_rows,
)
from fairproj.cli._tally import Tally
from fairproj.cli._task import Task
from fairproj.data.checks import listing
from fairproj.data.user_warning import warn_user
from fairproj.io.cell_codes import CellCoder
from fairproj.io.prefetch import prefetch
from fairproj.io.table_types import KnownNumber, column_kinds, to_frame
from fairproj.io.tables import DataFileError, DataFiles
from fairproj.report._importance import can_explain
from fairproj.report._summary import add_estimator, summarize_counts


@dataclass(frozen=True)
class ModelRows:
    """A model, and how it reads the rows of some files.

    Attributes
    ----------
    model : classifier
    data : DataFiles
    task : Task
    keys : Keys
        The labels and groups of the rows.
    features : list of str
    feature_types, types : dict
        The types of the features, and of all columns that are read.
    coder : CellCoder
    meaning : dict
        The model's label for each label of the data.
    positive : object
        The positive one of the model's labels.
    """

    model: Any
    data: DataFiles
    task: Task
    keys: Keys
    features: list[str]
    feature_types: dict[str, Any]
    types: dict[str, Any]
    coder: CellCoder
    meaning: dict[Any, Any]
    positive: Any

    @classmethod
    def open(
        cls,
        model: Any,
        features: list[str],
        data: DataFiles,
        task: Task,
        positive: str | None = None,
        *,
        new_groups: bool = False,
    ) -> ModelRows:
        """Read the label and the sensitive columns, and check them.

        ``new_groups`` are those that were not checked in training.
        """
        check_names(data, task, features)
        known = feature_types(model, features)
        types = without_numbers(known, task)
        decimals = trained_decimals(model)
        ranged = {name: KnownNumber(decimals.get(name)) for name in task.ranges}
        keys = find_keys(data, task, types | ranged)
        label = keys.check(task)
        if new_groups:
            keys.check_ranges_named(task, label)
        labels = model.classes_.tolist()
        meaning = translate_labels(
            keys.values(task.label),
            labels,
            f"the label {task.label!r} of {data.name} has",
            "the model knows",
            "give both the same values",
        )
        found = model_positive(model)
        if positive is not None:
            found = find_label(positive, labels, "the model's labels")
        return cls(
            model,
            data,
            task,
            keys,
            features,
            known,
            {**types, **keys.types},
            keys.coder(task),
            meaning,
            found,
        )

    def count(
        self,
        choice: Choice,
        *,
        by: CountsBy | None = None,
        explain: bool = True,
        verbose: bool = False,
    ) -> Tally:
        """Predict the chosen rows and count them, also by the values of a column.

        ``explain`` says whether to tell which features decide.
        """
        plain = getattr(self.model, "baseline_", None)
        tally = Tally(self.coder.groups, plain is not None, explain and can_explain(self.model))
        labels = self.coder.labels
        is_positive = np.array([self.meaning[label] == self.positive for label in labels])
        chooser = choice.begin()
        unknown = _UnknownColumns(self.model)
        with row_bar("auditing", self.keys.n_rows, show=verbose) as advance:
            for n_rows, chunk, matrix in prefetch(self._encoded(choice, chooser, unknown, by)):
                if matrix is not None:
                    codes = self.coder.group_codes(chunk)
                    actual = is_positive[self.coder.label_codes(chunk)]
                    compared = plain and self._predict(plain, matrix)
                    predicted = self._predict(self.model, matrix)
                    tally.add(codes, actual, predicted, compared, matrix)
                    if by is not None:
                        by.add_chunk(chunk, codes, actual, predicted[0])
                advance(n_rows)
        unknown.warn()
        choice.check(chooser.finish())
        if not tally.n_rows:
            raise DataFileError(f"{self.data.name} has no rows to audit")
        return tally

    def _predict(self, model: Any, matrix: Any) -> tuple[Any, Any]:
        """Which predictions are positive, and the probabilities of the positive label."""
        labels, probabilities = model.predict_matrix(matrix)
        at = model.classes_.tolist().index(self.positive)
        return labels == self.positive, probabilities[:, at]

    def _encoded(
        self, choice: Choice, chooser: Any, unknown: _UnknownColumns, by: CountsBy | None
    ) -> Iterator[tuple[int, pa.Table, Any]]:
        """The number of rows of each chunk, its chosen rows, and their matrix."""
        keys = [*self.task.keys, *choice.columns]
        columns = list(dict.fromkeys([*self.features, *keys]))
        typed = self.model.encoding_ is not None
        others = [name for name in choice.types if name not in self.task.keys]
        types = {**{name: choice.types[name] for name in others}, **self.types}
        if by is not None:  # of a CSV file the text, since dates are found from all rows
            columns = list(dict.fromkeys([*columns, by.column.name]))
            types.setdefault(by.column.name, pa.string())
        for chunk in feature_chunks(self.data, columns, types, typed=typed):
            if typed:
                check_kinds(
                    self.data.name, column_kinds(chunk), self.features, "as they were in training"
                )
            chunk = with_complete_rows(chunk, choice.complete)
            mask = chooser.mask(chunk)
            n_rows = chunk.num_rows
            if mask is not None:
                chunk = chunk.filter(pa.array(mask))
            chunk = with_complete_rows(chunk, self.task.complete)
            matrix = self._matrix(chunk, unknown, typed) if chunk.num_rows else None
            yield n_rows, chunk, matrix

    def _matrix(self, chunk: pa.Table, unknown: _UnknownColumns, typed: bool) -> Any:
        if not typed:  # an estimator of the user's own reads text as text
            table = chunk.select(self.features).replace_schema_metadata()
            return self.model.to_matrix(table.to_pandas())
        frame = to_frame(chunk, self.features)
        matrix = self.model.to_matrix(frame)
        unknown.add(frame, matrix)
        return matrix


@dataclass
class _UnknownColumns:
    """Columns of categories of which training knew none of the values, in any chunk."""

    model: Any
    known: set[str] = field(default_factory=set)
    found: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The library can warn about single chunks only.
        warnings.filterwarnings("ignore", "column .* has no value known from training")

    def add(self, frame: Any, matrix: Any) -> None:
        for name, values in self.model.unknown_values(frame, matrix).items():
            if len(values) < frame[name].notna().sum():
                self.known.add(name)
            elif len(values):
                found = self.found.setdefault(name, [])
                found += [one for one in values.unique().tolist()[:3] if one not in found]

    def warn(self) -> None:
        encoding = self.model.encoding_
        for name in [name for name in self.found if name not in self.known]:
            known = encoding.categories[encoding.columns.index(name)]
            with warnings.catch_warnings():
                warnings.simplefilter("default", UserWarning)
                warn_user(
                    f"column {name!r} has no value known from training: found "
                    f"{listing(self.found[name][:3])}, known are {listing(known, 4)}; all count "
                    "as missing"
                )


def summarize_tally(
    tally: Tally, model: Any, positive: Any, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of a report about rows that were counted."""
    content = summarize_counts(tally.counts(), tally.names, str(positive), **options)
    if model is not None:
        add_estimator(content, model, tally.evidence(model, positive), options["source"])
    return content


def model_positive(model: Any) -> Any:
    return model.classes_.tolist()[-1] if model.pos_label is None else model.pos_label


def translate_labels(
    values: list[Any], known: list[Any], given: str, wanted: str, advice: str
) -> dict[Any, Any]:
    """Labels as the known ones spell them: one file may hold 1 where another holds '1'."""
    meaning = {
        value: next((one for one in known if value == one or is_spelling(str(value), one)), None)
        for value in values
    }
    if None in meaning.values():
        raise ValueError(f"{given} {listing(values, 4)}, and {wanted} {listing(known)}; {advice}")
    return meaning
