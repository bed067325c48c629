"""What the writer and the reader of model files agree on."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

FORMAT = "fairproj model"
VERSION = 1
PARTS = (
    *("format", "format_version", "versions", "parameters", "classes", "groups", "features"),
    *("facts", "history", "certificate", "ensemble", "metadata"),
)
DTYPES = {
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("bool", "float16", "float32", "float64", "str", "object"),
}
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class ModelFileError(ValueError):
    """A file that is no model, with what was found in a sentence."""


def digest(content: dict[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != "sha256"}
    # Not in ASCII: half a surrogate pair, which no file and no terminal takes, is found here.
    text = json.dumps(
        rest, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def skops_io() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError(
            "model files of estimator= models need skops; install it with "
            "pip install 'fairproj[files]'"
        ) from None
    return skops.io
