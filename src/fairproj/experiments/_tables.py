"""Tables from the tidy file: our value, the paper's and the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairproj.experiments._plan import published
from fairproj.io.atomic import write_text

DATASETS = {"adult": "Adult (sex)", "german": "German (sex)", "compas": "COMPAS (race)"}
GAPS = {"equal_opportunity": "EOpp gap", "demographic_parity": "DP gap"}
_PARTS = ("ours", "ours_std", "paper", "paper_std", "difference")


def select(
    results: pd.DataFrame,
    dataset: str,
    method: str,
    epsilon: float = float("nan"),
    constraint: str | None = None,
) -> pd.DataFrame:
    """The rows of one setting, one per seed; methods without a constraint match any."""
    rows = (results["dataset"] == dataset) & (results["method"] == method)
    same = results["epsilon"].isna() if np.isnan(epsilon) else results["epsilon"] == epsilon
    rows &= same
    if constraint is not None:
        rows &= results["constraint"].isin([constraint, ""])
    return results[rows]


def _beside(ours: pd.Series, paper: float, paper_std: float) -> dict[str, float]:
    mean, std = ours.mean(), ours.std(ddof=1)
    return dict(zip(_PARTS, (mean, std, paper, paper_std, mean - paper), strict=True))


def table1(results: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, equal opportunity gap and rounds: ours, the paper's, the difference."""
    printed = published()["table1"]
    rows = []
    for values in printed["rows"]:
        paper = dict(zip(printed["columns"], values, strict=True))
        ours = select(
            results, paper["dataset"], paper["method"], paper["epsilon"], "equal_opportunity"
        )
        row = {name: paper[name] for name in ("dataset", "method", "epsilon")}
        for name, column in (("accuracy", "accuracy"), ("gap", "equal_opportunity")):
            compared = _beside(ours[column], paper[name], paper[f"{name}_std"])
            row |= {f"{name}_{part}": value for part, value in compared.items()}
        compared = _beside(ours["rounds"], paper["rounds"], float("nan"))
        row |= {f"rounds_{part}": compared[part] for part in _PARTS if part != "paper_std"}
        rows.append(row)
    return pd.DataFrame(rows)


def table2(results: pd.DataFrame) -> pd.DataFrame:
    """Adult: epsilon against average fairness cost, rounds and accuracy."""
    printed = published()["table2"]
    rows = []
    for values in printed["rows"]:
        paper = dict(zip(printed["columns"], values, strict=True))
        ours = select(results, "adult", "FairProj", paper["epsilon"], "equal_opportunity")
        row: dict[str, float] = {"epsilon": paper["epsilon"]}
        for name in ("fairness_cost", "rounds", "accuracy"):
            compared = _beside(ours[name], paper[name], paper.get(f"{name}_std", float("nan")))
            row |= {f"{name}_{part}": value for part, value in compared.items()}
        rows.append(row)
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def figure3_averages(results: pd.DataFrame) -> pd.DataFrame:
    """Adult at 0.25: edges and fairness cost, averaged over the rounds and then over the splits."""
    ours = select(results, "adult", "FairProj", 0.25, "equal_opportunity")
    rows = [
        {"quantity": name} | _beside(ours[name], paper, float("nan"))
        for name, paper in published()["figure3"].items()
    ]
    return pd.DataFrame(rows).drop(columns="paper_std")


def all_methods(results: pd.DataFrame, constraint: str) -> pd.DataFrame:
    """Every method and epsilon for one constraint: accuracy, both gaps, equalized odds, rounds."""
    shown = ["accuracy", "equal_opportunity", "demographic_parity", "equalized_odds", "rounds"]
    rows = results[results["constraint"].isin([constraint, ""])]
    grouped = rows.groupby(["dataset", "method", "epsilon"], sort=False, dropna=False)[shown]
    return grouped.mean().join(grouped.std().add_suffix("_std")).reset_index()


def pretty_table1(table: pd.DataFrame) -> list[list[str]]:
    """Accuracy and gap; rounds are in `pretty_rounds`, because the table would be too wide."""
    lines = [["Dataset", "Method", "Accuracy", "paper", "diff.", "EOpp gap", "paper", "diff."]]
    for row in table.to_dict("records"):
        line = [DATASETS[row["dataset"]], label(row["method"], row["epsilon"])]
        lines.append([*line, *_cells(row, "accuracy"), *_cells(row, "gap")])
    return lines


def pretty_rounds(table: pd.DataFrame) -> list[list[str]]:
    lines = [["Dataset", "Method", "Rounds", "paper", "diff."]]
    for row in table.dropna(subset=["rounds_paper"]).to_dict("records"):
        line = [DATASETS[row["dataset"]], label(row["method"], row["epsilon"])]
        lines.append([*line, *_rounds_cells(row)])
    return lines


def pretty_table2(table: pd.DataFrame) -> list[list[str]]:
    lines = [["ε", "", "ours", "paper", "diff."]]
    for row in table.to_dict("records"):
        lines.append([f"{row['epsilon']:.2f}", "average δ", *_cells(row, "fairness_cost")])
        lines.append(["", "rounds", *_rounds_cells(row)])
        lines.append(["", "accuracy", *_cells(row, "accuracy")])
    return lines


def _cells(row: Any, name: str) -> list[str]:
    return [
        plus_minus(row[f"{name}_ours"], row[f"{name}_ours_std"]),
        plus_minus(row[f"{name}_paper"], row[f"{name}_paper_std"]),
        signed(row[f"{name}_difference"]),
    ]


def _rounds_cells(row: Any) -> list[str]:
    ours = f"{row['rounds_ours']:.1f}\u00a0±\u00a0{row['rounds_ours_std']:.1f}"
    return [ours, f"{row['rounds_paper']:.1f}", signed(row["rounds_difference"], 1)]


def pretty_figure3(table: pd.DataFrame) -> list[list[str]]:
    names = {
        "edge_w": "edge under w",
        "edge_q": "edge under q",
        "fairness_cost": "fairness cost δ",
    }
    lines = [["Average over the rounds", "ours", "paper", "difference"]]
    for row in table.to_dict("records"):
        ours = plus_minus(row["ours"], row["ours_std"])
        lines.append(
            [names[row["quantity"]], ours, f"{row['paper']:.3f}", signed(row["difference"])]
        )
    return lines


def pretty_all(table: pd.DataFrame) -> list[list[str]]:
    lines = [["Dataset", "Method", "Accuracy", "EOpp gap", "DP gap", "Equalized odds", "Rounds"]]
    for row in table.to_dict("records"):
        lines.append(
            [
                DATASETS[row["dataset"]],
                label(row["method"], row["epsilon"]),
                *(f"{row[n]:.3f}" for n in ("accuracy", *GAPS, "equalized_odds")),
                _rounds(row["rounds"]),
            ]
        )
    return lines


def label(method: str, epsilon: float) -> str:
    return method if np.isnan(epsilon) else f"{method} (ε={epsilon:g})"


def signed(value: float, digits: int = 3) -> str:
    """The number with its sign, or without a sign if it rounds to zero."""
    text = f"{value:+.{digits}f}"
    return text if text.strip("+-0.") else text[1:]


def plus_minus(mean: float, std: float) -> str:
    return f"{mean:.3f}\u00a0±\u00a0{std:.3f}"


def _rounds(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.1f}"


def markdown(lines: list[list[str]]) -> str:
    """A Markdown table; the first line is the head, and all columns but the first are centred."""
    head, *body = lines
    rule = ["---"] + [":-:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *body]) + "\n"


def save(folder: Path, name: str, table: pd.DataFrame, lines: list[list[str]]) -> str:
    """Write the table as CSV (numbers) and Markdown (as printed), and return the latter."""
    text = markdown(lines)
    write_text(folder / f"{name}.csv", table.to_csv(index=False, float_format="%.6g"))
    write_text(folder / f"{name}.md", text)
    return text
