"""The scikit-learn estimators. They hold no mathematics: `fairproj.boosting` does."""

from fairproj.estimators.fairboost import FairBoostClassifier
from fairproj.estimators.fairproj import FairProjClassifier
from fairproj.estimators.price import Price, Scores

__all__ = ["FairBoostClassifier", "FairProjClassifier", "Price", "Scores"]
