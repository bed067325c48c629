"""Simulated problems on which the gap between groups, or a constant model, is hard to avoid."""

import numpy as np
import pandas as pd


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


def credit_frame(n_rows=4000, share=0.05, seed=0, noise=1.5, difference=0.2):
    """A bank's file: few loans default, and with much noise the features make none likely."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["female", "male"], n_rows, p=[0.6, 0.4])
    risk = rng.normal(size=n_rows) + difference * (sex == "male")
    frame = pd.DataFrame(
        {
            "customer_id": np.arange(n_rows),
            "LIMIT_BAL": np.exp(11 - 0.4 * risk + 0.6 * rng.normal(size=n_rows)).round(-3),
            "PAY_0": np.clip(np.round(0.8 * risk + 0.8 * rng.normal(size=n_rows)), -2, 6),
            "PAY_2": np.clip(np.round(0.6 * risk + rng.normal(size=n_rows)), -2, 6),
            "AGE": rng.integers(21, 70, n_rows),
            "SEX": sex,
        }
    )
    score = risk + noise * rng.normal(size=n_rows)
    return frame.assign(default=(score > np.quantile(score, 1 - share)).astype(int))


def law_frame(n_rows=4000, seed=0):
    """Nearly nine of ten pass, the groups differ in base rate and in features."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["other", "white"], n_rows, p=[0.16, 0.84])
    ability = rng.normal(size=n_rows) + 0.9 * (race == "white")
    frame = pd.DataFrame(
        {
            "lsat": (36 + 5 * (ability + 0.7 * rng.normal(size=n_rows))).round(),
            "ugpa": (3.2 + 0.3 * (0.5 * ability + rng.normal(size=n_rows))).round(1),
            "decile": np.clip((5 + 2 * ability + 2 * rng.normal(size=n_rows)).round(), 1, 10),
            "race": race,
        }
    )
    score = ability + 0.9 * rng.normal(size=n_rows)
    return frame.assign(passed=np.where(score > np.quantile(score, 0.112), "yes", "no"))
