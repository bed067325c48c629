"""Trees that XGBoost grows: in memory, from batches on disk, and on several workers.

XGBoost is imported when trees are grown or predict, not before.
"""

from fairproj.engines.xgboost.kind import XGBoostTrees

__all__ = ["XGBoostTrees"]
