"""Training on a Dask cluster, with XGBoost's trees.

The boosting loop runs on every worker, each with its own rows; what is summed over rows is summed
over workers too. The fitted estimator is on the driver and needs no cluster.
"""

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
    import xgboost  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"fairproj.distributed needs {error.name}; install it with pip install "
        "'fairproj[distributed]'"
    ) from None

from fairproj.distributed.checkpoint import CheckpointError
from fairproj.distributed.cluster import ClusterError
from fairproj.distributed.estimators import DaskFairBoostClassifier, DaskFairProjClassifier

__all__ = ["CheckpointError", "ClusterError", "DaskFairBoostClassifier", "DaskFairProjClassifier"]
