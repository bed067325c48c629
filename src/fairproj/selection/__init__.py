"""Splits by group and label, the frontier of score and gap, and searches for models."""

from fairproj.selection.alternatives import default_grid, find_alternatives
from fairproj.selection.comparison import Alternatives, SearchOutcome
from fairproj.selection.confirm import ConfirmedClassifier
from fairproj.selection.errors import NoSolutionFoundError
from fairproj.selection.frontier import Frontier, fairness_frontier
from fairproj.selection.search import GapSearchCV
from fairproj.selection.splits import FairStratifiedKFold, fair_train_test_split

__all__ = [
    "Alternatives",
    "ConfirmedClassifier",
    "FairStratifiedKFold",
    "Frontier",
    "GapSearchCV",
    "NoSolutionFoundError",
    "SearchOutcome",
    "default_grid",
    "fair_train_test_split",
    "fairness_frontier",
    "find_alternatives",
]
