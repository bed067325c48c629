"""Which round to stop at, looking back: the closed loop's gap rises and falls as it learns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairproj._projection import Array
from fairproj._rounds import History
from fairproj._validation import Codes

ROUNDING = 1e-9  # a constant model must not be more accurate than itself


class Choice(NamedTuple):
    """The number of rounds to keep, whether their gaps are within epsilon, and whether of use."""

    kept: int
    met: bool
    useful: bool = True


def choose_round(gaps: Array, epsilon: Array, accuracy: Array, constant: float) -> Choice:
    """The most accurate of the rounds whose gaps are all within epsilon.

    A model that is no more accurate than the better constant one (``constant``) is no use, though
    its gap be zero: it is not considered. If no useful round is within epsilon, the useful one of
    the later half that comes nearest, or of all if the later half has none. If no round at all is
    useful, the most accurate.

    Parameters
    ----------
    gaps : array of shape (n_rounds, n_events)
    epsilon : array of shape (n_events,)
    accuracy : array of shape (n_rounds,)
    constant : float
        The accuracy of the better of the two constant models.
    """
    excess = (gaps - epsilon).max(axis=1, initial=-np.inf)
    useful = accuracy > constant + ROUNDING
    within = useful & (excess <= 0)
    if within.any():
        return Choice(int(np.argmax(np.where(within, accuracy, -1.0))) + 1, True)
    if not useful.any():
        return Choice(int(np.argmax(accuracy)) + 1, False, False)
    later = useful & (np.arange(len(excess)) >= len(excess) // 2)
    candidates = later if later.any() else useful
    return Choice(int(np.argmin(np.where(candidates, excess, np.inf))) + 1, False)


def best_round(history: History, label: Codes, size: Array) -> Choice:
    """How many rounds of a closed loop to keep; all where there is nothing to compare.

    ``label`` is each cell's class, ``size`` its weight among the watched rows.
    """
    if len(history.watched) <= len(history.events):  # one group, or no constraint
        return Choice(len(history), True)
    by_label = np.bincount(label, size)
    constant = float(by_label.max() / by_label.sum())
    epsilon, accuracy = np.array(history.epsilon), history.columns["accuracy"]
    return choose_round(history.by_event(), epsilon, accuracy, constant)
