"""The study of what the paper leaves open: features, and readings of the constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fairproj.experiments import _tables as tables
from fairproj.experiments._plan import published
from fairproj.experiments._run import Results
from fairproj.io.atomic import write_text

_PLAIN = {"AdaBoost, own engine": "AdaBoost", "Reweighing, own engine": "Reweighing"}


def feature_ranking(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean distance to the paper's AdaBoost and Reweighing rows (accuracy and gap), nearest first.

    FairProj's own rows are not used.
    """
    paper = _table1_of_paper()
    rows = []
    plain = frame[frame["method"].isin(_PLAIN)]
    for (features, dataset, method), part in plain.groupby(
        ["features", "dataset", "method"], sort=False
    ):
        printed = paper.loc[(dataset, _PLAIN[str(method)], -1.0)]
        rows.append(
            {
                "features": features,
                "dataset": dataset,
                "method": _PLAIN[str(method)],
                "accuracy": part["accuracy"].mean(),
                "gap": part["equal_opportunity"].mean(),
                "distance": abs(part["accuracy"].mean() - printed["accuracy"])
                + abs(part["equal_opportunity"].mean() - printed["gap"]),
            }
        )
    table = pd.DataFrame(rows)
    wide: Any = table.pivot_table(
        index="features", columns=["dataset", "method"], values=["accuracy", "gap"], sort=False
    )
    wide.columns = [f"{d}_{m}_{value}" for value, d, m in list(wide.columns)]
    wide["distance"] = table.groupby("features")["distance"].mean() / 2
    ranking: pd.DataFrame = wide.sort_values("distance").reset_index()
    return ranking


def _table1_of_paper() -> Any:
    printed = published()["table1"]
    table = pd.DataFrame(printed["rows"], columns=printed["columns"])
    return table.fillna({"epsilon": -1.0}).set_index(["dataset", "method", "epsilon"])


def _pretty_ranking(ranking: pd.DataFrame) -> list[list[str]]:
    pairs = [(d, m) for d in tables.DATASETS for m in _PLAIN.values()]
    names = [f"{tables.DATASETS[d].split()[0]}, {m}" for d, m in pairs]
    lines = [["Features", "mean distance", *names]]
    paper = _table1_of_paper()
    printed = [paper.loc[(d, m, -1.0)] for d, m in pairs]
    for row in ranking.to_dict("records"):
        cells = [f"{row[f'{d}_{m}_accuracy']:.3f} / {row[f'{d}_{m}_gap']:.3f}" for d, m in pairs]
        lines.append([str(row["features"]), f"{row['distance']:.3f}", *cells])
    cells = [f"{values['accuracy']:.3f} / {values['gap']:.3f}" for values in printed]
    lines.append(["**the paper**", "", *cells])
    return lines


def reading_table(frame: pd.DataFrame, features: str | None) -> pd.DataFrame:
    """Means of every reading of FairProj, for one way of making features or for all."""
    ours = frame[frame["method"].str.startswith("FairProj")]
    if features is not None:
        ours = ours[ours["features"] == features]
    shown = ["rounds", "accuracy", "equal_opportunity", "fairness_cost", "edge_w", "edge_q"]
    means = ours.groupby(["features", "dataset", "method", "epsilon"], sort=False)[shown].mean()
    return means.reset_index()


def _pretty_readings(table: pd.DataFrame) -> list[list[str]]:
    lines = [["Dataset", "ε", "Reading", "Rounds", "Accuracy", "EOpp gap", "Average δ"]]
    for dataset in tables.DATASETS:
        for epsilon in (0.40, 0.25, 0.15, 0.10):
            rows = table[(table["dataset"] == dataset) & (table["epsilon"] == epsilon)]
            head = [tables.DATASETS[dataset], f"{epsilon:.2f}"]
            for row in rows.to_dict("records"):
                name = str(row["method"]).removeprefix("FairProj").removeprefix(", ")
                lines.append(
                    [
                        *head,
                        name or "as the paper writes it",
                        f"{row['rounds']:.1f}",
                        f"{row['accuracy']:.3f}",
                        f"{row['equal_opportunity']:.3f}",
                        f"{row['fairness_cost']:.3f}",
                    ]
                )
            printed = _printed(dataset, epsilon)
            if printed:
                lines.append([*head, "**the paper's numbers**", *printed])
    return lines


def _printed(dataset: str, epsilon: float) -> list[str]:
    """Rounds, accuracy, gap and cost from both tables of the paper."""
    values: dict[str, float] = {}
    table = _table1_of_paper()
    if (dataset, "FairProj", epsilon) in table.index:
        values |= table.loc[(dataset, "FairProj", epsilon)].to_dict()
    if dataset == "adult":
        second = published()["table2"]
        for row in second["rows"]:
            if row[0] == epsilon:
                values |= dict(zip(second["columns"], row, strict=True))
    if not values:
        return []
    cells = [(name, values.get(name, np.nan)) for name in ("rounds", "accuracy", "gap")]
    cells.append(("cost", values.get("fairness_cost", np.nan)))
    return [
        "-" if np.isnan(value) else f"{value:.1f}" if name == "rounds" else f"{value:.3f}"
        for name, value in cells
    ]


def study_parts(results: Results, frame: pd.DataFrame) -> dict[str, str]:
    """The parts of the study's page; the tables are written into the run's folder."""
    folder = results.folder
    ranking = feature_ranking(frame)
    best = str(ranking["features"].iloc[0])
    methods = reading_table(frame, best)
    everything = reading_table(frame, None).to_csv(index=False, float_format="%.6g")
    write_text(folder / "readings-all.csv", everything)
    return {
        "best": best,
        "ranking": tables.save(folder, "features", ranking, _pretty_ranking(ranking)),
        "methods": tables.save(folder, "readings", methods, _pretty_readings(methods)),
    }
