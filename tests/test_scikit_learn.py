"""scikit-learn's own checks of an estimator, on every engine, with no expected failures."""

import pytest
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.selection import GapSearchCV

STUMP = DecisionTreeClassifier(max_depth=1)


@pytest.mark.filterwarnings("ignore:no (sensitive_features|groups) were given")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@parametrize_with_checks(
    [
        FairProjClassifier(n_estimators=10),
        FairProjClassifier(n_estimators=10, max_leaf_nodes=8, votes="confidence"),
        FairProjClassifier(n_estimators=10, estimator=STUMP),
        FairBoostClassifier(n_estimators=10),
        FairBoostClassifier(n_estimators=10, max_leaf_nodes=8, votes="confidence"),
        FairBoostClassifier(n_estimators=10, estimator=STUMP),
        GapSearchCV(FairBoostClassifier(n_estimators=10), param_values=[0.1, 0.2], cv=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
