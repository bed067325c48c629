"""Boosted classifiers trained on weights that balance groups, with a certificate."""

from fairproj import constraints, datasets, metrics
from fairproj._certificate import Certificate
from fairproj._classifier import FairProjClassifier
from fairproj._plots import plot_dynamics
from fairproj._projection import Projection, project
from fairproj._rounds import History, Round, StopReason
from fairproj._versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "FairProjClassifier",
    "History",
    "Projection",
    "Round",
    "StopReason",
    "__version__",
    "constraints",
    "datasets",
    "metrics",
    "plot_dynamics",
    "project",
    "show_versions",
]
