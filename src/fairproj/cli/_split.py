"""Training rows and held-out rows of a file, at random or by time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.cli._rows import Rows
from fairproj.data.checks import check_groups, listing
from fairproj.data.time_split import TimeCut, Times
from fairproj.data.types import Codes
from fairproj.data.user_warning import warn_user
from fairproj.selection import fair_train_test_split


def split_rows(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows, str]:
    """Training rows, held-out rows, and a checksum of the positions of the held-out rows.

    The split is stratified by the label and the groups.
    """
    train, test, *_ = fair_train_test_split(
        np.arange(len(rows.y)), rows.y, rows.groups, test_size=fraction, random_state=seed
    )
    return take_parts(rows, train, test, held_out_words(fraction))


def find_cut(rows: Rows, column: str, fraction: float) -> TimeCut:
    """The point in time from which on about this share of the rows is held out."""
    times = Times(column)
    times.add(rows.frame[column])
    return times.cut(fraction)


def split_by_time(rows: Rows, cut: TimeCut) -> tuple[Rows, Rows, str]:
    """The same for rows before and from a point in time on."""
    held_out = cut.mask(rows.frame[cut.column])
    return take_parts(rows, np.flatnonzero(~held_out), np.flatnonzero(held_out), cut.which)


def check_sides_of_rows(rows: Rows, cut: TimeCut) -> None:
    """Refuse a split by time that has one label on a side, as for large data."""
    groups = check_groups(rows.groups, len(rows.y))
    labels, codes = np.unique(rows.y, return_inverse=True)
    shape = (2, len(groups.values), len(labels))
    held_out = cut.mask(rows.frame[cut.column]).astype(np.intp)
    places = np.ravel_multi_index((held_out, groups.codes, codes), shape)
    counts = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)
    check_sides(cut, counts, groups.names, [str(label) for label in labels])


def check_sides(
    cut: TimeCut, counts: NDArray[np.intp], groups: Sequence[str], labels: Sequence[str]
) -> None:
    """Refuse a split by time with one label on a side; warn of groups that a side lacks.

    ``counts`` has shape (2, n_groups, n_labels): training rows first, then held-out ones.
    """
    advice = "name another column with --time or another --test-size"
    for side, sizes in zip((f"before {cut.start}", f"from {cut.start} on"), counts, strict=True):
        by_label = sizes.sum(axis=0)
        if not by_label.all():
            present = labels[int(by_label.argmax())]
            raise ValueError(
                f"the rows {side}, by {cut.column}, all have the label {present}, and training and "
                f"audit need two; {advice}"
            )
        absent = [name for name, rows in zip(groups, sizes, strict=True) if not rows.sum()]
        if len(absent) > len(groups) - 2:
            raise ValueError(
                f"the rows {side}, by {cut.column}, belong to one group, and a gap needs two; "
                f"{advice}"
            )
        if absent:
            warn_user(
                f"no row of the groups {listing(absent)} is among those {side}, by {cut.column}, "
                "so that nothing is learnt or said of them there"
            )


def take_parts(rows: Rows, train: Codes, test: Codes, which: str) -> tuple[Rows, Rows, str]:
    test = np.sort(test)
    digest = hashlib.sha256(position_bytes(test)).hexdigest()
    training = rows.take(np.sort(train), "training rows", True)
    return training, rows.take(test, which, False), digest


def held_out_words(fraction: float) -> str:
    """What to call rows that are held out at random."""
    return f"the {100 * fraction:g} % of the rows held out from training"


def position_bytes(positions: NDArray[Any]) -> bytes:
    """The positions of rows as they enter a checksum."""
    return positions.astype("<i8").tobytes()
