"""Kill -9 of workers at random rounds: are the rounds those of an undisturbed run?

python benchmarks/cluster_faults.py [--times 20]    # into benchmarks/results/cluster_faults.md

Each run is on a cluster of three processes, one of which is killed once the driver has heard of a
random round. Both estimators take turns, as do the three workers.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.distributed import DaskFairBoostClassifier, DaskFairProjClassifier
from fairproj.distributed.checkpoint import CheckpointError, read_checkpoint
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

RESULTS = Path(__file__).parent / "results" / "cluster_faults.md"
N_WORKERS = 3
N_ROWS = 60_000
N_ROUNDS = 60
PARAMETERS: dict[str, Any] = {"n_estimators": N_ROUNDS, "max_leaf_nodes": 8, "random_state": 0}
KINDS = [
    (FairProjClassifier, DaskFairProjClassifier, {**PARAMETERS, "votes": "confidence"}),
    (
        FairBoostClassifier,
        DaskFairBoostClassifier,
        {**PARAMETERS, "max_gap": 0.2, "subsample": 0.8},
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    table = make_table()
    undisturbed = [fit(local(engine="xgboost", **params), table) for local, _, params in KINDS]
    lines = [["estimator", "killed after round", "worker", "largest difference", "s"]]
    for number in range(options.times):
        _, cls, params = KINDS[number % len(KINDS)]
        worker, after = number % N_WORKERS, rng.randrange(N_ROUNDS - 5)
        start = time.perf_counter()
        model, killed_after = disturbed(cls(**params), after, worker, table)
        line = [
            cls.__name__,
            f"{killed_after}",
            f"{worker}",
            f"{difference(model, undisturbed[number % len(KINDS)]):.1e}",
            f"{time.perf_counter() - start:.1f}",
        ]
        print(*line, flush=True)
        lines.append(line)
    text = (
        "# Workers killed at random rounds\n\n`python benchmarks/cluster_faults.py`: "
        f"{options.times} runs of {N_ROUNDS} rounds on {N_ROWS:,} rows and {N_WORKERS} workers, "
        "one of which was killed with SIGKILL after a random round. Votes and log losses of all "
        "rounds are compared with those of one process without faults; worker 0 is where the "
        "workers of a run meet (fairproj "
        f"{versions()['fairproj']}). Seconds include the start of the cluster.\n\n"
        + markdown(lines)
    )
    write_text(options.output, text)
    print(text)


def make_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], N_ROWS, p=[0.5, 0.3, 0.2])
    table = pd.DataFrame({f"x{j}": rng.normal(size=N_ROWS) for j in range(8)})
    table["x0"] += group == "a"
    table["city"] = rng.choice(["Bonn", "Lima", "Oslo"], N_ROWS)
    score = table["x0"] - table["x1"] * table["x2"] + (table["city"] == "Lima")
    table["y"] = (score + rng.logistic(size=N_ROWS) > 0.3).astype(int)
    return table.assign(group=group)


def fit(model: Any, table: Any) -> Any:
    X = table.drop(columns=["y", "group"])
    return model.fit(X, table["y"], sensitive_features=table["group"])


def disturbed(model: Any, after: int, worker: int, table: pd.DataFrame) -> tuple[Any, int]:
    """The fitted model, and the round that the driver had heard of when a worker was killed."""
    killed_after: list[int] = []
    with (
        LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        path = Path(folder) / "checkpoint"
        pids = [pid for _, pid in sorted(client.run(os.getpid).items())]

        def kill() -> None:
            while (found := n_rounds(path)) < max(1, after):
                time.sleep(0.005)
            killed_after.append(found)
            os.kill(pids[worker], signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        model.set_params(checkpoint_path=path, checkpoint_every=1, timeout=60)
        fit(model, dd.from_pandas(table, npartitions=8))
    if not killed_after:
        raise SystemExit(f"the run was over before round {after} was seen")
    return model, killed_after[0]


def n_rounds(path: Path) -> int:
    try:
        return len(read_checkpoint(path).rounds)
    except CheckpointError:  # there is none yet
        return 0


def difference(model: Any, expected: Any) -> float:
    """The largest between votes and log losses of two runs; Newton steps have equal votes."""
    runs = [each.history_.columns for each in (model, expected)]
    if len(runs[0]["vote"]) != len(runs[1]["vote"]):
        raise SystemExit(f"{len(runs[0]['vote'])} rounds instead of {len(runs[1]['vote'])}")
    return float(max(np.abs(runs[0][name] - runs[1][name]).max() for name in ("vote", "log_loss")))


if __name__ == "__main__":
    main()
