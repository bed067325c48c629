"""Trees of LightGBM and XGBoost as the nodes of ONNX's TreeEnsemble."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairproj.data.types import Array
from fairproj.engines.lightgbm import text as native

_LEQ, _LESS, _MEMBER = 0, 1, 6  # how a node compares
_BY_CATEGORY, _DEFAULT_LEFT, _MISSING = 1, 2, 12  # bits of LightGBM's decision_type
_MISSING_IS_ZERO, _MISSING_IS_NAN = 4, 8


@dataclass
class Nodes:
    """All splits in one list, all leaves in another.

    Attributes
    ----------
    feature, threshold, mode : list
        Of each split.
    children, are_leaves : tuple of two lists
        Where a split leads if its comparison is true, and if it is false.
    missing_true : list of int
        Whether a missing value counts as true.
    members : list of float
        The codes of the splits by category, each set ended by NaN.
    leaves : list of float
        What a leaf adds to the margin.
    roots : list of int
        The first split of each tree.
    single_precision : bool
        Whether features are compared as 32-bit floats.
    """

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    mode: list[int] = field(default_factory=list)
    children: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    are_leaves: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    missing_true: list[int] = field(default_factory=list)
    members: list[float] = field(default_factory=list)
    leaves: list[float] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    single_precision: bool = False

    def start_tree(self) -> None:
        self.roots.append(len(self.feature))

    def split(self, feature: int, threshold: float, mode: int, *, missing_true: bool) -> None:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.mode.append(mode)
        self.missing_true.append(int(missing_true))

    def split_by_category(self, feature: int, members: list[int], *, missing_true: bool) -> None:
        """True for the codes in the set, false for others."""
        if not members:
            return self.split(feature, -np.inf, _LEQ, missing_true=missing_true)
        self.members.extend([*members, np.nan])
        return self.split(feature, 0.0, _MEMBER, missing_true=missing_true)

    def constant_split(self) -> None:
        """Above a tree of one leaf: ONNX wants a split, and both ways lead to the leaf."""
        self.split(0, 0.0, _LEQ, missing_true=False)
        for side in (0, 1):
            self.children[side].append(len(self.leaves))
            self.are_leaves[side].append(1)

    def lead(self, side: int, places: Any, are_leaves: Any) -> None:
        """Where the splits of a tree lead, on the side that is 0 for true and 1 for false."""
        self.children[side].extend(places.tolist())
        self.are_leaves[side].extend(are_leaves.astype(int).tolist())


def lightgbm_nodes(ensemble: Any) -> Nodes:
    nodes = Nodes()
    for block in ensemble.blocks:
        _add_block(nodes, block)
    return nodes


def _add_block(nodes: Nodes, block: str) -> None:
    first_split, first_leaf = len(nodes.feature), len(nodes.leaves)
    nodes.start_tree()
    sides = [native.numbers(block, f"{side}_child").astype(int) for side in ("left", "right")]
    if len(sides[0]):
        _add_splits(nodes, block)
        for side, child in enumerate(sides):
            place = np.where(child < 0, ~child + first_leaf, child + first_split)
            nodes.lead(side, place, child < 0)
    else:
        nodes.constant_split()
    nodes.leaves.extend(native.numbers(block, "leaf_value").tolist())


def _add_splits(nodes: Nodes, block: str) -> None:
    names = ("split_feature", "threshold", "decision_type")
    for feature, threshold, kind in zip(
        *(native.numbers(block, name).tolist() for name in names), strict=True
    ):
        if int(kind) & _BY_CATEGORY:
            members = _members(block, int(threshold))
            nodes.split_by_category(int(feature), members, missing_true=False)
        else:
            missing_left = _missing_goes_left(int(kind), threshold)
            nodes.split(int(feature), threshold, _LEQ, missing_true=missing_left)


def _missing_goes_left(kind: int, threshold: float) -> bool:
    """Where LightGBM sends NaN: the way it learnt or, where it saw none in training, that of 0."""
    if kind & _MISSING == _MISSING_IS_ZERO:
        raise ValueError("trees that read zero as missing cannot be exported to ONNX")
    if kind & _MISSING == _MISSING_IS_NAN:
        return bool(kind & _DEFAULT_LEFT)
    return threshold >= 0.0


def _members(block: str, which: int) -> list[int]:
    """The codes in a set of categories, which LightGBM has as bits in words of 32."""
    begin, end = native.numbers(block, "cat_boundaries")[which : which + 2].astype(int)
    words = native.numbers(block, "cat_threshold")[begin:end].astype(np.int64)
    return [
        32 * at + bit
        for at, word in enumerate(words.tolist())
        for bit in range(32)
        if word >> bit & 1
    ]


def xgboost_nodes(ensemble: Any) -> Nodes:
    nodes = Nodes(single_precision=True)
    for tree, values in zip(ensemble.trees, ensemble.leaf_values, strict=True):
        _add_tree(nodes, tree, values)
    return nodes


def _add_tree(nodes: Nodes, tree: Any, values: Array) -> None:
    nodes.start_tree()
    if tree.constant:
        nodes.constant_split()
    else:
        is_leaf = tree.is_leaf
        place = np.where(is_leaf, np.cumsum(is_leaf) - 1, np.cumsum(~is_leaf) - 1)
        place += np.where(is_leaf, len(nodes.leaves), len(nodes.feature))
        for node in np.flatnonzero(~is_leaf).tolist():
            _add_split(nodes, tree, node)
            # The codes of a set go right, and a set is asked for its members.
            swap = node in tree.categories
            for side, child in enumerate((tree.left[node], tree.right[node])):
                nodes.lead(side ^ swap, place[[child]], is_leaf[[child]])
    nodes.leaves.extend(values[tree.is_leaf].tolist())


def _add_split(nodes: Nodes, tree: Any, node: int) -> None:
    feature, missing_left = int(tree.feature[node]), bool(tree.missing_left[node])
    if node in tree.categories:
        members = list(tree.categories[node])
        nodes.split_by_category(feature, members, missing_true=not missing_left)
    else:
        threshold = float(tree.threshold[node])
        nodes.split(feature, threshold, _LESS, missing_true=missing_left)
