"""Engines fit one weak learner on given gradients: LightGBM trees or scikit-learn classifiers."""

from fairproj.engines import lightgbm, sklearn
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
