"""Other readings of the paper's constraint, to see whether one explains its numbers.

Not part of the library's face: the class that users have follows the paper's formulas.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from fairproj import FairProjClassifier
from fairproj.boosting.projection import Array, Projection, project, tilt
from fairproj.boosting.record import Round
from fairproj.data.sample import Sample
from fairproj.boosting.policies import Chooser, ProjectedWeights
from fairproj.boosting.monitor import Watch


def with_multipliers(log_mass: Array, features: Array, multipliers: Array) -> Projection:
    """w_c = Q_c exp(-(G lam)_c) / Z for given multipliers, optimal or not."""
    found = tilt(log_mass, -(features @ multipliers))
    return replace(found, multipliers=multipliers, balance=found.mass @ features)


class _Reading(FairProjClassifier):
    """FairProj whose w is found in another way, for one constraint between two groups."""

    def _chooser(self, sample: Sample, rounds: list[Round], watch: Watch | None) -> Chooser:
        features, epsilon = sample.moments.features, float(sample.epsilon[0])

        class Reading(ProjectedWeights):
            def __call__(this, log_mass: Array) -> Projection:  # noqa: N805
                return self._weights(log_mass, features, epsilon)

        return Reading(features, sample.epsilon)

    def _weights(self, log_mass: Array, features: Array, epsilon: float) -> Projection:
        raise NotImplementedError


class ShareOfPositives(_Reading):
    """|<w, g>| <= epsilon <w, |g|>: the difference of the groups' shares among the positives.

    With s the sign of <q, g>, the bound that can be broken is <w, s g - epsilon |g|> <= 0. Where q
    breaks it the projection meets it with equality.
    """

    def _weights(self, log_mass: Array, features: Array, epsilon: float) -> Projection:
        sign = np.sign(np.exp(log_mass) @ features)
        excess = sign * features - epsilon * np.abs(features)
        if (np.exp(log_mass) @ excess).item() <= 0:
            return with_multipliers(log_mass, features, np.zeros(1))
        found = project(log_mass, excess, np.zeros(1))
        return replace(found, balance=found.mass @ features)


class EqualMasses(_Reading):
    """Masses that differ by more than epsilon are made equal, not merely brought within epsilon."""

    def _weights(self, log_mass: Array, features: Array, epsilon: float) -> Projection:
        beyond = (np.abs(np.exp(log_mass) @ features) > epsilon).item()
        return project(log_mass, features, np.array([0.0 if beyond else 1.0]))


class SmoothedDual(_Reading):
    """The paper's own solver: L-BFGS-B on the dual with |lam| replaced by sqrt(lam^2 + 1e-8)."""

    def _weights(self, log_mass: Array, features: Array, epsilon: float) -> Projection:
        def dual(lam: Array) -> float:
            log_z = np.logaddexp.reduce(log_mass - features @ lam)
            return float(log_z + epsilon * np.sqrt(lam**2 + 1e-8).sum())

        found = minimize(dual, np.zeros(1), method="L-BFGS-B")
        return with_multipliers(log_mass, features, found.x)


class AddedUp(_Reading):
    """Each round's multiplier is added to those of the rounds before."""

    def fit(self, *args: Any, **kwargs: Any) -> AddedUp:
        self._sum = np.zeros(1)
        super().fit(*args, **kwargs)
        return self

    def _weights(self, log_mass: Array, features: Array, epsilon: float) -> Projection:
        self._sum = self._sum + project(log_mass, features, np.array([epsilon])).multipliers
        return with_multipliers(log_mass, features, self._sum)


class FixedMultiplier(_Reading):
    """Masses that differ by more than epsilon are tilted by a multiplier given beforehand."""

    def __init__(
        self,
        constraints: Any = "equal_opportunity",
        epsilon: Any = 0.1,
        *,
        multiplier: float = 1.0,
        n_estimators: int = 100,
        max_bins: int = 255,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            constraints, epsilon, n_estimators=n_estimators, max_bins=max_bins, n_jobs=n_jobs
        )
        self.multiplier = multiplier

    def _weights(self, log_mass: Array, features: Array, epsilon: float) -> Projection:
        imbalance = np.exp(log_mass) @ features
        beyond = np.abs(imbalance) > epsilon
        multipliers = np.where(beyond, np.sign(imbalance) * self.multiplier, 0.0)
        return with_multipliers(log_mass, features, multipliers)
