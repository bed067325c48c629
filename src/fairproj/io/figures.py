"""matplotlib, imported only where something is drawn."""

from __future__ import annotations

from typing import Any

from fairproj.io.text import escape


def matplotlib() -> Any:
    """The package, without pyplot, which would choose a window system."""
    try:
        import matplotlib as mpl
        import matplotlib.figure
    except ImportError:
        raise ImportError(
            "plots need matplotlib; install it with pip install 'fairproj[plot]'"
        ) from None
    return mpl


def new_axes(*shape: int, figsize: tuple[float, float]) -> Any:
    """Axes of a new figure that notebooks show by themselves."""
    matplotlib()
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(*shape, figsize=figsize, layout="constrained")
    return axes


def plain_label(text: Any) -> str:
    """Text for a plot, without what matplotlib would read as mathematics."""
    return escape(str(text)).replace("$", r"\$")
