"""scikit-learn's own checks of an estimator, on both engines, with no expected failures."""

import pytest
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairproj import FairProjClassifier


@pytest.mark.filterwarnings("ignore:no sensitive_features were given")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@parametrize_with_checks(
    [
        FairProjClassifier(n_estimators=10),
        FairProjClassifier(n_estimators=10, max_leaf_nodes=8, votes="confidence"),
        FairProjClassifier(n_estimators=10, estimator=DecisionTreeClassifier(max_depth=1)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
