"""scikit-learn's own checks of an estimator, on every engine, with no expected failures."""

import pytest
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from conftest import check_or_skip
from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.selection import ConfirmedClassifier

STUMP = DecisionTreeClassifier(max_depth=1)
HEAVY_STUMP = DecisionTreeClassifier(max_depth=1, min_weight_fraction_leaf=0.01)
ADABOOST = {
    "loss": "exponential",
    "learning_rate": 1.0,
    "n_estimators": 10,
    "max_leaf_nodes": 3,
    "min_samples_leaf": 0,
}


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*no (sensitive_features|groups) were given"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
    pytest.mark.filterwarnings("ignore:no learner beat chance"),  # few rows, none in a leaf
]


@parametrize_with_checks(
    [
        FairProjClassifier(n_estimators=10),
        FairBoostClassifier(**ADABOOST),
        ConfirmedClassifier(FairBoostClassifier(**ADABOOST), if_none="warn"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check_or_skip(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [
        FairProjClassifier(n_estimators=10, max_leaf_nodes=8, votes="confidence"),
        FairProjClassifier(n_estimators=10, estimator=STUMP),
        FairBoostClassifier(),
        FairBoostClassifier(n_estimators=10, tree_step="first_order", max_leaf_nodes=4),
        FairBoostClassifier(n_estimators=10, tree_step="first_order", estimator=HEAVY_STUMP),
    ]
)
def test_scikit_learn_checks_with_other_settings(estimator, check):
    check_or_skip(estimator, check)
