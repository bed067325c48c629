"""Draw the pictures of the README and the documentation.

python docs/make_images.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from fairproj import FairProjClassifier, plot_dynamics
from fairproj.datasets import load_german

HERE = Path(__file__).parent
IMAGES = HERE / "images"


def main() -> None:
    data = load_german()
    model = FairProjClassifier("equal_opportunity", epsilon=0.1)
    model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    axes = plot_dynamics(model)
    axes[0].figure.savefig(IMAGES / "dynamics.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
