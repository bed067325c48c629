"""What held-out rows say about a classifier's rates and gaps, with exact intervals."""

from fairproj.inference.by import GapsBy, gaps_by
from fairproj.inference.intervals import exact_interval
from fairproj.inference.paired import paired_difference_interval
from fairproj.inference.power import (
    largest_confirmable_gap,
    rows_to_confirm,
    smallest_max_gap,
)
from fairproj.inference.report import FairnessReport, gap_upper_bound

__all__ = [
    "FairnessReport",
    "GapsBy",
    "exact_interval",
    "gap_upper_bound",
    "gaps_by",
    "largest_confirmable_gap",
    "paired_difference_interval",
    "rows_to_confirm",
    "smallest_max_gap",
]
