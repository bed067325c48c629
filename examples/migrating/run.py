"""Run the call of each library and ours on the same rows, and keep accuracy and gap.

python examples/migrating/run.py    # into benchmarks/results/migrating.md and migrating.json

The scripts of other libraries run in the environments of the arena, which are built where they are
missing. One that cannot be built keeps its last results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd

from fairproj.datasets import load_adult
from fairproj.selection import fair_train_test_split

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# Name, constraint, and the package whose version is kept.
PEERS = {
    "fairlearn": ("fairlearn", "equal_opportunity", "Exponentiated Gradient around LightGBM"),
    "aif360": ("AIF360", "demographic_parity", "Reweighing, then scikit-learn's gradient boosting"),
    "fairgbm": ("FairGBM", "equal_opportunity", "FairGBM"),
    "error_parity": ("error-parity", "equalized_odds", "thresholds by group on LightGBM"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, default=ROOT / ".arena" / "environments")
    folder = parser.parse_args().environments
    kept = RESULTS / "migrating.json"
    results: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    with tempfile.TemporaryDirectory() as rows:
        write_rows(Path(rows))
        for peer in PEERS:
            python = peer_python(peer, folder)
            if python is None:
                print(f"{peer}: its environment cannot be built; the last results are kept")
                continue
            results[peer] = {
                "before": run(python, f"{peer}_before.py", rows),
                "after": run(Path(sys.executable), f"{peer}_after.py", rows),
                "version": version(python, peer),
            }
            print(peer, results[peer])
    kept.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    (RESULTS / "migrating.md").write_text(page(results), "utf-8")


def write_rows(folder: Path) -> None:
    """Adult without fnlwgt as numbers: a code for each category, -1 for a missing one."""
    frame = load_adult().frame.drop(columns="fnlwgt")
    for name in frame.columns.difference(["income"]):
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = pd.factorize(frame[name], sort=True)[0]
    frame["income"] = (frame["income"] == ">50K").astype(int)
    train, test, *_ = fair_train_test_split(
        frame, frame["income"], frame["sex"], test_size=0.3, random_state=0
    )
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)


def run(python: Path, script: str, rows: str) -> dict[str, float]:
    """Accuracy and gap that a script prints in an environment."""
    environ = {**os.environ, "MIGRATING_ROWS": rows, "OMP_NUM_THREADS": "1"}
    if python != Path(sys.executable):
        environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(python), "-W", "ignore", str(HERE / script)],
        env=environ,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr}")
    words = done.stdout.split()[-4:]
    return {words[0]: float(words[1]), words[2]: float(words[3])}


def peer_python(peer: str, folder: Path) -> Path | None:
    """The Python of a peer's environment, built if it is missing."""
    if peer == "fairlearn":
        return Path(sys.executable)
    path = folder / peer
    if not (path / "built.json").exists():
        sys.path.insert(0, str(ROOT / "benchmarks"))
        from arena.environments import build
        from arena.plan import Environment

        methods = (ROOT / "benchmarks" / "arena" / "methods.toml").read_text("utf-8")
        entries = {each["name"]: each for each in tomllib.loads(methods)["environments"]}
        if not build(Environment(**entries[peer]), folder).ok:
            return None
    return path / ("Scripts" if os.name == "nt" else "bin") / "python"


def version(python: Path, peer: str) -> str:
    code = f"from importlib.metadata import version; print(version({PEERS[peer][0].lower()!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def page(results: dict[str, Any]) -> str:
    lines = [
        "# Migrating: both calls on the same rows",
        "",
        "`python examples/migrating/run.py` runs each call that the migration pages show, in the "
        "environment of its library, and the call of fairproj beside it. Adult without `fnlwgt` "
        "and without sex among the features, categories as codes, 30 % of the rows for the test, "
        "one split. Gaps are those of the test rows.",
        "",
        "| library | call | compared | its accuracy | its gap | our accuracy | our gap |",
        "|---|---|---|---|---|---|---|",
    ]
    for peer, (name, constraint, call) in PEERS.items():
        if peer in results:
            found = results[peer]
            numbers = [
                found[side][key] for side in ("before", "after") for key in ("accuracy", "gap")
            ]
            cells = [f"{name} {found['version']}", call, constraint.replace("_", " ")]
            cells += [f"{number:.3f}" for number in numbers]
            lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "Exponentiated Gradient stops after 10 iterations here (50 by default) and is a mixture of "
        "models whose predictions are drawn. error-parity uses the group at predict and draws too. "
        "One split says little about which method is better: see the other pages of this section.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
