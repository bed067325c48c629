"""Other readings of the paper's constraint, to see whether one of them explains its numbers.

Each chooses the training weights w in another way, for one constraint between two
groups. `FairProjClassifier` itself follows the paper's formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from fairproj.boosting.projection import Projection, Projector, project, tilt
from fairproj.data.types import Array
from fairproj.estimators import FairProjClassifier


def with_multipliers(log_mass: Array, features: Array, multipliers: Array) -> Projection:
    """w_c = Q_c exp(-(G lam)_c) / Z for given multipliers, optimal or not."""
    tilted = tilt(log_mass, -(features @ multipliers))
    return replace(
        tilted,
        multipliers=multipliers,
        balance=tilted.mass @ features,
        balance_q=np.exp(log_mass) @ features,
    )


class ReadingClassifier(FairProjClassifier):
    """FairProj with another choice of w, made from the features and epsilon."""

    def __init__(
        self,
        constraints: Any = "equal_opportunity",
        epsilon: Any = 0.1,
        *,
        reading: Callable[[Array, Array], Any] = Projector,
        n_estimators: int = 100,
        max_bins: int = 255,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            constraints, epsilon, n_estimators=n_estimators, max_bins=max_bins, n_jobs=n_jobs
        )
        self.reading = reading

    def _projector(self, features: Array, epsilon: Array) -> Any:
        return self.reading(features, epsilon)


class Reading:
    """Base of the readings, which are called with the cells' log masses."""

    def __init__(self, features: Array, epsilon: Array) -> None:
        self._features, self._epsilon = features, epsilon


class ShareOfPositives(Reading):
    """|<w, g>| <= epsilon <w, |g|>: the difference of the groups' shares among the positives.

    With s the sign of <q, g>, the bound that can be broken is <w, s g - epsilon |g|> <= 0. Where q
    breaks it the projection meets it with equality.
    """

    def __call__(self, log_mass: Array, start: Array | None = None) -> Projection:
        features = self._features
        sign = np.sign(np.exp(log_mass) @ features)
        excess = sign * features - self._epsilon * np.abs(features)
        if (np.exp(log_mass) @ excess).item() <= 0:
            return with_multipliers(log_mass, features, np.zeros(1))
        projection = project(log_mass, excess, np.zeros(1))
        return replace(
            projection,
            balance=projection.mass @ features,
            balance_q=np.exp(log_mass) @ features,
        )


class EqualMasses(Reading):
    """Masses that differ by more than epsilon are made equal, not only brought within epsilon."""

    def __call__(self, log_mass: Array, start: Array | None = None) -> Projection:
        beyond = np.abs(np.exp(log_mass) @ self._features) > self._epsilon
        return project(log_mass, self._features, np.where(beyond, 0.0, 1.0))


class SmoothedDual(Reading):
    """The paper's own solver: L-BFGS-B on the dual with |lam| replaced by sqrt(lam^2 + 1e-8)."""

    def __call__(self, log_mass: Array, start: Array | None = None) -> Projection:
        def dual(lam: Array) -> float:
            log_z = np.logaddexp.reduce(log_mass - self._features @ lam)
            return float(log_z + self._epsilon @ np.sqrt(lam**2 + 1e-8))

        solution = minimize(dual, np.zeros(1), method="L-BFGS-B")
        return with_multipliers(log_mass, self._features, solution.x)


class AddedUp(Reading):
    """Each round's multiplier is added to those of the rounds before."""

    def __init__(self, features: Array, epsilon: Array) -> None:
        super().__init__(features, epsilon)
        self._sum = np.zeros(1)

    def __call__(self, log_mass: Array, start: Array | None = None) -> Projection:
        self._sum = self._sum + project(log_mass, self._features, self._epsilon).multipliers
        return with_multipliers(log_mass, self._features, self._sum)


class FixedMultiplier(Reading):
    """Masses that differ by more than epsilon are tilted by a fixed multiplier."""

    def __init__(self, features: Array, epsilon: Array, multiplier: float) -> None:
        super().__init__(features, epsilon)
        self._multiplier = multiplier

    def __call__(self, log_mass: Array, start: Array | None = None) -> Projection:
        imbalance = np.exp(log_mass) @ self._features
        beyond = np.abs(imbalance) > self._epsilon
        multipliers = np.where(beyond, np.sign(imbalance) * self._multiplier, 0.0)
        return with_multipliers(log_mass, self._features, multipliers)
