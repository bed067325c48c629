"""Splits by group and label, the frontier of score and gap, and models within a gap."""

from fairproj.selection.confirm import ConfirmedClassifier, NoSolutionFoundError
from fairproj.selection.frontier import Frontier, fairness_frontier
from fairproj.selection.search import GapSearchCV
from fairproj.selection.splits import FairStratifiedKFold, fair_train_test_split

__all__ = [
    "ConfirmedClassifier",
    "FairStratifiedKFold",
    "Frontier",
    "GapSearchCV",
    "NoSolutionFoundError",
    "fair_train_test_split",
    "fairness_frontier",
]
