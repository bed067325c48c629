"""How well a column tells a class: the area under the ROC curve of cross-fitted shares.

Rows are dealt into folds. In a row's bin b, the share of class g among the rows of all other folds
is its score,

    s(b, g) = (n(b, g) + prior(g)) / (n(b) + 1),

which is the prior, the share of g among all rows, where the other folds have no row of the bin. So
a column in which nearly every row has a value of its own tells nothing, as it should. The AUC of
the scores, g against all other classes, is taken in each fold and averaged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairproj.data.types import Array, Codes

FEWEST_ROWS = 20  # of a class whose AUC is computed; of fewer it could be anything
N_FOLDS = 5


def deal_folds(classes: Codes, seed: int, n_folds: int = N_FOLDS) -> Codes:
    """A fold for each row, such that all folds have nearly the same number of each class."""
    order = np.lexsort((np.random.default_rng(seed).random(len(classes)), classes))
    folds = np.empty(len(classes), dtype=np.intp)
    folds[order] = np.arange(len(classes)) % n_folds
    return folds


def usable_classes(classes: Codes) -> Codes:
    """The classes with enough rows, and enough rows of others."""
    counts = np.bincount(classes)
    enough = (counts >= FEWEST_ROWS) & (len(classes) - counts >= FEWEST_ROWS)
    return np.flatnonzero(enough)


def class_aucs(bins: Codes, n_bins: int, classes: Codes, wanted: Codes, folds: Codes) -> Array:
    """The cross-fitted AUC of each wanted class against all others."""
    in_bins = _count(bins, n_bins, folds)
    if len(wanted) == 2 and classes.max() == 1:  # the scores of the other are one less these
        return np.repeat(class_aucs(bins, n_bins, classes, wanted[1:], folds), 2)
    return np.array(
        [
            _mean_auc(_count(bins[inside], n_bins, folds[inside]), in_bins)
            for inside in (classes == each for each in wanted)
        ]
    )


def _count(bins: Codes, n_bins: int, folds: Codes) -> NDArray[np.intp]:
    """Rows of each fold in each bin."""
    return np.bincount(folds * n_bins + bins, minlength=N_FOLDS * n_bins).reshape(N_FOLDS, n_bins)


def _mean_auc(hits: NDArray[np.intp], rows: NDArray[np.intp]) -> float:
    """From the rows of a class and of all classes, by fold and bin."""
    all_hits, all_rows = hits.sum(axis=0), rows.sum(axis=0)
    aucs = []
    for fold in range(N_FOLDS):
        present = rows[fold] > 0
        scores = cross_fitted_scores(all_hits - hits[fold], all_rows - rows[fold])[present]
        positive = hits[fold][present]
        aucs.append(binned_auc(scores, positive, rows[fold][present] - positive))
    return float(np.mean(aucs))


def cross_fitted_scores(hits: NDArray[np.intp], rows: NDArray[np.intp]) -> Array:
    """s(b, g) of all bins, from the rows of the other folds."""
    prior = hits.sum() / rows.sum()
    scores: Array = (hits + prior) / (rows + 1)
    return scores


def binned_auc(scores: Array, positive: NDArray[np.intp], negative: NDArray[np.intp]) -> float:
    """P(score of a positive row > score of a negative one) + P(equal) / 2.

    ``scores`` are those of bins, with their rows of either kind.
    """
    order = np.argsort(scores)
    ordered = scores[order]
    below = np.concatenate([[0], np.cumsum(negative[order])])
    smaller = below[np.searchsorted(ordered, ordered, side="left")]
    not_larger = below[np.searchsorted(ordered, ordered, side="right")]
    wins = (positive[order] * (smaller + not_larger)).sum() / 2
    return float(wins / (positive.sum() * negative.sum()))
