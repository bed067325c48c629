"""Simulated problems on which the gap between groups, or a constant model, is hard to avoid."""

import numpy as np


def unfair(n_rows=900, n_groups=2, seed=0):
    """Groups whose rates differ under plain boosting, and features that tell the groups apart."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n_rows)
    merit = rng.normal(size=n_rows)
    X = np.column_stack(
        [
            merit + 0.5 * rng.normal(size=n_rows),
            groups + 0.2 * rng.normal(size=n_rows),
            rng.normal(size=n_rows),
        ]
    )
    score = merit + 1.2 * groups / (n_groups - 1) + 0.5 * rng.normal(size=n_rows)
    return X.round(2), np.where(score > 0.6, 1, -1), groups


def one_feature(n_rows=900, seed=0, shift=0.6):
    """One feature that carries ability and group: only a cut of it can change the gap."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n_rows)
    ability = rng.normal(size=n_rows)
    offset = np.where(groups, shift, -shift)
    y = np.where(ability + offset + 0.5 * rng.normal(size=n_rows) > 0, 1, -1)
    X = ability + 0.5 * offset + 0.7 * rng.normal(size=n_rows)
    return X[:, None], y, groups


def rare_positives(n_rows=1600, seed=1, share=0.05):
    """A rare positive label that the features rank well and never make likely."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n_rows)
    X = rng.normal(size=(n_rows, 3))
    score = X[:, 0] + 0.4 * groups + 2.0 * rng.normal(size=n_rows)
    y = np.where(score > np.quantile(score, 1 - share), 1, -1)
    return np.column_stack([X, groups]), y, groups
