"""Scikit-learn estimators and random numbers as text, without pickle: skops, checked."""

from __future__ import annotations

import base64
import io
import re
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

_TWISTER_WORDS = 624
_SKOPS_NAME = re.compile(r"[\w-]+(\.\w+)*", flags=re.ASCII)


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError(
            "model files of estimator= models need skops; install it with "
            "pip install 'fairproj[skops]'"
        ) from None
    return skops.io


def dump_stream(stream: np.random.RandomState) -> list[Any]:
    _, keys, position, has_gauss, gauss = stream.get_state()
    return [np.asarray(keys).tolist(), int(position), int(has_gauss), float(gauss)]


def load_stream(state: Any) -> np.random.RandomState:
    """The random numbers to go on with.

    Every entry is checked: NumPy would read memory at whatever position it is given.
    """
    if not isinstance(state, list) or len(state) != 4:
        raise ValueError("the payload's stream must be the state of a random number generator")
    keys, position, has_gauss, gauss = state
    right = (
        isinstance(keys, list)
        and len(keys) == _TWISTER_WORDS
        and all(type(key) is int and 0 <= key < 1 << 32 for key in keys)
        and type(position) is int
        and 0 <= position <= _TWISTER_WORDS
        and has_gauss in (0, 1)
        and isinstance(gauss, int | float)
    )
    if not right:
        raise ValueError("the payload's stream must be the state of a random number generator")
    stream = np.random.RandomState()
    stream.set_state(
        ("MT19937", np.array(keys, dtype=np.uint32), position, int(has_gauss), float(gauss))
    )
    return stream


def dump(parts: dict[str, Any]) -> str:
    return base64.b64encode(_skops().dumps(parts)).decode()


def load(data: Any, trusted: Sequence[str]) -> dict[str, Any]:
    """The estimator and its learners; only objects of trusted types are made."""
    skops = _skops()
    try:
        raw = base64.b64decode(data, validate=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the payload's skops data are damaged ({error})") from None
    try:
        _check_archive(raw)
        unknown = set(skops.get_untrusted_types(data=raw)) - set(trusted)
        if unknown:
            raise _UntrustedError(
                f"it would make objects of {', '.join(sorted(unknown))}, which are not trusted; if "
                "you know where the file comes from, name each with trusted= or --trust"
            )
        parts = skops.loads(raw, trusted=list(trusted))
    except (_UntrustedError, MemoryError, RecursionError):
        raise
    except Exception as error:  # a reader of many formats fails in many ways
        cause = f"{type(error).__name__}: {error}"[:200]
        raise ValueError(f"the payload's data cannot be read by skops ({cause})") from None
    if not isinstance(parts, dict) or set(parts) != {"estimator", "learners"}:
        raise ValueError("the payload's data must hold an estimator and its learners")
    return parts


class _UntrustedError(ValueError):
    """An archive that is refused; the message says why."""


def _check_archive(raw: bytes) -> None:
    """Plain names and nothing packed, as skops writes it: it unpacks to its own size at most."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise _UntrustedError("the payload's data are compressed, and plain parts are expected")
    if sum(entry.file_size for entry in entries) > len(raw):
        raise _UntrustedError("the payload's data would unpack to more than they are")
    names = {entry.filename for entry in entries}
    if len(names) < len(entries) or not all(map(_SKOPS_NAME.fullmatch, names)):
        raise _UntrustedError(
            "the payload's data hold a path or a name twice; plain names are expected"
        )
