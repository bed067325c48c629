"""Draw the pictures of the README and the documentation.

python docs/make_images.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import pandas as pd
from matplotlib.figure import Figure

from fairproj import FairProjClassifier, plot_dynamics
from fairproj.datasets import load_german
from fairproj.experiments._tables import DATASETS

HERE = Path(__file__).parent
IMAGES = HERE / "images"
CURVES = {
    "equal_opportunity": "equal opportunity",
    "demographic_parity": "demographic parity",
    "equalized_odds": "equalized odds",
}
COLOURS = dict(zip(CURVES, ("#0072B2", "#D55E00", "#009E73"), strict=True))


def gap_curves() -> None:
    """Test gap and accuracy of FairBoost against max_gap, from the kept runs."""
    results = pd.read_csv(HERE.parent / "benchmarks" / "results" / "quality" / "results.csv")
    rows = results[results["method"] == "Closed loop, stumps"]
    figure = Figure(figsize=(7.5, 6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for column, dataset in enumerate(("adult", "compas")):
        for (constraint, name), marker in zip(CURVES.items(), "osD", strict=True):
            for features, line in (("one-hot, sensitive kept", "-"), ("one-hot", ":")):
                part = rows[(rows["dataset"] == dataset) & (rows["constraint"] == constraint)]
                means = (
                    part[part["features"] == features].groupby("epsilon").mean(numeric_only=True)
                )
                label = name + (", sensitive column left out" if line == ":" else "")
                style = {"marker": marker, "linestyle": line, "markersize": 4, "label": label}
                style["color"] = COLOURS[constraint]
                axes[0, column].plot(means.index, means[constraint], **style)
                axes[1, column].plot(means.index, means["accuracy"], **style)
        limits = [0, 0.2]
        axes[0, column].plot(limits, limits, color="#666666", linewidth=0.8, label="gap = max_gap")
        axes[0, column].set(title=DATASETS[dataset], ylabel="gap on test rows", ylim=(0, None))
        axes[1, column].set(xlabel="max_gap", ylabel="accuracy on test rows")
        for ax in axes[:, column]:
            ax.grid(alpha=0.3)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    figure.savefig(IMAGES / "gap-curves.png", dpi=110, metadata={"Software": None})


def main() -> None:
    gap_curves()
    data = load_german()
    model = FairProjClassifier("equal_opportunity", epsilon=0.1)
    model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    axes = plot_dynamics(model)
    axes[0].figure.savefig(IMAGES / "dynamics.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
