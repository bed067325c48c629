"""Boosted classifiers whose error rates differ little between groups, with a certificate."""

from fairproj.estimators import FairBoostClassifier, FairProjClassifier

__version__ = "0.2.0"
