"""Who chooses the training weights w each round: here, the projection of the paper.

Apart because it is the one thing that differs between ways of enforcing a constraint. A chooser is
shown the cells' log masses under q and answers with a `Projection`.
"""

from __future__ import annotations

from typing import Protocol

from fairproj._projection import Array, Projection, Projector


class Chooser(Protocol):
    def __call__(self, log_mass: Array) -> Projection: ...


class ProjectedWeights:
    """w = the projection of q on the balanced distributions, warm-started with the last round's."""

    def __init__(self, features: Array, epsilon: Array, start: Array | None = None) -> None:
        self._project = Projector(features, epsilon)
        self._multipliers = start

    def __call__(self, log_mass: Array) -> Projection:
        projection = self._project(log_mass, self._multipliers)
        self._multipliers = projection.multipliers
        return projection
