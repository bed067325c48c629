"""Accuracy at a gap, beside peers on the same splits; and a study of the closed loop's defaults.

python benchmarks/quality.py            # into benchmarks/results/quality.md
python benchmarks/quality.py --study    # into benchmarks/results/closed_loop.md

Finished fits are kept in benchmarks/results; what was stopped goes on from there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from fairproj.experiments._plan import parse_plan
from fairproj.experiments._reproduce import run_with_progress
from fairproj.experiments._run import Results, write
from fairproj.experiments._tables import DATASETS, GAPS, markdown, plus_minus

HERE = Path(__file__).parent
ODDS = {"equalized_odds": "equalized odds"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", action="store_true", help="study the closed loop's defaults")
    name = "closed_loop" if parser.parse_args().study else "quality"
    plan = parse_plan(name, (HERE / f"{name}.toml").read_text("utf-8"))
    results = Results(HERE / "results" / name, plan)
    run_with_progress(results)
    frame = results.tidy()
    text = study(frame) if name == "closed_loop" else quality(frame)
    command = "python benchmarks/quality.py" + (" --study" if name == "closed_loop" else "")
    shown = ("fairproj", "lightgbm", "fairlearn", "scikit-learn", "python")
    made = ", ".join(f"{package} {results.versions[package]}" for package in shown)
    page = HERE / "results" / f"{name}.md"
    write(page, f"# {plan.title}\n\n`{command}`, seeds 42 to 51; {made}.\n\n{text}")
    print(page)


def quality(frame: pd.DataFrame) -> str:
    at = frame[frame["constraint"].isin(["", "equal_opportunity"])]
    at = at[at["epsilon"].isna() | (at["epsilon"] == 0.05)]
    parts = [
        "Equal opportunity, epsilon 0.05, 10 splits: mean ± standard deviation on the test rows. "
        "Time is the median of a fit on one thread, two fits at a time; its ratio is to boosting "
        "without a constraint and the same learners.\n"
    ]
    for (features, dataset), rows in at.groupby(["features", "dataset"], sort=False):
        parts.append(f"## {DATASETS[dataset]}, {features}\n")
        parts.append(markdown(_quality_lines(rows)))
    parts.append("## Gap of the predictions as epsilon falls, closed loop with stumps\n")
    parts.append(markdown(_curve_lines(frame)))
    return "\n".join(parts)


def _quality_lines(rows: pd.DataFrame) -> list[list[str]]:
    lines = [["Method", "Accuracy", "EOpp gap", "rounds", "seconds", "times boosting"]]
    seconds = rows.groupby("method")["seconds"].median()
    for method, part in rows.groupby("method", sort=False):
        base = "Boosting, 31 leaves" if "31" in str(method) else "AdaBoost, stumps"
        lines.append(
            [
                str(method),
                plus_minus(part["accuracy"].mean(), part["accuracy"].std()),
                plus_minus(part["equal_opportunity"].mean(), part["equal_opportunity"].std()),
                "-" if part["rounds"].isna().all() else f"{part['rounds'].mean():.0f}",
                f"{seconds[method]:.2f}",
                f"{seconds[method] / seconds[base]:.1f}",
            ]
        )
    return lines


def _curve_lines(frame: pd.DataFrame) -> list[list[str]]:
    rows = frame[frame["method"] == "Closed loop, stumps"]
    epsilons = sorted(rows["epsilon"].unique(), reverse=True)
    lines = [["Dataset, features, constraint", *(f"ε = {e:g}" for e in epsilons)]]
    names = GAPS | ODDS
    for (features, dataset, constraint), part in rows.groupby(
        ["features", "dataset", "constraint"], sort=False
    ):
        means = part.groupby("epsilon")[["accuracy", constraint]].mean()
        cells = [
            f"{means.loc[e, 'accuracy']:.3f} / {means.loc[e, constraint]:.3f}" for e in epsilons
        ]
        lines.append([f"{DATASETS[dataset]}, {features}, {names[constraint]}", *cells])
    return lines


def study(frame: pd.DataFrame) -> str:
    columns = [(f, d) for f in frame["features"].unique() for d in DATASETS]
    head = ["Setting", *(f"{DATASETS[d].split()[0]}, {f}" for f, d in columns)]
    lines = [[*head, "first three gaps within 0.05"]]
    for method, rows in frame.groupby("method", sort=False):
        line, gaps = [str(method)], []
        for features, dataset in columns:
            part = rows[(rows["features"] == features) & (rows["dataset"] == dataset)]
            accuracy, gap = part["accuracy"].mean(), part["equal_opportunity"].mean()
            line.append(f"{accuracy:.3f} / {gap:.3f}")
            gaps.append(gap)
        lines.append([*line, "yes" if max(gaps[:3]) <= 0.05 else "no"])
    return (
        "Closed loop, equal opportunity, epsilon 0.05, 10 splits: mean test accuracy / mean test "
        f"gap.\n\n{markdown(lines)}"
    )


if __name__ == "__main__":
    main()
