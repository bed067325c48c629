"""The page of a finished run: tables, figures and claims from the tidy file.

The text around them is in ``paper.md`` and ``readings.md``.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from fairproj.boosting.record import History
from fairproj.data.checks import percent
from fairproj.experiments import _figures as figures
from fairproj.experiments import _tables as tables
from fairproj.experiments._claims import RIVALS, at_the_same_gap, claims, gap_differences
from fairproj.experiments._run import Results
from fairproj.experiments._study import study_parts
from fairproj.io.atomic import write_text
from fairproj.io.records import from_json

_FEW = "**A quick run: with so few splits, differences and verdicts mean next to nothing.**\n\n"


def check_extras(plan: str) -> None:
    """Raise an error for a missing package before any fit."""
    for package in ("fairlearn", "matplotlib", "msgspec") if plan == "paper" else ():
        if find_spec(package) is None:
            raise ImportError(
                f"the experiments need {package}; install it with pip install 'fairproj[reproduce]'"
            )


def write_page(page: Path, results: Results, command: str) -> None:
    """Write tables and figures into the run's folder, and the page that shows them beside it."""
    frame = results.tidy()
    build = {"paper": _paper_parts, "readings": study_parts}[results.plan.name]
    template = (files(__package__) / f"{results.plan.name}.md").read_text("utf-8")
    parts = _facts(results, len(frame)) | build(results, frame)
    write_text(page, template.format(command=command, folder=results.folder.name, **parts))


def _facts(results: Results, n_runs: int) -> dict[str, str]:
    plan, versions = results.plan, results.versions
    names = [tables.DATASETS[name].split()[0] for name in plan.datasets]
    shown = ("fairproj", "scikit-learn", "lightgbm", "fairlearn", "numpy", "pandas", "python")
    return {
        "runs": f"{n_runs:,}",
        "datasets": ", ".join(names[:-1]) + f" and {names[-1]}",
        "seeds": f"splits with seeds {plan.seeds[0]} to {plan.seeds[-1]}",
        "caution": _FEW if len(plan.seeds) < 5 else "",
        "test": percent(plan.test_size, 0),
        "rounds": str(plan.rounds),
        "versions": ", ".join(f"{name} {versions[name]}" for name in shown),
    }


def _paper_parts(results: Results, frame: pd.DataFrame) -> dict[str, str]:
    folder, plan = results.folder, results.plan
    parts = {"features": plan.features[0].name}
    for name, build, pretty in (
        ("table1", tables.table1, tables.pretty_table1),
        ("table2", tables.table2, tables.pretty_table2),
        ("figure3", tables.figure3_averages, tables.pretty_figure3),
    ):
        table = build(frame)
        parts[name] = tables.save(folder, name, table, pretty(table))
    parts["table1_rounds"] = tables.markdown(tables.pretty_rounds(tables.table1(frame)))
    for number, constraint in enumerate(tables.GAPS, start=1):
        name, table = f"figure{number}", tables.all_methods(frame, constraint)
        parts[name] = tables.save(folder, name, table, tables.pretty_all(table))
        figures.save(folder, name, figures.pareto(frame, constraint))
    history = from_json((folder / "dynamics.json").read_text("utf-8").rstrip(), History)
    figures.save(folder, "figure3", figures.dynamics(history))
    parts["claims"] = _claims_table(frame, history, plan.test_size)
    parts["rivals"] = _rivals_table(frame, plan.test_size)
    parts["splits"] = _splits_table(frame)
    parts["gaps"] = _gaps_table(frame, plan.test_size)
    return parts


def _claims_table(frame: pd.DataFrame, history: History, test_size: float) -> str:
    lines = [["The paper says", "measured here", "verdict"]]
    for claim in claims(frame, history, test_size):
        lines.append([claim.says, claim.measured, f"**{claim.verdict}**"])
    return tables.markdown(lines)


def _gaps_table(frame: pd.DataFrame, test_size: float) -> str:
    lines = [["Dataset", "ε", "less AdaBoost's", "less Reweighing's"]]
    for row in gap_differences(frame, test_size).to_dict("records"):
        others = [str(row[name]) for name in ("AdaBoost", "Reweighing")]
        lines.append([tables.DATASETS[row["dataset"]], f"{row['epsilon']:g}", *others])
    return tables.markdown(lines)


def _rivals_table(frame: pd.DataFrame, test_size: float) -> str:
    lines = [
        ["Dataset", "Method", "Accuracy / gap", "FairProj", "Accuracy / gap", "ours less theirs"]
    ]
    for row in at_the_same_gap(frame, test_size).to_dict("records"):
        lines.append(
            [
                tables.DATASETS[row["dataset"]],
                tables.label(row["rival"], RIVALS[row["rival"]]),
                f"{row['accuracy']:.3f} / {row['gap']:.3f}",
                f"ε={row['epsilon']:g}",
                f"{row['our_accuracy']:.3f} / {row['our_gap']:.3f}",
                str(row["difference"]),
            ]
        )
    return tables.markdown(lines)


def _splits_table(frame: pd.DataFrame) -> str:
    """Adult at 0.25, split by split, because there are two kinds of runs."""
    runs = tables.select(frame, "adult", "FairProj", 0.25, "equal_opportunity")
    lines = [["seed", *(str(seed) for seed in runs["seed"])]]
    lines.append(["rounds", *(f"{value:.0f}" for value in runs["rounds"])])
    for name, column in (("accuracy", "accuracy"), ("EOpp gap", "equal_opportunity")):
        lines.append([name, *(f"{value:.3f}" for value in runs[column])])
    return tables.markdown(lines)
