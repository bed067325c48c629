"""Checks of the data before training: proxies, identifiers, leaks of the label, small groups."""

from fairproj.inspection.findings import Finding, Inspection, inspect_rows
from fairproj.inspection.identifiers import find_identifiers
from fairproj.inspection.proxies import find_leaks, find_proxies, joint_auc
from fairproj.inspection.sizes import confirmable_gaps

__all__ = [
    "Finding",
    "Inspection",
    "confirmable_gaps",
    "find_identifiers",
    "find_leaks",
    "find_proxies",
    "inspect_rows",
    "joint_auc",
]
