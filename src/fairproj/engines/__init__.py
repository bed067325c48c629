"""Engines fit one weak learner on given gradients: LightGBM, XGBoost or scikit-learn."""

from fairproj.engines import lightgbm, sklearn, xgboost
from fairproj.engines.base import (
    Engine,
    Ensemble,
    Fitted,
    LearnerKind,
    LearnerSettings,
    Saved,
    Targets,
    find_engine,
    register_engine,
)

register_engine(lightgbm.LightGBMTrees())
register_engine(sklearn.ScikitLearnClassifiers())
register_engine(xgboost.XGBoostTrees())

__all__ = [
    "Engine",
    "Ensemble",
    "Fitted",
    "LearnerKind",
    "LearnerSettings",
    "Saved",
    "Targets",
    "find_engine",
    "register_engine",
]
