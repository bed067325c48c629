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
    "pyarrow",
    "jinja2",
    "fairlearn",
    "matplotlib",
    "rich",
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter here."""
    found = {"python": sys.version.split()[0]}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def show_versions() -> None:
    """Print the versions of Python, the system and the packages that matter here."""
    for name, found in ({"system": platform.platform()} | versions()).items():
        print(f"{name:<14}{found}")
