"""Boosted classifiers trained on weights that balance groups, with a certificate."""

from fairproj import audit, constraints, datasets, metrics, selection
from fairproj._certificate import Certificate, ClosedLoopCertificate
from fairproj._classifier import FairProjClassifier
from fairproj._plots import plot_dynamics, plot_gaps, plot_rates
from fairproj._projection import Projection, project
from fairproj._rounds import History, Round, StopReason
from fairproj._versions import show_versions
from fairproj.audit import FairnessReport, fairness_report
from fairproj.persistence import ModelFileError, load

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "ClosedLoopCertificate",
    "FairProjClassifier",
    "FairnessReport",
    "History",
    "ModelFileError",
    "Projection",
    "Round",
    "StopReason",
    "__version__",
    "audit",
    "constraints",
    "datasets",
    "fairness_report",
    "load",
    "metrics",
    "plot_dynamics",
    "plot_gaps",
    "plot_rates",
    "project",
    "selection",
    "show_versions",
]
