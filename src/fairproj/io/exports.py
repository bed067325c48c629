"""Exports of a fitted model to LightGBM's text format and to ONNX.

An export holds what predicts, not the record of the run, and is not read back. The ONNX graph is
built operator by operator: the converters known to us work in single precision, which moves rows
that lie at a threshold to the other side, and ignore the scale of the probabilities. Here
thresholds, margins and inputs are doubles.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.engines.base import TIE
from fairproj.engines.lightgbm import text as native
from fairproj.io.atomic import atomic_path, write_text

__all__ = ["to_lightgbm", "to_onnx"]

_LEQ, _MEMBER = 0, 6  # how a node of ONNX's TreeEnsemble compares
_BY_CATEGORY, _DEFAULT_LEFT, _MISSING = 1, 2, 12  # bits of LightGBM's decision_type
_MISSING_IS_ZERO, _MISSING_IS_NAN = 4, 8
_OPSET, _OPSET_OF_TREES, _IR_VERSION = 18, 5, 10
_SUM, _AS_IT_IS = 1, 0


def to_lightgbm(model: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Export a model as LightGBM's text, which ``lightgbm.Booster(model_file=...)`` opens.

    Parameters
    ----------
    model : FairBoostClassifier or FairProjClassifier
        Fitted, with the built-in trees.
    path : path, optional
        Where to write it too. An existing file is replaced, all at once.

    Returns
    -------
    str
        Its raw score is the margin, its prediction the probability of ``classes_[1]``, both of
        ``model.to_matrix(X)``.

    Notes
    -----
    The raw score is the margin as LightGBM adds it up, with the intercept and the bias of a
    `FairBoostClassifier`. The text has no place for labels. To make them from its probabilities,
    compare that of the positive label with ``model.threshold_`` (0.5 for a `FairProjClassifier`);
    the gap was bounded there. A margin within 1e-9 of where it decides is a tie, which `predict`
    labels ``classes_[0]``.
    """
    text: str = _booster(model, "LightGBM's text").model_to_string()
    if path is not None:
        write_text(path, text)
    return text


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None) -> bytes:
    """Export a model as an ONNX graph (needs ``onnx``; to run it, ``onnxruntime`` 1.21 or later).

    Its input ``X`` is a matrix of doubles as ``model.to_matrix(X)`` makes it: categories as codes,
    NaN for what is missing. Its outputs are ``label``, the class as in ``classes_``,
    ``probabilities`` with a column a class, and ``margin``.

    Parameters
    ----------
    model : FairBoostClassifier or FairProjClassifier
        Fitted, with the built-in trees.
    path : path, optional
        Where to write it too. An existing file is replaced, all at once.

    Returns
    -------
    bytes
        Its metadata, as JSON: ``columns``, ``categories`` (behind the codes), ``positive_label``,
        ``threshold`` (the probability of that label above which it is predicted), ``bias`` (what
        was added to the margin for the sake of the gap) and ``price`` (what the constraint cost,
        null where it was not measured).

    Notes
    -----
    Labels are those of `predict`, which decides at ``threshold_``; the gap was bounded there.

    Every row ends in the leaf where LightGBM puts it. As in `decision_function`, a margin within
    1e-9 of zero is returned as 0, and one within 1e-9 of where the model decides is a tie and
    labelled ``classes_[0]``. A runtime may add the leaves up in another order, which moves margins
    by rounding, and labels only where a margin lies within rounding of that distance.
    """
    onnx = _onnx()
    booster = _booster(model, "ONNX")
    nodes = _Nodes.of(native.blocks(booster.model_to_string()))
    graph = onnx.helper.make_graph(
        _operators(onnx, nodes, model),
        "fairproj",
        [_port(onnx, "X", onnx.TensorProto.DOUBLE, model.n_features_in_)],
        [
            _port(onnx, "label", _kind_of(onnx, model.classes_)),
            _port(onnx, "probabilities", onnx.TensorProto.DOUBLE, 2),
            _port(onnx, "margin", onnx.TensorProto.DOUBLE),
        ],
    )
    versions = (("", _OPSET), ("ai.onnx.ml", _OPSET_OF_TREES))
    exported = onnx.helper.make_model(
        graph,
        producer_name="fairproj",
        ir_version=_IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid(*version) for version in versions],
    )
    onnx.helper.set_model_props(exported, _properties(model))
    onnx.checker.check_model(exported)
    raw: bytes = exported.SerializeToString()
    if path is not None:
        with atomic_path(path) as partial:
            partial.write_bytes(raw)
    return raw


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ImportError(
            "to_onnx needs onnx; install it with pip install 'fairproj[onnx]'"
        ) from None
    return onnx


def _booster(model: Any, target: str) -> Any:
    if not hasattr(type(model), "encoding_"):
        raise TypeError(
            "only a FairBoostClassifier or FairProjClassifier can be exported, got "
            f"{type(model).__name__}; for a search or a pipeline export its best_estimator_ or "
            "last step"
        )
    if not hasattr(model, "certificate_"):
        raise ValueError("the model is not fitted; call fit first")
    if not hasattr(model, "booster_"):
        learner = f"engine={model.engine!r}"
        if model.estimator is not None:
            learner = f"estimator={type(model.estimator).__name__}"
        raise ValueError(
            f"{target} is for the built-in trees, and this model has {learner}; fit without it"
        )
    return model.booster_


@dataclass
class _Nodes:
    """The trees as ONNX has them: all splits in one list, all leaves in another."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    mode: list[int] = field(default_factory=list)
    children: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    are_leaves: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    missing_left: list[int] = field(default_factory=list)
    members: list[float] = field(default_factory=list)
    leaves: list[float] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, blocks: list[str]) -> _Nodes:
        nodes = cls()
        for block in blocks:
            nodes._add(block)
        return nodes

    def _add(self, block: str) -> None:
        first_split, first_leaf = len(self.feature), len(self.leaves)
        self.roots.append(first_split)
        sides = [native.numbers(block, f"{side}_child").astype(int) for side in ("left", "right")]
        if not len(sides[0]):  # a tree of one leaf: ONNX wants a split, and both ways lead to it
            sides = [np.array([-1]), np.array([-1])]
            self._split(0, 0.0, _LEQ, missing_left=False)
        else:
            self._splits(block)
        for side, child in enumerate(sides):
            place = np.where(child < 0, ~child + first_leaf, child + first_split)
            self.children[side].extend(place.tolist())
            self.are_leaves[side].extend((child < 0).astype(int).tolist())
        self.leaves.extend(native.numbers(block, "leaf_value").tolist())

    def _splits(self, block: str) -> None:
        names = ("split_feature", "threshold", "decision_type")
        for feature, threshold, kind in zip(
            *(native.numbers(block, name).tolist() for name in names), strict=True
        ):
            if int(kind) & _BY_CATEGORY:
                self._by_category(int(feature), _members(block, int(threshold)))
            else:
                missing_left = _missing_goes_left(int(kind), threshold)
                self._split(int(feature), threshold, _LEQ, missing_left=missing_left)

    def _by_category(self, feature: int, members: list[int]) -> None:
        """Left for the codes in the set; for others and for missing values, right."""
        if not members:
            return self._split(feature, -np.inf, _LEQ, missing_left=False)
        self.members.extend([*members, np.nan])  # NaN ends a set
        return self._split(feature, 0.0, _MEMBER, missing_left=False)

    def _split(self, feature: int, threshold: float, mode: int, *, missing_left: bool) -> None:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.mode.append(mode)
        self.missing_left.append(int(missing_left))


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


def _operators(onnx: Any, nodes: _Nodes, model: Any) -> list[Any]:
    """Trees, the margin with ties at zero, then label and probabilities from it."""
    node, link_scale = onnx.helper.make_node, model._ensemble.link_scale
    return [
        _tree_operator(onnx, nodes),
        _constant(onnx, "zero", np.zeros(1)),
        _constant(onnx, "tie", np.array([TIE])),
        _constant(onnx, "scales", np.array([-link_scale, link_scale])),
        _constant(onnx, "flat", np.array([-1])),
        _constant(onnx, "cut", np.array([model._cut])),
        _constant(onnx, "classes", model.classes_),
        node("Abs", ["sum"], ["size"]),
        node("Greater", ["size", "tie"], ["decided"]),
        node("Where", ["decided", "sum", "zero"], ["settled"]),
        node("Reshape", ["settled", "flat"], ["margin"]),
        node("Sub", ["margin", "cut"], ["beyond"]),
        node("Greater", ["beyond", "tie"], ["is_second"]),
        node("Cast", ["is_second"], ["class"], to=onnx.TensorProto.INT64),
        node("Gather", ["classes", "class"], ["label"]),
        node("Mul", ["settled", "scales"], ["logits"]),
        node("Sigmoid", ["logits"], ["probabilities"]),
    ]


def _tree_operator(onnx: Any, nodes: _Nodes) -> Any:
    def tensor(name: str, values: list[Any], kind: Any = np.float64) -> Any:
        return onnx.numpy_helper.from_array(np.array(values, dtype=kind), name)

    sets = {"membership_values": tensor("members", nodes.members)} if nodes.members else {}
    return onnx.helper.make_node(
        "TreeEnsemble",
        ["X"],
        ["sum"],
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function=_SUM,
        post_transform=_AS_IT_IS,
        tree_roots=nodes.roots,
        nodes_featureids=nodes.feature,
        nodes_splits=tensor("splits", nodes.threshold),
        nodes_modes=tensor("modes", nodes.mode, np.uint8),
        nodes_truenodeids=nodes.children[0],
        nodes_falsenodeids=nodes.children[1],
        nodes_trueleafs=nodes.are_leaves[0],
        nodes_falseleafs=nodes.are_leaves[1],
        nodes_missing_value_tracks_true=nodes.missing_left,
        leaf_targetids=[0] * len(nodes.leaves),
        leaf_weights=tensor("leaves", nodes.leaves),
        **sets,
    )


def _constant(onnx: Any, name: str, values: NDArray[Any]) -> Any:
    tensor = onnx.helper.make_tensor(
        name, _kind_of(onnx, values), values.shape, _as_onnx_type(values).tolist()
    )
    return onnx.helper.make_node("Constant", [], [name], value=tensor)


def _as_onnx_type(values: NDArray[Any]) -> NDArray[Any]:
    """Labels in a type that ONNX has: booleans, integers, doubles or text."""
    values = np.array(values.tolist())
    if values.dtype.kind not in "biufU":
        raise ValueError(
            f"labels of type {values.dtype} cannot be exported to ONNX; use text, numbers or "
            "booleans"
        )
    return values


def _kind_of(onnx: Any, values: NDArray[Any]) -> int:
    kinds = onnx.TensorProto
    return {
        "b": int(kinds.BOOL),
        "i": int(kinds.INT64),
        "u": int(kinds.INT64),
        "f": int(kinds.DOUBLE),
        "U": int(kinds.STRING),
    }[_as_onnx_type(values).dtype.kind]


def _port(onnx: Any, name: str, kind: int, *width: int) -> Any:
    return onnx.helper.make_tensor_value_info(name, kind, ["rows", *width])


def _properties(model: Any) -> dict[str, str]:
    columns, categories = model.encoding_.columns, model.encoding_.categories
    price = getattr(model, "price_", None)
    properties = {
        "columns": [str(name) for name in columns],
        "categories": {str(columns[at]): values.tolist() for at, values in categories.items()},
        "positive_label": model.classes_[1] if model.pos_label is None else model.pos_label,
        "threshold": getattr(model, "threshold_", 0.5),
        "bias": model.history_.bias,
        "price": None if price is None else price.to_dict(),
    }
    return {name: json.dumps(value, default=_as_json) for name, value in properties.items()}


def _as_json(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
