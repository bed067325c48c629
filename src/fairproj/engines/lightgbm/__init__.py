"""The built-in trees: LightGBM grows them, one native update a round on data binned once."""

from fairproj.engines.lightgbm.engine import LightGBMTrees, TreeEngine
from fairproj.engines.lightgbm.ensemble import TreeEnsemble

__all__ = ["LightGBMTrees", "TreeEngine", "TreeEnsemble"]
