"""What held-out rows say about a classifier's rates and gaps, with exact intervals."""

from fairproj.inference.report import FairnessReport, exact_interval, fairness_report, gap_upper_bound

__all__ = ["FairnessReport", "exact_interval", "fairness_report", "gap_upper_bound"]
