"""Metrics of predictions and scores by group, and scorers made of them."""

from fairproj.metrics.calibration import calibration_error
from fairproj.metrics.gaps import (
    accuracy_difference,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    false_positive_rate_difference,
    gap_difference,
    group_rates,
    predictive_parity_difference,
    selection_ratio_shortfall,
)
from fairproj.metrics.lending import (
    adverse_impact_ratio,
    ks_statistic,
    standardized_mean_difference,
)
from fairproj.metrics.scorers import (
    accuracy_parity_scorer,
    demographic_parity_scorer,
    equal_opportunity_scorer,
    equalized_odds_scorer,
    false_positive_rate_parity_scorer,
    make_gap_scorer,
    selection_ratio_scorer,
)
from fairproj.metrics.thresholds import gap_curve

__all__ = [
    "accuracy_difference",
    "accuracy_parity_scorer",
    "adverse_impact_ratio",
    "calibration_error",
    "demographic_parity_difference",
    "demographic_parity_scorer",
    "equal_opportunity_difference",
    "equal_opportunity_scorer",
    "equalized_odds_difference",
    "equalized_odds_scorer",
    "false_positive_rate_difference",
    "false_positive_rate_parity_scorer",
    "gap_curve",
    "gap_difference",
    "group_rates",
    "ks_statistic",
    "make_gap_scorer",
    "predictive_parity_difference",
    "selection_ratio_scorer",
    "selection_ratio_shortfall",
    "standardized_mean_difference",
]
