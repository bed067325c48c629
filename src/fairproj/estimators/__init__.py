"""The scikit-learn estimators. They hold no mathematics: `fairproj.boosting` does."""

from fairproj.estimators.fairboost import FairBoostClassifier
from fairproj.estimators.fairproj import FairProjClassifier

__all__ = ["FairBoostClassifier", "FairProjClassifier"]
