"""Boosted classifiers whose error rates differ little between groups, with a certificate."""

from fairproj import constraints, datasets, metrics, selection
from fairproj.boosting.certificate import Certificate, GapCertificate
from fairproj.boosting.projection import Projection, project
from fairproj.boosting.record import History, Round, StopReason
from fairproj.estimators import FairBoostClassifier, FairProjClassifier
from fairproj.estimators.saving import load
from fairproj.inference import FairnessReport
from fairproj.io.model_file import ModelFileError
from fairproj.io.sources import Batches
from fairproj.io.versions import show_versions
from fairproj.report.plots import plot_dynamics, plot_gaps, plot_rates
from fairproj.selection import GapSearchCV

__version__ = "0.2.0.dev0"

__all__ = [
    "Batches",
    "Certificate",
    "FairBoostClassifier",
    "FairProjClassifier",
    "FairnessReport",
    "GapCertificate",
    "GapSearchCV",
    "History",
    "ModelFileError",
    "Projection",
    "Round",
    "StopReason",
    "__version__",
    "constraints",
    "datasets",
    "load",
    "metrics",
    "plot_dynamics",
    "plot_gaps",
    "plot_rates",
    "project",
    "selection",
    "show_versions",
]
