"""Scikit-learn estimators and random number generators as JSON values, without pickle."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

_TWISTER_WORDS = 624
_MOST_GROWTH, _SMALL = 20, 1 << 16
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
    """The state of a random number generator: its words, position and a spare normal number."""
    _, words, position, has_gauss, gauss = stream.get_state()
    return [np.asarray(words).tolist(), int(position), int(has_gauss), float(gauss)]


def load_stream(state: Any) -> np.random.RandomState:
    """The generator to draw the next random numbers from."""
    if not _is_state(state):
        raise ValueError("the payload's stream must be the state of a random number generator")
    words, position, has_gauss, gauss = state
    stream = np.random.RandomState()
    stream.set_state(("MT19937", np.array(words, dtype=np.uint32), position, has_gauss, gauss))
    return stream


def _is_state(state: Any) -> bool:
    """Every entry is checked, because NumPy reads memory at whatever position it is given."""
    if not isinstance(state, list) or [type(part) for part in state] != [list, int, int, float]:
        return False
    words, position, has_gauss, _ = state
    return (
        len(words) == _TWISTER_WORDS
        and all(type(word) is int and 0 <= word < 1 << 32 for word in words)
        and 0 <= position <= _TWISTER_WORDS
        and 0 <= has_gauss <= 1
    )


def dump(parts: dict[str, Any]) -> str:
    """The estimator and its learners as a skops archive in base64."""
    raw: bytes = _skops().dumps(parts)
    _check_archive(raw)  # refuse here what would be refused when the file is opened
    return base64.b64encode(raw).decode()


def load(data: Any, trusted: Sequence[str]) -> dict[str, Any]:
    """The estimator and its learners; only objects of trusted types are made."""
    skops = _skops()
    try:
        raw = base64.b64decode(data, validate=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the payload's skops data are damaged ({error})") from None
    try:
        _check_archive(raw)
        _check_types(skops.get_untrusted_types(data=raw), trusted)
        parts = skops.loads(raw, trusted=list(trusted))
    except (_RefusedError, MemoryError, RecursionError):
        raise
    except Exception as error:  # skops and the readers below it fail in many ways
        cause = f"{type(error).__name__}: {error}"[:200]
        raise ValueError(f"skops cannot read the payload's data ({cause})") from None
    if not isinstance(parts, dict) or set(parts) != {"estimator", "learners"}:
        raise ValueError("the payload's data must hold an estimator and its learners")
    return parts


class _RefusedError(ValueError):
    """The reason why an archive is refused, which is passed on as it is."""


def _check_types(untrusted: Sequence[str], trusted: Sequence[str]) -> None:
    unknown = sorted(set(untrusted) - set(trusted))
    if unknown:
        raise _RefusedError(
            f"it would make objects of {', '.join(unknown)}, which are not trusted; if you know "
            "where the file comes from, name each with trusted= or --trust"
        )


def _check_archive(raw: bytes) -> None:
    """Refuse an archive that skops did not write, or that takes much more memory than its size."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        entries = archive.infolist()
        names = {entry.filename for entry in entries}
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise _RefusedError("the payload's data are compressed; plain entries are expected")
        if len(names) < len(entries) or not all(map(_SKOPS_NAME.fullmatch, names)):
            raise _RefusedError(
                "the payload's data hold a path or a name twice; different plain names are expected"
            )
        stored = sum(entry.file_size for entry in entries)
        if stored > len(raw) or _size_in_memory(archive) > max(len(raw), _SMALL) * _MOST_GROWTH:
            raise _RefusedError("the payload's data would take much more memory than their size")


def _size_in_memory(archive: zipfile.ZipFile) -> int:
    """The size of the entries that objects are made of, as often as the schema names them."""
    sizes = {name: _unpacked_size(archive.read(name)) for name in archive.namelist()}
    size, parts = 0, [json.loads(archive.read("schema.json"))]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            name = part.get("file")
            size += sizes.get(name, 0) if isinstance(name, str) else 0
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)
    return size


def _unpacked_size(data: bytes) -> int:
    """The size of an entry; sparse matrices are archives themselves, and compressed."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return len(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(entry.file_size for entry in archive.infolist())
