"""Codes of the labels and groups of rows that are read in chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fairproj.data.checks import Groups, check_groups, in_order
from fairproj.data.ranges import Cuts, cut_ranges
from fairproj.data.types import Codes
from fairproj.io.table_types import NUMBERS, expand, kind_of
from fairproj.io.tables import DataFileError


class CellCoder:
    """Turns the labels and groups of chunks into codes.

    Parameters
    ----------
    label : str
        The column with the labels.
    labels : list
        The different labels.
    table : DataFrame
        The sensitive columns, with all combinations of values that occur.
    name : str
        What to call the data in messages.
    ranges : mapping of str to sequence of float, optional
        Where sensitive columns of numbers are cut; ``table`` has the names of the ranges.
    missing : str, optional
        The name that missing values of sensitive columns have in ``table``; by default there are
        none.

    Attributes
    ----------
    labels : list
        In sort order; their places are their codes.
    groups : Groups
        The groups of the rows of ``table``.
    """

    def __init__(
        self,
        label: str,
        labels: list[Any],
        table: pd.DataFrame,
        name: str,
        ranges: Mapping[str, Cuts] | None = None,
        missing: str | None = None,
    ) -> None:
        self.labels = in_order(labels)
        self._ranges = dict(ranges or {})
        self.groups: Groups = check_groups(table, len(table), beside="y_true")
        self._label, self._name, self._missing = label, name, missing
        self._label_codes = _positions(self.labels)
        self._codes = {
            column: _positions(table[column].unique().tolist()) for column in table.columns
        }
        products = self._products([table[column].map(codes) for column, codes in self._items()])
        self._known, first = np.unique(products, return_index=True)
        self._group = self.groups.codes[first]

    @property
    def columns(self) -> list[str]:
        """The label and the sensitive columns."""
        return [self._label, *map(str, self._codes)]

    @property
    def n_cells(self) -> int:
        return len(self.groups.values) * len(self.labels)

    def label_codes(self, chunk: pa.Table) -> Codes:
        return self._column(chunk, self._label, self._label_codes)

    def group_codes(self, chunk: pa.Table) -> Codes:
        products = self._products([self._column(chunk, *item) for item in self._items()])
        place = np.minimum(np.searchsorted(self._known, products), len(self._known) - 1)
        if (self._known[place] != products).any():
            raise self._changed()
        return np.asarray(self._group[place])

    def cells(self, chunk: pa.Table) -> Codes:
        """Codes of group and label together."""
        return len(self.labels) * self.group_codes(chunk) + self.label_codes(chunk)

    def cell_name(self, cell: int) -> str:
        group, label = divmod(cell, len(self.labels))
        return f"group {self.groups.names[group]!r} with label {self.labels[label]}"

    def _items(self) -> list[tuple[str, dict[Any, int]]]:
        return [(str(column), codes) for column, codes in self._codes.items()]

    def _products(self, codes: list[Any]) -> Codes:
        """One number for the codes of all sensitive columns."""
        product: Any = 0
        for one, (_, known) in zip(codes, self._items(), strict=True):
            product = product * len(known) + np.asarray(one, dtype=np.int64)
        return np.asarray(product)

    def _column(self, chunk: pa.Table, name: str, codes: Mapping[Any, int]) -> Codes:
        column = expand(chunk.column(name))
        if name in self._ranges and kind_of(column.type) in NUMBERS:  # else it is cut already
            column = cut_column(column, self._ranges[name])
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        try:
            parts = [self._codes_of(part, codes) for part in column.chunks]
        except (KeyError, IndexError):  # a new value, or a missing one
            raise self._changed() from None
        return np.concatenate(parts)

    def _codes_of(self, part: Any, codes: Mapping[Any, int]) -> Codes:
        """Codes of dictionary-encoded values."""
        values, indices = part.dictionary.to_pylist(), part.indices
        if self._missing in codes:
            values = [
                self._missing if value != value else value for value in [*values, self._missing]
            ]
            indices = indices.fill_null(len(values) - 1)
        found = np.array([codes[value] for value in values], dtype=np.intp)
        return np.asarray(found[indices.to_numpy(zero_copy_only=False)])

    def _changed(self) -> DataFileError:
        return DataFileError(f"{self._name} was changed while it was read; run the command again")


def cut_column(column: Any, cuts: Cuts) -> Any:
    """The names of the ranges of numbers; missing ones stay missing."""
    numbers = column.cast(pa.float64()).to_numpy()
    return pa.chunked_array([pa.array(cut_ranges(numbers, cuts))])


def _positions(values: Sequence[Any]) -> dict[Any, int]:
    return {value: at for at, value in enumerate(values)}
