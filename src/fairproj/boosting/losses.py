"""Losses of `FairBoostClassifier` as functions of the margin, and the vote of a bounded learner.

A loss phi(m) is taken at m = y f(x), positive where f is right. Divided by phi(0) it bounds the 0/1
loss [m <= 0] from above.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol

import numpy as np
from scipy.special import expit

from fairproj.data.types import Array

ERROR_FLOOR = 1e-16  # a perfect learner votes like one of this error: 18.4
_LARGEST_MARGIN = 500.0  # exp(-m) is finite beyond it, also as a sum over all rows


def vote(error: float) -> float:
    """alpha = 1/2 ln((1 - error) / error); large but finite for a perfect learner."""
    error = max(error, ERROR_FLOOR)
    return 0.5 * math.log((1 - error) / error)


Bound = Literal["multiplicative", "additive"] | None


class Loss(Protocol):
    """A loss phi of the margin: convex, decreasing, and at least phi(0) for m <= 0.

    Attributes
    ----------
    link_scale : float
        The probability that the loss estimates is 1 / (1 + exp(-link_scale f)).
    bound : {"multiplicative", "additive"} or None
        What is proved about a first-order round; see `fairproj.boosting.bounds`.
    newton : bool
        Whether Newton trees differ from first-order trees, so that ``tree_step`` has a meaning.
    """

    link_scale: float
    bound: Bound
    newton: bool

    def value(self, margin: Array) -> Array:
        """phi(m)."""

    def slope(self, margin: Array) -> Array:
        """u(m) = -phi'(m), the weight of a row in the gradient."""

    def value_and_slope(self, margin: Array) -> tuple[Array, Array]:
        """Both at once, which may be faster."""

    def curvature(self, margin: Array, slope: Array) -> Array:
        """phi''(m), where ``slope`` is that of the same margin."""


class ExponentialLoss:
    """phi(m) = exp(-m), the loss of AdaBoost and of the paper."""

    link_scale = 2.0
    bound: Bound = "multiplicative"
    newton = False

    def value(self, margin: Array) -> Array:
        return np.exp(-np.maximum(margin, -_LARGEST_MARGIN))

    def slope(self, margin: Array) -> Array:
        return self.value(margin)

    def value_and_slope(self, margin: Array) -> tuple[Array, Array]:
        value = self.value(margin)
        return value, value

    def curvature(self, margin: Array, slope: Array) -> Array:
        return slope


class LogisticLoss:
    """phi(m) = ln(1 + exp(-m)), the log loss of the probability 1 / (1 + exp(-f))."""

    link_scale = 1.0
    bound: Bound = "additive"
    newton = True

    def value(self, margin: Array) -> Array:
        return self.value_and_slope(margin)[0]

    def slope(self, margin: Array) -> Array:
        slope: Array = expit(-margin)
        return slope

    def value_and_slope(self, margin: Array) -> tuple[Array, Array]:
        tail = np.abs(margin)  # then in place, which is a third faster
        np.exp(np.negative(tail, out=tail), out=tail)
        slope = np.where(margin > 0, tail, 1.0)
        tail += 1.0
        slope /= tail
        value = np.log(tail, out=tail)  # off by 1e-16 at most, and twice as fast as log1p
        value -= np.minimum(margin, 0.0)
        return value, slope

    def curvature(self, margin: Array, slope: Array) -> Array:
        return slope * (1.0 - slope)


_REGISTRY: dict[str, Loss] = {"exponential": ExponentialLoss(), "logistic": LogisticLoss()}


def register_loss(name: str, loss: Loss) -> None:
    """Make a loss available as ``loss=`` of `FairBoostClassifier`."""
    _REGISTRY[name] = loss


def find_loss(name: str) -> Loss:
    if name not in _REGISTRY:
        known = ", ".join(map(repr, sorted(_REGISTRY)))
        raise ValueError(
            f"loss={name!r} is unknown; use one of {known}, or add one with register_loss"
        )
    return _REGISTRY[name]
