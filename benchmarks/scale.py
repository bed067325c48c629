"""Seconds a round and peak memory as rows grow: one machine, out of core, and Dask workers.

python benchmarks/scale.py                        # into benchmarks/results/scale.md
python benchmarks/scale.py --rows 50000000        # out of core alone, into results/scale-large.md

Each run is a process of its own. Runs that are done are kept; --fresh starts anew. The tables are
written in chunks to Parquet files in --data, and removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fairproj import FairBoostClassifier
from fairproj.boosting.replay import RunControl
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions
from kept import run_cases

RESULTS = Path(__file__).parent / "results"
SIZES = (100_000, 1_000_000, 10_000_000)
REPEATS = 5  # of the comparison of two workers with one, at the largest size
N_COLUMNS = 20
N_ROUNDS = 10
FIRST_ROUNDS = 2  # not timed: memory is touched for the first time
CHUNK = 1 << 18
ROW_GROUP = 1 << 17
BYTES_A_ROW = 78  # of row state, as docs/guide/scale.md documents it
ONE_MACHINE = ("LightGBM", "XGBoost", "out of core")
# As docs/guide/scale.md recommends: Dask's own value returns memory to the system in every round.
WORKER_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
}
CLUSTER = {"Dask, 1 worker": 1, "Dask, 2 workers": 2}


def main() -> None:
    options = _parser().parse_args()
    if options.case:
        print(json.dumps(measure(json.loads(options.case), options.data)))
        return
    folder = options.data or Path(tempfile.mkdtemp(prefix="fairproj-scale-"))
    try:
        if options.rows:
            write_large(options.rows, options.rounds, folder)
        else:
            write_all(folder, fresh=options.fresh)
    finally:
        if options.data is None:
            shutil.rmtree(folder, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="only an out-of-core run on so many rows")
    parser.add_argument("--rounds", type=int, default=N_ROUNDS)
    parser.add_argument("--data", type=Path, help="where to put the tables, to keep them")
    parser.add_argument("--fresh", action="store_true", help="forget the runs that are kept")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    return parser


def write_all(folder: Path, *, fresh: bool) -> None:
    cases = [
        {"rows": rows, "way": way, "rounds": N_ROUNDS, "repeat": repeat}
        for rows in SIZES
        for repeat in range(REPEATS)
        for way in (*ONE_MACHINE, *CLUSTER)
        if repeat == 0 or (rows == SIZES[-1] and way in CLUSTER)
    ]
    runs = run_cases(
        cases,
        lambda case: in_process(case, folder),
        RESULTS / "scale" / "runs.jsonl",
        fresh=fresh,
        n_jobs=1,
    )
    for name, text in {"scale": page(runs), "scale-plan": plan(runs)}.items():
        write_text(RESULTS / f"{name}.md", text)
        print(text)


def write_large(n_rows: int, n_rounds: int, folder: Path) -> None:
    case = {"rows": n_rows, "way": "out of core", "rounds": n_rounds, "repeat": 0}
    run = in_process(case, folder)
    memory, model = run["peak_mb"], run["model"]
    text = (
        f"# One run on {n_rows:,} rows\n\n`python benchmarks/scale.py --rows {n_rows} --rounds "
        f"{n_rounds}`: `FairBoostClassifier(engine='xgboost')` with its default settings and two "
        f"threads, out of core, from a Parquet file of {N_COLUMNS} columns of single precision.\n\n"
        f"- data in single precision: {data_mb(n_rows):,.0f} MB; peak memory {memory:,.0f} MB, "
        f"{(memory - run['start_mb']) * 1e6 / n_rows:.0f} bytes a row above the "
        f"{run['start_mb']:,.0f} MB of Python and its libraries\n"
        f"- {run['setup_s']:,.0f} s until the first round, then {run['round_s']:.1f} s a round "
        f"(mean of {n_rounds - FIRST_ROUNDS}); {run['fit_s'] / 60:.1f} minutes in all\n"
        f"- on the {model['watched']}: accuracy {model['accuracy']:.4f}, gap in the true positive "
        f"rate {model['gap']:.4f} with max_gap {model['max_gap']:g}\n\n" + _versions()
    )
    write_text(RESULTS / "scale-large.md", text)
    print(text)


def in_process(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a case in a process of its own, on a table that exists already."""
    write_table(case["rows"], folder)
    command = [sys.executable, __file__, "--data", str(folder), "--case", json.dumps(case)]
    environment = {**os.environ, **(WORKER_MEMORY if case["way"] in CLUSTER else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{case} failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


# The table


def table_path(n_rows: int, folder: Path) -> Path:
    return folder / f"rows-{n_rows}.parquet"


def write_table(n_rows: int, folder: Path) -> None:
    """Write a table in chunks, unless it is there already."""
    path = table_path(n_rows, folder)
    if path.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    with pq.ParquetWriter(partial, chunk(0, 1).schema, compression="none") as writer:
        for number, start in enumerate(range(0, n_rows, CHUNK)):
            rows = chunk(number, min(CHUNK, n_rows - start))
            writer.write_table(rows, row_group_size=ROW_GROUP)
    partial.rename(path)


def chunk(number: int, n_rows: int) -> pa.Table:
    """Rows whose label depends on the group, on interactions and on steps."""
    rng = np.random.default_rng([14, number])
    X = rng.standard_normal((n_rows, N_COLUMNS), dtype=np.float32)
    X[:, 15:] = np.round(X[:, 15:] * 4)
    group = rng.random(n_rows) < 0.3
    X[:, 0] += 0.4 * group
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.2 * X[:, 15] + np.where(X[:, 3] > 0.5, 1.0, 0.0)
    y = score + rng.logistic(size=n_rows) > 0.8 - 0.3 * group
    columns = {f"x{i}": X[:, i] for i in range(N_COLUMNS)}
    return pa.table({**columns, "y": y.astype(np.int8), "g": np.where(group, "b", "a")})


def data_mb(n_rows: int) -> float:
    """The features in single precision."""
    return 4e-6 * n_rows * N_COLUMNS


# One run


def measure(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    path = table_path(case["rows"], folder)
    if case["way"] in CLUSTER:
        return on_cluster(path, case["rounds"], CLUSTER[case["way"]])
    return on_one_machine(path, case["rounds"], case["way"])


def on_one_machine(path: Path, n_rounds: int, way: str) -> dict[str, Any]:
    engine = "lightgbm" if way == "LightGBM" else "xgboost"
    model = FairBoostClassifier(engine=engine, n_estimators=n_rounds, random_state=0, n_jobs=2)
    warm_up(engine)
    start_mb = reset_peak()
    times = [time.perf_counter()]
    model._control = RunControl(after_round=lambda *_: times.append(time.perf_counter()))
    if way == "out of core":
        model.fit(str(path), "y", sensitive_features="g")
    else:
        X, y, groups = in_memory(path)
        model.fit(X, y, sensitive_features=groups)
    times.append(time.perf_counter())
    return {**summary(times), "start_mb": start_mb, "peak_mb": peak_mb(), "model": facts(model)}


def in_memory(path: Path) -> tuple[Any, ...]:
    """Features in single precision, labels and groups."""
    frame = pq.read_table(path).to_pandas()
    X = frame[[f"x{i}" for i in range(N_COLUMNS)]].to_numpy(dtype=np.float32)
    return X, frame["y"].to_numpy(), frame["g"]


def warm_up(engine: str) -> None:
    """Import and touch what every run needs, so that it counts as the start."""
    X = np.random.default_rng(0).normal(size=(2000, 3))
    FairBoostClassifier(None, engine=engine, n_estimators=2).fit(X, X[:, 0] > 0)


def on_cluster(path: Path, n_rounds: int, n_workers: int) -> dict[str, Any]:
    from dask.distributed import Client, LocalCluster

    from fairproj.distributed import DaskFairBoostClassifier
    from fairproj.distributed.worker import TOPIC

    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": None}
    with (
        LocalCluster(n_workers=n_workers, **options) as cluster,
        Client(cluster) as client,
    ):
        model = DaskFairBoostClassifier(n_estimators=n_rounds, random_state=0, client=client)
        client.run(warm_up, "xgboost")
        client.run(report_every_round)
        start_mb = sum(client.run(reset_peak).values())
        start = time.time()
        with Loopback() as traffic:
            model.fit(str(path), "y", sensitive_features="g")
        end = time.time()
        peak = sum(client.run(peak_mb).values())
        reports = client.get_events(TOPIC)
    rounds = [at for at, message in reports if "rounds" in message]
    result = summary([start, *rounds, end])
    result["sent_mb"] = traffic.mb(rounds[FIRST_ROUNDS - 1], rounds[-1]) / (n_rounds - FIRST_ROUNDS)
    return {**result, "start_mb": start_mb, "peak_mb": peak, "model": facts(model)}


def report_every_round() -> None:
    """Otherwise short rounds are reported together."""
    from fairproj.distributed import worker

    worker.REPORT_EVERY = 0.0


class Loopback:
    """Counts what processes of this machine send to each other."""

    def __enter__(self) -> Loopback:
        self._times: list[float] = []
        self._bytes: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            lines = Path("/proc/net/dev").read_text().splitlines()
            sent = next(line.split()[9] for line in lines if line.strip().startswith("lo:"))
            self._times.append(time.time())
            self._bytes.append(float(sent))

    def mb(self, start: float, end: float) -> float:
        first, last = np.interp([start, end], self._times, self._bytes)
        return float(last - first) / 1e6


def summary(times: list[float]) -> dict[str, float]:
    """Of the start, the end of each round, and the end."""
    rounds = np.diff(times[1:-1])[FIRST_ROUNDS - 1 :]
    return {
        "setup_s": times[1] - times[0],
        "round_s": float(np.mean(rounds)),
        "fit_s": times[-1] - times[0],
    }


def facts(model: Any) -> dict[str, Any]:
    proved = model.certificate_
    return {
        "votes": float(np.sum(model.estimator_weights_)),
        "log_loss": model.history_[-1].log_loss,
        "accuracy": proved.accuracy,
        "gap": proved.gap,
        "max_gap": proved.max_gap,
        "watched": proved.watched_on,
    }


def reset_peak() -> float:
    """Start to measure the peak of this process; its memory in MB now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak_mb() -> float:
    return _status("VmHWM")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(name))


# The page


def page(runs: pd.DataFrame) -> str:
    lines = [["rows", "way", "s a round", "s before", "peak MB", "bytes a row", "log loss"]]
    for (rows, way), group in runs.groupby(["rows", "way"], sort=False):
        above = (group["peak_mb"] - group["start_mb"]).median()
        lines.append(
            [
                f"{rows:,}",
                way,
                f"{group['round_s'].median():.3f}",
                f"{group['setup_s'].median():.1f}",
                f"{group['peak_mb'].median():,.0f}",
                f"{above * 1e6 / rows:.0f}",
                f"{group['model'].iloc[0]['log_loss']:.9f}",
            ]
        )
    return (
        "# Rows and time\n\n`python benchmarks/scale.py`: `FairBoostClassifier` with its default "
        f"settings (31 leaves, a quarter of the rows held out) and {N_ROUNDS} rounds on "
        f"{N_COLUMNS} columns of single precision, {4 * N_COLUMNS} bytes a row, two cores. On one "
        "machine both are threads of one process; Dask workers have one thread each. Seconds a "
        f"round are the mean after the first {FIRST_ROUNDS}; *s before* is everything up to the "
        "end of the first round: reading, binning, starting. Peak memory is that of all processes "
        "that hold rows, with Python and its libraries; bytes a row are those above the start. "
        "Dask workers keep freed memory, as the guide recommends. All of XGBoost's ways train the "
        "same model: see the log loss.\n\n"
        + markdown(lines)
        + "\n"
        + verdicts(runs)
        + "\n"
        + _versions()
    )


def plan(runs: pd.DataFrame) -> str:
    """What the measurements mean for many more rows, computed step by step."""
    rows, machines, cores, rounds, gigabit = 10**9, 16, 4, 100, 10
    largest = runs[runs["rows"] == SIZES[-1]]
    one, two = (largest[largest["way"] == way] for way in CLUSTER)
    workers, times = machines * cores, rows / SIZES[-1]
    two_row = (two["peak_mb"] - two["start_mb"]).median() * 1e6 / SIZES[-1]
    share = one["round_s"].median() / two["round_s"].median() / 2
    alone = one["round_s"].median() * times
    compute = alone / workers / share
    table_mb = two["sent_mb"].median() / 2
    sent = 2 * table_mb * cores
    network = sent * 8 / 1000 / gigabit
    setup = two["setup_s"].median() * 2 * times / workers
    return (
        f"# A plan for {rows:,} rows\n\n{N_COLUMNS} columns, 31 leaves, {rounds} rounds; "
        f"{machines} machines of {cores} cores with {gigabit} gigabit a second between them, a "
        "worker for each core. Every step is computed from what `python benchmarks/scale.py` "
        "measured.\n\n"
        f"- *On disk* {data_mb(rows) / 1000:,.0f} GB of Parquet files in single precision.\n"
        f"- *Memory* {two_row:.0f} bytes a row at the peak, when features are binned: "
        f"{two_row * rows / 1e9:,.0f} GB in all, {two_row * rows / 1e9 / machines:.0f} GB a "
        "machine, and Python and its libraries once for each worker.\n"
        f"- *Network a round* {table_mb:.1f} MB: the histograms of the nodes of a tree, "
        f"{N_COLUMNS} columns x 256 bins x 16 bytes each, and a few sums by cell, whatever the "
        "number of rows "
        "(measured between two workers). A worker of a ring of many sends about twice as much, "
        f"{2 * table_mb:.1f} MB; {cores} workers a machine {sent:.0f} MB, "
        f"{1000 * network:.0f} ms.\n"
        f"- *Seconds a round* {one['round_s'].median():.2f} s on one worker for {SIZES[-1]:,} "
        f"rows, so {alone:,.0f} s for {rows:,}; on {workers} workers {alone / workers:.1f} s, and "
        f"{compute:.1f} s if each is as efficient as two are here ({share:.0%}); with the network "
        f"{compute + network:.1f} s.\n"
        f"- *In all* {setup / 60:.1f} minutes to read, encode and bin the rows, and "
        f"{rounds * (compute + network) / 60:.0f} minutes of {rounds} rounds. A worker that fails "
        "costs that set-up again, and a repetition of the rounds that are done without growing "
        "their trees.\n"
        "\nWhat is not measured here: more than two workers on several machines, and a network "
        "other than the loopback device.\n"
    )


def verdicts(runs: pd.DataFrame) -> str:
    largest = runs[runs["rows"] == SIZES[-1]]
    core = largest[largest["way"] == "out of core"].iloc[0]
    used = core["peak_mb"] - core["start_mb"]
    allowed = data_mb(SIZES[-1]) / 2 + BYTES_A_ROW * SIZES[-1] / 1e6
    wide = largest[largest["way"].isin(CLUSTER)].pivot_table(
        index="repeat", columns="way", values="round_s"
    )
    ratios = (wide["Dask, 1 worker"] / wide["Dask, 2 workers"]).tolist()
    growth = [
        f"{way} {_growth(runs, way):.1f}" for way in (*ONE_MACHINE, *CLUSTER) if len(runs) > 1
    ]
    return (
        f"- Out of core at {SIZES[-1]:,} rows: {used:,.0f} MB above the start; half of the data "
        f"and {BYTES_A_ROW} bytes a row are {allowed:,.0f} MB.\n"
        f"- Two workers against one at {SIZES[-1]:,} rows, in {len(ratios)} runs: "
        f"{', '.join(f'{ratio:.2f}' for ratio in ratios)} times as fast; median "
        f"{statistics.median(ratios):.2f}.\n"
        f"- Time a round at {SIZES[-1]:,} rows over that at {SIZES[-2]:,}: {'; '.join(growth)}.\n"
    )


def _growth(runs: pd.DataFrame, way: str) -> float:
    rounds = runs[runs["way"] == way].groupby("rows")["round_s"].median()
    return float(rounds[SIZES[-1]] / rounds[SIZES[-2]])


def _versions() -> str:
    known = versions()
    names = ("python", "xgboost", "lightgbm", "dask")
    return ", ".join(f"{name} {known[name]}" for name in names if name in known) + ".\n"


if __name__ == "__main__":
    main()
