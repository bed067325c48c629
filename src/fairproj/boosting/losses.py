"""Losses of `FairBoostClassifier` as functions of the margin, and the vote of a bounded learner.

A loss phi(m) is taken at m = y f(x), positive where f is right. Divided by phi(0) it bounds the 0/1
loss [m <= 0] from above.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol

import numpy as np
from scipy.special import expit

from fairproj.data.types import Array, Codes

ERROR_FLOOR = 1e-16  # a perfect learner votes like one of this error: 18.4
_LARGEST_MARGIN = 500.0  # exp(-m) is finite beyond it, also as a sum over all rows


def vote(error: float) -> float:
    """alpha = 1/2 ln((1 - error) / error); large but finite for a perfect learner."""
    error = max(error, ERROR_FLOOR)
    return 0.5 * math.log((1 - error) / error)


def sum_segments(values: Array, starts: Codes, weight: Array | None = None) -> Array:
    """The sums of the values, times the weights if any, between one start and the next.

    Parameters
    ----------
    values : array of shape (n_rows,)
    starts : array of int
        The first row of each segment, increasing from 0.
    weight : array of shape (n_rows,), optional

    Returns
    -------
    array
        A sum for each segment.
    """
    total: Array = np.add.reduceat(values if weight is None else weight * values, starts)
    return total


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
        """phi(m).

        Parameters
        ----------
        margin : array of shape (n_rows,)

        Returns
        -------
        array of shape (n_rows,)
        """

    def slope(self, margin: Array) -> Array:
        """u(m) = -phi'(m), the weight of a row in the gradient.

        Parameters
        ----------
        margin : array of shape (n_rows,)

        Returns
        -------
        array of shape (n_rows,)
        """

    def sums_and_slope(
        self, margin: Array, starts: Codes, weight: Array | None = None
    ) -> tuple[Array, Array]:
        """The sums of phi(m), or of weight phi(m), over segments, and u(m) of each row.

        A segment goes from one of the ``starts`` to the next and has at most
        `fairproj.data.cell_order.SEGMENT_ROWS` rows.

        Parameters
        ----------
        margin : array of shape (n_rows,)
        starts : array of int
            The first row of each segment.
        weight : array of shape (n_rows,), optional

        Returns
        -------
        sums : array with an entry for each segment
        slope : array of shape (n_rows,)
        """

    def curvature(self, margin: Array, slope: Array) -> Array:
        """phi''(m), where ``slope`` is that of the same margin.

        Parameters
        ----------
        margin, slope : array of shape (n_rows,)

        Returns
        -------
        array of shape (n_rows,)
        """


class ExponentialLoss:
    """phi(m) = exp(-m), the loss of AdaBoost and of the paper."""

    link_scale = 2.0
    bound: Bound = "multiplicative"
    newton = False

    def value(self, margin: Array) -> Array:
        return np.exp(-np.maximum(margin, -_LARGEST_MARGIN))

    def slope(self, margin: Array) -> Array:
        return self.value(margin)

    def sums_and_slope(
        self, margin: Array, starts: Codes, weight: Array | None = None
    ) -> tuple[Array, Array]:
        value = self.value(margin)
        return sum_segments(value, starts, weight), value

    def curvature(self, margin: Array, slope: Array) -> Array:
        return slope


class LogisticLoss:
    """phi(m) = ln(1 + exp(-m)), the log loss of the probability 1 / (1 + exp(-f))."""

    link_scale = 1.0
    bound: Bound = "additive"
    newton = True

    def value(self, margin: Array) -> Array:
        value: Array = np.logaddexp(0.0, -margin)
        return value

    def slope(self, margin: Array) -> Array:
        slope: Array = expit(-margin)
        return slope

    def sums_and_slope(
        self, margin: Array, starts: Codes, weight: Array | None = None
    ) -> tuple[Array, Array]:
        """With t = exp(-|m|): phi = ln(1 + t) - min(m, 0), and u = t / (1 + t) or 1 / (1 + t).

        Without weights, the sum of logarithms is the logarithm of a product, which takes a tenth of
        the time. It is off by at most 1e-16 a row.
        """
        tail = np.abs(margin)
        np.exp(np.negative(tail, out=tail), out=tail)
        slope = np.maximum(tail, margin <= 0)
        tail += 1.0
        slope /= tail
        wrong = sum_segments(np.minimum(margin, 0.0), starts, weight)
        if weight is None:
            return np.log(np.multiply.reduceat(tail, starts)) - wrong, slope
        return sum_segments(np.log(tail, out=tail), starts, weight) - wrong, slope

    def curvature(self, margin: Array, slope: Array) -> Array:
        return slope * (1.0 - slope)


_REGISTRY: dict[str, Loss] = {"exponential": ExponentialLoss(), "logistic": LogisticLoss()}


def register_loss(name: str, loss: Loss) -> None:
    """Make a loss available as ``loss=`` of `FairBoostClassifier`.

    Parameters
    ----------
    name : str
        It replaces a loss of the same name.
    loss : Loss
    """
    _REGISTRY[name] = loss


def find_loss(name: str) -> Loss:
    if name not in _REGISTRY:
        known = ", ".join(map(repr, sorted(_REGISTRY)))
        raise ValueError(
            f"loss={name!r} is unknown; use one of {known}, or add one with register_loss"
        )
    return _REGISTRY[name]
