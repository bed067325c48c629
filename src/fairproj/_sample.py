"""A sample: rows, labels, weights and groups together, with what must balance among them.

Apart from the classifier because it is the same for every engine, and from the door because it
knows what cells and constraints are.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from fairproj import _validation as door
from fairproj._cells import Cells
from fairproj._validation import Codes
from fairproj.constraints import Constraint, Moments, Watched, moments, rows_of_constraint, watched

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """What the door let in. ``y`` is -1 or +1, ``classes`` the two labels these stand for.

    For the closed loop `watched` says which rates must be alike; no moment is constrained then, and
    ``epsilon`` has a number for each event.
    """

    X: Any
    y: Array
    classes: NDArray[Any]
    weight: Array
    groups: door.Groups
    moments: Moments
    epsilon: Array
    watched: Watched | None = None

    def take(self, rows: Codes) -> Sample:
        """Some of the rows, with all the groups; for the closed loop, and a known encoding of X."""
        assert self.watched is not None
        groups = door.Groups(self.groups.codes[rows], self.groups.values)
        y = self.y[rows]
        cells = Cells.of(y, groups, self.classes, self.watched.cells.positive_class)
        return replace(
            self,
            X=door.take_rows(self.X, rows),
            y=y,
            weight=self.weight[rows],
            groups=groups,
            moments=moments(None, cells),
            watched=replace(self.watched, cells=cells),
        )

    @property
    def labels(self) -> NDArray[Any]:
        """The labels as the user gave them."""
        return self.classes[(self.y > 0).astype(np.intp)]


def split_off(sample: Sample, fraction: float, random_state: Any) -> tuple[Sample, Sample]:
    """Rows to train on and rows to hold out, the same share of every (group, label) cell.

    At least one row of a cell is trained on, and if it has two, one is held out.
    """
    rng = check_random_state(random_state)
    assert sample.watched is not None
    held_out = np.zeros(len(sample.y), dtype=bool)
    index = sample.watched.cells.index
    for cell in np.unique(index):
        rows = np.flatnonzero(index == cell)
        n_held_out = min(max(1, round(fraction * len(rows))), len(rows) - 1)
        held_out[rng.permutation(rows)[:n_held_out]] = True
    return sample.take(np.flatnonzero(~held_out)), sample.take(np.flatnonzero(held_out))


def matched(found: Sample, training: Sample) -> Sample:
    """Rows to watch, with the classes and groups of the training rows."""
    assert training.watched is not None
    unknown = [v for v in found.groups.values if v not in training.groups.values]
    if unknown:
        raise ValueError(
            f"eval_set has groups that the training rows lack: {door.listing(unknown)}; drop these "
            "rows"
        )
    if list(found.classes) != list(training.classes):
        raise ValueError(
            f"eval_set has the labels {door.listing(found.classes)}, the training rows "
            f"{door.listing(training.classes)}; they must be the same"
        )
    codes = np.array([training.groups.values.index(v) for v in found.groups.values], dtype=np.intp)
    groups = door.Groups(codes[found.groups.codes], training.groups.values)
    positive = training.watched.cells.positive_class
    cells = Cells.of(found.y, groups, training.classes, positive)
    return replace(found, groups=groups, watched=replace(training.watched, cells=cells))


def gather(
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    *,
    constraints: Any,
    epsilon: Any,
    pos_label: Any,
    closed_loop: bool = False,
) -> Sample:
    """Check what came with X and put it together; rows of weight zero are left out."""
    y, classes = door.check_labels(y)
    door.check_lengths(X, y)
    weight = door.check_weights(sample_weight, len(y))
    weight = weight / weight.max()  # only ratios matter, and 1e308 + 1e308 is infinite
    groups = door.Groups(np.zeros(len(y), dtype=np.intp), ["all"])
    if sensitive_features is not None:
        groups = door.check_groups(sensitive_features, len(y))
    if not weight.all():
        rows = np.flatnonzero(weight)
        X, y, weight = door.take_rows(X, rows), y[rows], weight[rows]
        groups, constraints = groups.take(rows), rows_of_constraint(constraints, rows)
        if (y == y[0]).all():
            raise ValueError("rows of positive sample_weight must hold two classes, found one")
    if len(groups.values) < 2 and isinstance(constraints, str | Constraint):
        _warn_of_one_group(groups, given=sensitive_features is not None)
    cells = Cells.of(y, groups, classes, door.check_pos_label(pos_label, classes))
    if closed_loop:
        what = watched(constraints, cells)
        slack = door.check_epsilon(epsilon, what.events)
        plain = moments(None, cells)
        return Sample(X, y, classes, weight, groups, plain, slack, what)
    found = moments(constraints, cells)
    return Sample(X, y, classes, weight, groups, found, door.check_epsilon(epsilon, found.names))


def _warn_of_one_group(groups: door.Groups, *, given: bool) -> None:
    found = "no sensitive_features were given"
    if given:
        found = f"sensitive_features holds one group only ({groups.values[0]!s})"
    warnings.warn(
        f"{found}, so there is nothing to balance and this is plain AdaBoost; pass the groups, or "
        "constraints=None if that is meant",
        UserWarning,
        stacklevel=6,
    )
