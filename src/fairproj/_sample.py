"""A sample: rows, labels, weights and groups together, with what must balance among them.

Apart from the classifier because it is the same for every engine, and from the door because it
knows what cells and constraints are.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj import _validation as door
from fairproj._cells import Cells
from fairproj.constraints import Constraint, Moments, moments, rows_of_constraint

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """What the door let in. ``y`` is -1 or +1, ``classes`` the two labels these stand for."""

    X: Any
    y: Array
    classes: NDArray[Any]
    weight: Array
    groups: door.Groups
    moments: Moments
    epsilon: Array

    @property
    def labels(self) -> NDArray[Any]:
        """The labels as the user gave them."""
        return self.classes[(self.y > 0).astype(np.intp)]


def gather(
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    *,
    constraints: Any,
    epsilon: Any,
    pos_label: Any,
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
