"""Preparing rows that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.batches import BatchMatrix, ChosenRows
from fairproj.data.checks import Groups
from fairproj.data.encoder import FeatureEncoder
from fairproj.data.parts import Part, PartRows, Reader, describe_rows, merge
from fairproj.data.sample import Sample, compact_weights
from fairproj.estimators.base import BoostedClassifier, Prepared
from fairproj.io.progress import time_bar
from fairproj.io.sources import Source


def prepare_source(
    source: Source, estimator: BoostedClassifier, encoder: FeatureEncoder | None = None
) -> Prepared:
    """Validate everything that ``fit`` gets from a source, in one pass over its parts.

    Labels, groups and weights stay in memory, in two bytes a row and eight more with weights;
    features are read again where they are needed, one part at a time. ``encoder`` is that of an
    earlier fit, which must be the same.
    """
    kind = estimator._kind
    if "batches" not in kind.accepts:
        raise ValueError(
            f"engine={kind.name!r} does not train on rows that are read in parts; use "
            "engine='xgboost', or read the rows into memory"
        )
    reader = Reader.of(estimator)
    summaries, rows = [], []
    for part in _with_progress(source, show=estimator.verbose):
        summary, part_rows = describe_rows(part, reader)
        summaries.append(summary)
        rows.append(_small(part_rows))
    table = merge(summaries, reader)
    if encoder is not None and encoder.categories != table.encoder.categories:
        raise ValueError(
            "the columns have other categories than in the first fit; warm_start continues with "
            "the rows of the first fit"
        )
    chosen = [_with_weight(each) for each in rows]
    encoded = [table.recode(each) for each in rows]
    del rows
    y = np.concatenate([each.y for each in encoded])
    weights = [each.weight for each in encoded if each.weight is not None and len(each.weight)]
    sample = Sample(
        BatchMatrix(source, table, chosen),
        y,
        table.classes,
        compact_weights(np.concatenate(weights)) if weights else np.broadcast_to(1.0, len(y)),
        Groups(np.concatenate([each.codes for each in encoded]), table.group_values),
        table.positive_class,
        table.encoder,
    )
    return Prepared(
        sample, table.n_features, table.feature_names, table.sensitive_columns, table.with_groups
    )


def _with_progress(source: Source, *, show: bool) -> Iterator[Part]:
    """The parts, with a bar where their number is known."""
    n_parts = source.n_parts
    with time_bar("reading", n_parts or 0, 0, show=show and n_parts is not None) as advance:
        for part in source.parts():
            yield part
            advance(1)


def _small(rows: PartRows) -> PartRows:
    """The same with codes in small integers."""
    groups = rows.groups
    if groups is not None:
        groups = Groups(_small_codes(groups.codes, len(groups.values)), groups.values)
    return replace(
        rows, label_codes=_small_codes(rows.label_codes, len(rows.labels)), groups=groups
    )


def _small_codes(codes: NDArray[Any], n_values: int) -> NDArray[Any]:
    return codes.astype(np.min_scalar_type(n_values))


def _with_weight(rows: PartRows) -> ChosenRows:
    if rows.kept is None:
        return ChosenRows(len(rows), len(rows), labels=rows.checksum)
    return replace(ChosenRows.of(rows.kept), labels=rows.checksum)
