"""Engines fit one weak learner on given weights; they know nothing of fairness.

`Engine` is all the loop asks of one, `Ensemble` all the classifier asks of what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from fairproj._validation import Array

Learner = Any  # whatever the engine wants to get back in `ensemble`


class Ensemble(Protocol):
    """A finished model: the margin f(x) = sum_t vote_t h_t(x), and what can be told of it."""

    @property
    def feature_importances(self) -> Array: ...

    def __len__(self) -> int: ...

    def margin(self, X: Any) -> Array: ...

    def staged_margin(self, X: Any) -> Iterator[Array]:
        """The margin after 1, 2, ... learners."""


class Engine(Protocol):
    """Bound to the training rows; fits learners on weights that sum to one.

    Attributes
    ----------
    held_out_h : array
        What the last learner says of the rows held out, where there are such.
    """

    held_out_h: NDArray[Any]

    def fit(self, w: Array) -> tuple[Learner, NDArray[Any]]:
        """A learner trained on w, and h in [-1, 1] on the training rows; integers if discrete."""

    def constant(self, h: float) -> tuple[Learner, NDArray[Any]]:
        """The learner that says ``h`` of every row."""

    def ensemble(self, learners: Sequence[Learner], votes: Sequence[float]) -> Ensemble:
        """The model sum_t vote_t h_t, after the learners of an earlier run if there was one."""
