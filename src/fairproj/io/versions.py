"""Versions of the packages in use, for bug reports and for records of a run."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = (
    "fairproj",
    "numpy",
    "scipy",
    "scikit-learn",
    "lightgbm",
    "xgboost",
    "joblib",
    "narwhals",
    "pandas",
    "msgspec",
    "pyarrow",
    "dask",
    "distributed",
    "typer",
    "rich",
    "jinja2",
    "matplotlib",
    "fairlearn",
    "skops",
    "onnx",
)


def versions() -> dict[str, str]:
    """Look up the versions of Python, fairproj and the packages that it uses."""
    return {"python": sys.version.split()[0]} | {name: _version(name) for name in _PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def show_versions() -> None:
    """Print the versions of the system, Python, fairproj and the packages that it uses."""
    for name, text in ({"system": platform.platform()} | versions()).items():
        print(f"{name:<14}{text}")
