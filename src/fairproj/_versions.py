"""What a bug report should say about the machine."""

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
    "narwhals",
    "pandas",
    "matplotlib",
    "rich",
)


def show_versions() -> None:
    """Print the versions of Python, the system and the packages that matter here."""
    print(f"{'python':<14}{sys.version.split()[0]}")
    print(f"{'system':<14}{platform.platform()}")
    for name in _PACKAGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "not installed"
        print(f"{name:<14}{found}")
