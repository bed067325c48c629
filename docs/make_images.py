"""Draw the pictures of the README and the documentation.

python docs/make_images.py
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from gallery_style import STYLE
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from fairproj import FairProjClassifier, plot_dynamics
from fairproj.datasets import load_german

HERE = Path(__file__).parent
IMAGES = HERE / "images"
GALLERY = HERE.parent / "examples" / "gallery"
# Pictures of examples that pages show as well.
SHOWN = {"plot_01_gap_by_round": "gap-by-round", "plot_02_one_round": "one-round"}
# One round of both rules: each box has a title and what happens there.
FAIRPROJ = [
    ("margin", "f(x), the model so far"),
    ("q", "AdaBoost's weights:\nhow wrong is f?"),
    ("projection", "nearest w on which\nthe groups balance"),
    ("weak learner", "fitted with w"),
    ("vote", "from its error\nunder q"),
]
FAIRBOOST = [
    ("margin", "f(x), the model so far"),
    ("watched rates", "gap between groups\nat the threshold"),
    ("multipliers", "follow the gap\nuntil it is in bounds"),
    ("signed costs", "weights and labels\nof (group, label) cells"),
    ("tree", "a step on the loss\nwith these costs"),
]


def main() -> None:
    draw_dynamics()
    draw_loop()
    for example, name in SHOWN.items():
        with mpl.rc_context(STYLE):
            runpy.run_path(str(GALLERY / f"{example}.py"))
            save(plt.gcf(), name)
            plt.close("all")


def save(figure: Any, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=110, metadata={"Software": None})


def draw_loop() -> None:
    """Both rules as loops through five boxes."""
    figure, panels = plt.subplots(2, 1, figsize=(10, 4.6), layout="constrained")
    for panel, title, boxes, color in (
        (panels[0], "FairProj (the paper)", FAIRPROJ, "#d6e6f5"),
        (panels[1], "FairBoost", FAIRBOOST, "#fde3c8"),
    ):
        draw_lane(panel, title, boxes, color)
    save(figure, "one-loop")
    plt.close(figure)


def draw_lane(panel: Axes, title: str, boxes: list[tuple[str, str]], color: str) -> None:
    panel.set(xlim=(-0.55, 4.55), ylim=(-0.85, 0.7))
    panel.axis("off")
    panel.set_title(title, loc="left", fontweight="bold")
    for at, (name, words) in enumerate(boxes):
        panel.add_patch(
            FancyBboxPatch(
                (at - 0.37, -0.3), 0.74, 0.7, boxstyle="round,pad=0.02", facecolor=color,
                edgecolor="#555555",
            )
        )  # fmt: skip
        panel.text(at, 0.22, name, ha="center", va="center", fontweight="bold")
        panel.text(at, -0.07, words, ha="center", va="center", fontsize=9)
        if at:
            arrow = {"arrowstyle": "->", "color": "#333333", "linewidth": 1.5}
            panel.annotate("", (at - 0.4, 0.05), (at - 0.6, 0.05), arrowprops=arrow)
    back = {"arrowstyle": "->", "color": "#333333", "linewidth": 1.5,
            "connectionstyle": "bar,fraction=-0.085"}  # fmt: skip
    panel.annotate("", (0, -0.34), (4, -0.34), arrowprops=back)
    panel.text(2, -0.62, "next round: f + vote times learner", ha="center", fontsize=9)


def draw_dynamics() -> None:
    data = load_german()
    model = FairProjClassifier("equal_opportunity", epsilon=0.1)
    model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    axes = plot_dynamics(model)
    save(axes[0].figure, "dynamics")
    plt.close("all")


if __name__ == "__main__":
    main()
