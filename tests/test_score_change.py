"""Standard errors of differences between scores: brute force, a bootstrap and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score

from fairproj.data.checks import check_groups
from fairproj.inference.figures import ModelFigures, resample
from fairproj.inference.score_change import ScoreParts, difference_to_confirm


def draw(n_rows, seed, decimals=2):
    """Labels and the scores of two models that have most of their noise in common."""
    rng = np.random.default_rng(seed)
    actual = np.append(rng.random(n_rows - 2) < 0.3, [True, False])
    shared = actual + rng.normal(size=n_rows)
    scores = [np.round(shared + 0.4 * rng.normal(size=n_rows), decimals) for _ in range(2)]
    return actual, scores


@given(st.integers(2, 40), st.integers(0, 1000))
def test_the_parts_of_an_area_by_looking_at_every_pair(n_rows, seed):
    actual, (score, _) = draw(n_rows, seed, decimals=0)
    lower, higher = ScoreParts.of("roc_auc", actual, actual, score).means
    wins = np.sign(score[actual][:, None] - score[~actual][None, :]) / 2 + 0.5
    np.testing.assert_allclose(lower, wins.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(higher, wins.mean(axis=0), atol=1e-12)
    assert lower.mean() == pytest.approx(roc_auc_score(actual, score), abs=1e-12)


def test_the_parts_of_an_accuracy():
    actual, (score, _) = draw(50, 0)
    predicted = score > 0.5
    (correct,) = ScoreParts.of("accuracy", actual, predicted, score).means
    assert correct.mean() == pytest.approx(accuracy_score(actual, predicted), abs=1e-12)


@pytest.mark.parametrize("scoring", ["roc_auc", "accuracy"])
def test_the_error_of_a_difference_against_a_bootstrap(scoring):
    actual, scores = draw(3000, 1)
    groups = check_groups(np.zeros(3000), 3000)
    models = [ModelFigures(actual, s > 0.5, s, groups, _Gap(), 0) for s in scores]
    column = ["roc_auc", "accuracy"].index(scoring)
    resampled = resample(models, 500, 0).totals[:, :, column]
    expected = np.diff(resampled, axis=1).std()
    one, other = (ScoreParts.of(scoring, actual, s > 0.5, s) for s in scores)
    assert one.difference_error(other) == pytest.approx(expected, rel=0.15)
    assert one.difference_error(one) == 0
    alone = resampled[:, 0].std()
    assert one.difference_error(other) < 0.8 * np.sqrt(2) * alone  # they are paired


class _Gap:
    """A gap of one group, which `ModelFigures` asks for."""

    def value(self, counts):
        return 0.0


def test_how_often_other_rows_confirm_a_difference():
    """Means of normal draws: the share of later intervals above the limit is the power."""
    rng = np.random.default_rng(0)
    for ratio in (0.5, 1.0, 4.0):
        spare = difference_to_confirm(np.array(1.0), ratio, 0.95, 0.8)
        # What is known is the first measurement; the true difference is around it.
        truth = spare + rng.normal(size=40_000)
        later = truth + np.sqrt(ratio) * rng.normal(size=40_000)
        confirmed = (later - 1.959964 * np.sqrt(ratio) > 0).mean()
        assert confirmed == pytest.approx(0.8, abs=0.01)
