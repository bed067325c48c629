"""Other people's methods as ordinary scikit-learn classifiers, to compare with.

Each takes ``fit(X, y, *, sensitive_features)`` like `FairProjClassifier`. Two come from fairlearn;
the others are own versions, and their docstrings say after what they were written. AdaBoost itself
is ``FairProjClassifier(None)`` or scikit-learn's.
"""

from fairproj.baselines._adafair import AdaFair
from fairproj.baselines._fairlearn import ExponentiatedGradient, ThresholdOptimizer
from fairproj.baselines._weights import (
    FAB,
    AdaptiveReweighting,
    Reweighing,
    reweighing_weights,
)

__all__ = [
    "FAB",
    "AdaFair",
    "AdaptiveReweighting",
    "ExponentiatedGradient",
    "Reweighing",
    "ThresholdOptimizer",
    "reweighing_weights",
]
