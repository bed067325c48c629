"""Exports of a fitted model to LightGBM's text format, XGBoost's JSON and ONNX.

An export holds what predicts, not the record of the run, and is not read back. The ONNX graph is
built operator by operator: the converters known to us work in single precision, which moves rows
that lie at a threshold to the other side, and ignore the scale of the probabilities. Here
thresholds, margins and inputs are doubles.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.engines.base import TIE
from fairproj.io.atomic import atomic_path, write_text
from fairproj.io.onnx_nodes import Nodes, lightgbm_nodes, xgboost_nodes

__all__ = ["to_lightgbm", "to_onnx", "to_xgboost"]

_NODES = {"lightgbm": lightgbm_nodes, "xgboost": xgboost_nodes}
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
    text: str = _trees_of(model, "lightgbm", "LightGBM's text").booster.model_to_string()
    if path is not None:
        write_text(path, text)
    return text


def to_xgboost(model: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Export a model as XGBoost's JSON, which ``xgboost.Booster(model_file=...)`` opens.

    Parameters
    ----------
    model : FairBoostClassifier or FairProjClassifier
        Fitted with ``engine="xgboost"``.
    path : path, optional
        Where to write it too; XGBoost wants a name that ends in ``.json``. An existing file is
        replaced, all at once.

    Returns
    -------
    str
        Its prediction is the probability of ``classes_[1]``, its raw score the log-odds of that,
        both of ``model.to_matrix(X)``. ``xgboost.XGBClassifier().load_model`` opens it too, with
        the classes 0 and 1.

    Notes
    -----
    XGBoost adds up 32-bit floats, so that probabilities differ from `predict_proba` by up to about
    1e-6, and a row whose margin is that close to where the model decides may get another label.
    The intercept and the bias of a `FairBoostClassifier` are in the leaves of the first tree. To
    make labels from probabilities, compare that of the positive label with ``model.threshold_``
    (0.5 for a `FairProjClassifier`).
    """
    text: str = _trees_of(model, "xgboost", "XGBoost's JSON").native_text
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

    Every row ends in the leaf where LightGBM or XGBoost puts it. As in `decision_function`, a
    margin within 1e-9 of zero is returned as 0, and one within 1e-9 of where the model decides is a
    tie and labelled ``classes_[0]``. A runtime may add the leaves up in another order, which moves
    margins by rounding, and labels only where a margin lies within rounding of that distance.
    """
    onnx = _onnx()
    ensemble = _ensemble(model, "ONNX")
    nodes = _NODES[ensemble.kind](ensemble)
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


def _trees_of(model: Any, kind: str, target: str) -> Any:
    """The ensemble of a model whose trees are of the kind that the format is for."""
    ensemble = _ensemble(model, target)
    if ensemble.kind != kind:
        raise ValueError(
            f"{target} is for trees of engine={kind!r}, and this model has "
            f"engine={ensemble.kind!r}; export it to {ensemble.kind} or onnx"
        )
    return ensemble


def _ensemble(model: Any, target: str) -> Any:
    if not hasattr(type(model), "encoding_"):
        raise TypeError(
            "only a FairBoostClassifier or FairProjClassifier can be exported, got "
            f"{type(model).__name__}; for a search or a pipeline export its best_estimator_ or "
            "last step"
        )
    if not hasattr(model, "certificate_"):
        raise ValueError("the model is not fitted; call fit first")
    if model._ensemble.kind not in _NODES:
        learner = f"engine={model.engine!r}"
        if model.estimator is not None:
            learner = f"estimator={type(model.estimator).__name__}"
        raise ValueError(
            f"{target} is for the built-in trees, and this model has {learner}; fit without it"
        )
    return model._ensemble


def _operators(onnx: Any, nodes: Nodes, model: Any) -> list[Any]:
    """Trees, the margin with ties at zero, then label and probabilities from it."""
    node, link_scale = onnx.helper.make_node, model._ensemble.link_scale
    return [
        *_trees(onnx, nodes),
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


def _trees(onnx: Any, nodes: Nodes) -> list[Any]:
    """The operator of the trees, after the rounding of X where they read 32-bit floats."""
    if not nodes.single_precision:
        return [_tree_operator(onnx, nodes, "X")]
    cast, kinds = onnx.helper.make_node, onnx.TensorProto
    return [
        cast("Cast", ["X"], ["single"], to=kinds.FLOAT),
        cast("Cast", ["single"], ["rounded"], to=kinds.DOUBLE),
        _tree_operator(onnx, nodes, "rounded"),
    ]


def _tree_operator(onnx: Any, nodes: Nodes, read: str) -> Any:
    def tensor(name: str, values: list[Any], kind: Any = np.float64) -> Any:
        return onnx.numpy_helper.from_array(np.array(values, dtype=kind), name)

    sets = {"membership_values": tensor("members", nodes.members)} if nodes.members else {}
    return onnx.helper.make_node(
        "TreeEnsemble",
        [read],
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
        nodes_missing_value_tracks_true=nodes.missing_true,
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
