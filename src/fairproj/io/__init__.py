"""Files: tables, model files and exports, written whole or not at all; progress bars; versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["to_lightgbm", "to_onnx", "to_xgboost"]

# Exports import the engines, which other modules of this package do without.
if TYPE_CHECKING:
    from fairproj.io.exports import to_lightgbm, to_onnx, to_xgboost
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from fairproj.io import exports

        return getattr(exports, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
