"""A training table in parts, such as the partitions of a Dask data frame or batches of rows.

Each part is described by itself; the descriptions together tell what is the same for all parts: the
classes, the groups, the categories of the columns, the scale of the weights. With that, each part
is encoded by itself, and the encoded parts together are what one table would have become.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from fairproj.data import columns
from fairproj.data.checks import (
    ALL_ZERO,
    Groups,
    check_aligned,
    check_classes,
    check_groups,
    check_lengths,
    check_pos_label,
    distinct_labels,
    listing,
    sensitive_table,
    weight_values,
)
from fairproj.data.encoder import FeatureEncoder, column_extremes
from fairproj.data.reduction import LocalReduction
from fairproj.data.sample import scale_weights
from fairproj.data.types import Array, Codes

LARGEST = float(np.finfo(np.float32).max)  # of a feature; parts are encoded as 32-bit floats


@dataclass(frozen=True)
class Part:
    """Some rows of a table, as a user would pass them to ``fit``, and a name for messages.

    Where a part is read again for its features only, ``y`` is None. ``texts`` are the columns of
    text that reading the part made categories.
    """

    X: Any
    y: Any = None
    sensitive_features: Any = None
    sample_weight: Any = None
    name: str = ""
    texts: Collection[str] = ()


@dataclass(frozen=True)
class Reader:
    """The parameters of an estimator that say how its input is read.

    Attributes
    ----------
    estimator : str
        The name of its class, for messages.
    sensitive_columns, categorical_features, pos_label : object
    max_categories : int
        The most categories a column may have.
    """

    estimator: str = "The classifier"
    sensitive_columns: Any = None
    categorical_features: Any = "from_dtype"
    max_categories: int = 255
    pos_label: Any = None

    @classmethod
    def of(cls, estimator: Any) -> Reader:
        return cls(
            type(estimator).__name__,
            estimator.sensitive_columns,
            estimator.categorical_features,
            estimator.max_bins,
            estimator.pos_label,
        )


@dataclass(frozen=True)
class Header:
    """The columns of a part.

    Attributes
    ----------
    columns : list
        The names of the features, or positions for an array.
    feature_names : list of str, optional
        The same as scikit-learn has them: None unless they are texts.
    sensitive_columns : list
        The columns that were taken out.
    """

    columns: list[Any]
    feature_names: list[str] | None
    sensitive_columns: list[Any]


@dataclass(frozen=True)
class PartRows:
    """What comes with the features of a part, in codes of the part.

    Attributes
    ----------
    labels, label_codes : array
        The labels that occur, and each row's place among them.
    groups : Groups, optional
    weight : array, optional
        The weights as the user gave them.
    """

    labels: NDArray[Any]
    label_codes: Codes
    groups: Groups | None
    weight: Array | None

    def __len__(self) -> int:
        return len(self.label_codes)

    @property
    def kept(self) -> NDArray[np.bool_] | None:
        """Which rows have weight; None: all of them."""
        if self.weight is None or self.weight.all():
            return None
        return self.weight > 0

    @property
    def checksum(self) -> int:
        """Of the labels in their order, to notice that another reading gives other rows."""
        return checksum_of(self.labels, self.label_codes)


@dataclass(frozen=True)
class PartSummary:
    """What a part contributes to the `Table`; small, however many rows the part has.

    Attributes
    ----------
    name : str
    n_rows, n_kept : int
        All rows, and those whose weight is not zero.
    header : Header
    encoder : FeatureEncoder, optional
        Fitted on the part; None for a part without rows.
    has_values : array of bool
        Which columns have any value.
    labels, kept_labels : array
        The labels of all rows, and which of these labels have rows that are kept.
    groups : DataFrame, optional
        The distinct rows of the sensitive features.
    kept_groups : array of bool
        Which of these have rows that are kept.
    largest_weight : float, optional
    """

    name: str
    n_rows: int
    n_kept: int
    header: Header
    encoder: FeatureEncoder | None
    has_values: NDArray[np.bool_]
    labels: NDArray[Any]
    kept_labels: NDArray[np.bool_]
    groups: pd.DataFrame | None
    kept_groups: NDArray[np.bool_]
    largest_weight: float | None


@dataclass(frozen=True)
class Table:
    """What all parts agree on.

    Attributes
    ----------
    reader : Reader
    classes : array of shape (2,)
    positive_class : int
        Which of the two the constraints call positive.
    group_values : list
    with_groups : bool
        Whether sensitive features were given.
    encoder : FeatureEncoder
    header : Header
    largest_weight : float, optional
        None without weights.
    lengths : tuple of int
        The number of rows of each part, without rows of weight zero.
    """

    reader: Reader
    classes: NDArray[Any]
    positive_class: int
    group_values: list[Any]
    with_groups: bool
    encoder: FeatureEncoder
    header: Header
    largest_weight: float | None
    lengths: tuple[int, ...]

    @property
    def n_features(self) -> int:
        return len(self.header.columns)

    @property
    def feature_names(self) -> NDArray[Any] | None:
        names = self.header.feature_names
        return None if names is None else np.asarray(names, dtype=object)

    @property
    def sensitive_columns(self) -> list[Any]:
        return self.header.sensitive_columns

    def recode(self, rows: PartRows) -> EncodedRows:
        """Labels, groups and weights of a part, in the codes of the table."""
        kept = slice(None) if rows.kept is None else rows.kept
        sign = _places(rows.labels.tolist(), self.classes.tolist(), np.dtype(np.int8)) * 2 - 1
        group_type = np.min_scalar_type(len(self.group_values))
        codes = np.zeros(len(rows), dtype=group_type)[kept]
        if rows.groups is not None:
            places = _places(rows.groups.values, self.group_values, group_type)
            codes = places[rows.groups.codes[kept]]
        weight = None
        if rows.weight is not None and self.largest_weight is not None:
            weight = scale_weights(rows.weight[kept], self.largest_weight)
        return EncodedRows(sign[rows.label_codes[kept]], codes, weight)


@dataclass(frozen=True)
class EncodedRows:
    """Labels, groups and weights of rows whose weight is not zero.

    Attributes
    ----------
    y : array of int8
        -1 and +1.
    codes : array of small unsigned integers
        Places among the group values of the table.
    weight : array, optional
        Scaled by the largest weight of the table; None: one each.
    """

    y: NDArray[np.int8]
    codes: NDArray[Any]
    weight: Array | None


@dataclass(frozen=True)
class EncodedPart(EncodedRows):
    """The same with the features of the rows."""

    matrix: NDArray[np.float32]


def describe(part: Part, reader: Reader) -> PartSummary:
    """Check a part, and find what it contributes to the table."""
    return describe_rows(part, reader)[0]


def describe_rows(part: Part, reader: Reader) -> tuple[PartSummary, PartRows]:
    """The same, with the part's labels, groups and weights."""
    with _named(part):
        X, groups, taken, kept_columns = columns.split_columns(
            part.X, part.sensitive_features, reader.sensitive_columns
        )
        X, feature_names = _check_features(X, reader)
        header = Header(columns.column_names(X), feature_names, taken)
        rows = _read_rows(part, X, groups)
        encoder = None
        has_values = np.zeros(len(header.columns), dtype=bool)
        if len(rows):
            encoder = FeatureEncoder(
                reader.categorical_features,
                reader.max_categories,
                kept_columns,
                taken,
                part.texts,
            )
            matrix = encoder.fit_transform(X)
            has_values = _check_range(matrix, header)
            if rows.kept is not None:
                encoder = encoder.for_rows(matrix[rows.kept], LocalReduction())
        return _summary(part, header, encoder, has_values, rows, groups), rows


def _check_features(X: Any, reader: Reader) -> tuple[Any, list[str] | None]:
    """X as scikit-learn would accept it, and the names it would keep."""
    if sparse.issparse(X):
        raise ValueError(
            "X is a sparse matrix, and parts of a table must be dense; pass arrays or data frames"
        )
    checker = type(reader.estimator, (BaseEstimator,), {})()
    if columns.is_frame(X):
        validate_data(checker, X, skip_check_array=True)
    else:
        columns.refuse_complex(X)
        X = columns.check_numbers(checker, X, accepts=("missing",), ensure_min_samples=0)
    names = getattr(checker, "feature_names_in_", None)
    return X, None if names is None else names.tolist()


def _check_range(matrix: NDArray[Any], header: Header) -> NDArray[np.bool_]:
    """Refuse numbers that are infinite as 32-bit floats; which columns have any value."""
    lowest, highest = column_extremes(matrix)
    wide = np.maximum(-lowest, highest) > LARGEST
    if wide.any():
        names = [header.columns[i] for i in np.flatnonzero(wide)]
        raise ValueError(
            f"column {listing(names)} has numbers beyond {LARGEST:.2g}, which 32-bit floats do not "
            "hold; scale the column"
        )
    has_values: NDArray[np.bool_] = ~np.isnan(lowest)
    return has_values


def _read_rows(part: Part, X: Any, sensitive_features: Any) -> PartRows:
    weights = {"sensitive_features": sensitive_features, "sample_weight": part.sample_weight}
    check_aligned(X=X, y=part.y, **weights)
    labels, codes = distinct_labels(part.y)
    check_lengths(X, codes)
    groups = weight = None
    if sensitive_features is not None:
        groups = check_groups(sensitive_features, len(codes))
    if part.sample_weight is not None:
        weight = weight_values(part.sample_weight, len(codes))
    return PartRows(labels, codes, groups, weight)


def _summary(
    part: Part,
    header: Header,
    encoder: FeatureEncoder | None,
    has_values: NDArray[np.bool_],
    rows: PartRows,
    sensitive_features: Any,
) -> PartSummary:
    kept = rows.kept
    table, kept_groups = None, np.zeros(0, dtype=bool)
    if rows.groups is not None:
        # In the order of the rows: it decides where values have no order among them.
        codes, first = np.unique(rows.groups.codes, return_index=True)
        order = np.argsort(first)
        table = sensitive_table(sensitive_features).iloc[first[order]]
        kept_groups = _occur(rows.groups.codes, kept, len(codes))[order]
    return PartSummary(
        name=part.name,
        n_rows=len(rows),
        n_kept=len(rows) if kept is None else int(kept.sum()),
        header=header,
        encoder=encoder,
        has_values=has_values,
        labels=rows.labels,
        kept_labels=_occur(rows.label_codes, kept, len(rows.labels)),
        groups=table,
        kept_groups=kept_groups,
        largest_weight=None if rows.weight is None else float(rows.weight.max(initial=0.0)),
    )


def _occur(codes: Codes, rows: NDArray[np.bool_] | None, n_codes: int) -> NDArray[np.bool_]:
    """Which codes occur in some of the rows."""
    return np.bincount(codes if rows is None else codes[rows], minlength=n_codes) > 0


def merge(summaries: Sequence[PartSummary], reader: Reader) -> Table:
    """What all parts agree on, or a sentence about where they do not."""
    filled = [summary for summary in summaries if summary.n_rows]
    if not filled:
        raise ValueError("X has 0 rows; at least one is required")
    _check_headers(summaries)
    classes = _merge_labels(filled)
    group_values = _merge_groups(filled)
    return Table(
        reader=reader,
        classes=classes,
        positive_class=check_pos_label(reader.pos_label, classes),
        group_values=["all"] if group_values is None else group_values,
        with_groups=group_values is not None,
        encoder=FeatureEncoder.merge(
            [summary.encoder for summary in filled if summary.encoder is not None],
            [summary.has_values for summary in filled],
            [summary.name for summary in filled],
        ),
        header=filled[0].header,
        largest_weight=_merge_weights(filled),
        lengths=tuple(summary.n_kept for summary in summaries),
    )


def _check_headers(summaries: Sequence[PartSummary]) -> None:
    first = summaries[0]
    for other in summaries[1:]:
        if other.header != first.header:
            raise ValueError(
                f"{first.name} has the columns {listing(first.header.columns)} and {other.name} "
                f"has {listing(other.header.columns)}; all parts must have the same, in the same "
                "order"
            )


def _merge_labels(summaries: Sequence[PartSummary]) -> NDArray[Any]:
    classes, _ = distinct_labels(np.concatenate([summary.labels for summary in summaries]))
    check_classes(classes)
    if not any(summary.kept_labels.any() for summary in summaries):
        raise ValueError(ALL_ZERO)
    kept = [summary.labels[summary.kept_labels] for summary in summaries]
    if len(np.unique(np.concatenate(kept))) < 2:
        raise ValueError("rows of positive sample_weight must hold two classes, found one")
    return classes


def _merge_groups(summaries: Sequence[PartSummary]) -> list[Any] | None:
    """The groups that have rows with weight, crossed and in order; None without any."""
    tables = [summary.groups for summary in summaries if summary.groups is not None]
    if not tables:
        return None
    _check_given_everywhere([summary.groups for summary in summaries], summaries, "groups")
    names = list(tables[0].columns)
    for summary, table in zip(summaries, tables, strict=True):
        # The name of a single column tells nothing: a series may have one, an array has none.
        if table.shape[1] != len(names) or (len(names) > 1 and list(table.columns) != names):
            raise ValueError(
                f"{summaries[0].name} has the sensitive features {listing(names)} and "
                f"{summary.name} has {listing(list(table.columns))}; all parts must have the same"
            )
    distinct = pd.concat([table.set_axis(names, axis=1) for table in tables], ignore_index=True)
    groups = check_groups(distinct, len(distinct))
    kept = np.concatenate([summary.kept_groups for summary in summaries])
    with_weight = groups.take(np.flatnonzero(kept))
    return with_weight.values  # noqa: PD011 (no data frame)


def _merge_weights(summaries: Sequence[PartSummary]) -> float | None:
    weights = [summary.largest_weight for summary in summaries]
    given = [weight for weight in weights if weight is not None]
    if given:
        _check_given_everywhere(weights, summaries, "weights")
    return max(given, default=None)


def _check_given_everywhere(
    values: Sequence[Any], summaries: Sequence[PartSummary], what: str
) -> None:
    missing = [s.name for s, value in zip(summaries, values, strict=True) if value is None]
    if missing:
        raise ValueError(f"{listing(missing)} has no {what}, and other parts do; give all of them")


def encode(part: Part, table: Table) -> EncodedPart:
    """The rows of a part whose weight is not zero, as the learners read them."""
    with _named(part):
        X, groups, _, _ = columns.split_columns(
            part.X, part.sensitive_features, table.reader.sensitive_columns
        )
        rows = _read_rows(part, X, groups)
        matrix = encode_features(part.X, table, rows.kept)
        return EncodedPart(**vars(table.recode(rows)), matrix=matrix)


def encode_features(
    X: Any, table: Table, kept: NDArray[np.bool_] | None = None
) -> NDArray[np.float32]:
    """Some rows of X as the learners read them; sensitive columns may or may not be there."""
    if table.sensitive_columns:
        X = columns.drop_sensitive_columns(X, table.sensitive_columns, table.n_features)
    if kept is not None:
        X = columns.take_rows(X, np.flatnonzero(kept))
    X, _ = _check_features(X, table.reader)
    if (names := columns.column_names(X)) != table.header.columns:
        raise ValueError(
            f"X has the columns {listing(names)}, and at first it had "
            f"{listing(table.header.columns)}; give the same rows each time"
        )
    return np.ascontiguousarray(table.encoder.transform(X), dtype=np.float32)


def checksum_of(labels: NDArray[Any], codes: Codes) -> int:
    """The checksum of labels that are given as their distinct values and the rows' codes."""
    names = repr(labels.tolist()).encode()
    return zlib.crc32(np.ascontiguousarray(codes, dtype=np.uint32).data, zlib.crc32(names))


def _places(values: list[Any], known: list[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Where each value stands among the known ones; zero for one that no kept row has."""
    place = {value: at for at, value in enumerate(known)}
    return np.array([place.get(value, 0) for value in values], dtype=dtype)


@contextmanager
def _named(part: Part) -> Iterator[None]:
    """Name the part in errors about it."""
    try:
        yield
    except ValueError as error:
        if not part.name:
            raise
        raise ValueError(f"{part.name}: {error}") from error
