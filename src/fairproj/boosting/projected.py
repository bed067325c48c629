"""FairProj (the paper): train on the projection of q, vote by the error under q."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairproj.boosting.losses import vote
from fairproj.boosting.projection import Projection
from fairproj.boosting.record import Round, StopReason
from fairproj.boosting.weights import ExponentialWeights
from fairproj.data.types import Array
from fairproj.engines.base import Fitted, Targets


class ProjectedWeights:
    """The objective of `FairProjClassifier`.

    w is the projection of q on the balanced distributions (Definition 3.2). Each projection starts
    from the multipliers of the last one.

    Parameters
    ----------
    weights : ExponentialWeights
        q and the exact loss.
    project : callable
        ``project(log_mass, start)`` is the `Projection` of the cells' masses; a `Projector`.
    start : array of shape (n_constraints,), optional
        Multipliers to start from.
    """

    def __init__(
        self,
        weights: ExponentialWeights,
        project: Callable[[Array, Array | None], Projection],
        start: Array | None = None,
    ) -> None:
        self.weights = weights
        self._project = project
        self._multipliers = start

    def targets(self) -> Targets:
        """Gradient -w y and Hessian w."""
        self._projection = self._project(self.weights.log_mass, self._multipliers)
        self._multipliers = self._projection.multipliers
        return self.weights.targets(self._projection.mass)

    def judge(self, fitted: Fitted) -> float:
        """The learner's error under q."""
        q = np.exp(self.weights.log_mass)
        errors = self.weights.errors(fitted.h)
        self._error_q = float(q @ errors)
        self._error_w = float(self._projection.mass @ errors)
        return self._error_q

    def step(self) -> float:
        """alpha, from the error under q."""
        return vote(self._error_q)

    def add(self, fitted: Fitted, vote: float) -> Round:
        """Go from f to f + vote h, for the learner that was judged last."""
        self.weights.add(vote)
        projection = self._projection
        return Round(
            error_q=self._error_q,
            error_w=self._error_w,
            kl=projection.kl,
            tv=projection.tv,
            vote=vote,
            log_loss=float(self.weights.log_loss),
            multipliers=tuple(projection.multipliers.tolist()),
            balance=tuple(projection.balance.tolist()),
            balance_q=tuple(projection.balance_q.tolist()),
        )

    def stop_reason(self) -> StopReason | None:
        return None

    def majority(self) -> float:
        return self.weights.majority()
