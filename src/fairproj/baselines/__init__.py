"""Other methods of fair classification as scikit-learn classifiers, for comparison.

Each takes ``fit(X, y, *, sensitive_features=None)`` like `FairProjClassifier`. Two come from
fairlearn; the others are our versions of published code, named in their docstrings. AdaBoost itself
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
