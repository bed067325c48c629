"""Boosted classifiers whose approval or error rates differ little between groups."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

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
    "plot_gap_curve",
    "plot_gaps",
    "plot_gaps_by",
    "plot_rates",
    "project",
    "selection",
    "show_versions",
]

# A name is imported when it is first used, so that ``fairproj --version`` need not wait for NumPy,
# pandas and scikit-learn. Type checkers read the imports below, and never `__getattr__`, which
# would let them accept any name.
if TYPE_CHECKING:
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
    from fairproj.report.plots import (
        plot_dynamics,
        plot_gap_curve,
        plot_gaps,
        plot_gaps_by,
        plot_rates,
    )
    from fairproj.selection import GapSearchCV
else:
    _HOMES = {
        "Batches": "io.sources",
        "Certificate": "boosting.certificate",
        "FairBoostClassifier": "estimators",
        "FairProjClassifier": "estimators",
        "FairnessReport": "inference",
        "GapCertificate": "boosting.certificate",
        "GapSearchCV": "selection",
        "History": "boosting.record",
        "ModelFileError": "io.model_file",
        "Projection": "boosting.projection",
        "Round": "boosting.record",
        "StopReason": "boosting.record",
        "load": "estimators.saving",
        "plot_dynamics": "report.plots",
        "plot_gap_curve": "report.plots",
        "plot_gaps": "report.plots",
        "plot_gaps_by": "report.plots",
        "plot_rates": "report.plots",
        "project": "boosting.projection",
        "show_versions": "io.versions",
    }
    _MODULES = {"constraints", "datasets", "metrics", "selection"}
    # Public too, but not among the names of ``import *``.
    _OTHERS = {
        "baselines",
        "boosting",
        "data",
        "distributed",
        "engines",
        "estimators",
        "experiments",
        "inference",
        "inspection",
        "io",
        "report",
    }

    def __getattr__(name: str) -> Any:
        if name in _MODULES | _OTHERS:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value  # found without this function from now on
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_OTHERS})
