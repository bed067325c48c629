"""Benchmark runs that are kept in a file, so that a run that was stopped goes on from there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from fairproj.io.progress import time_bar

Case = dict[str, Any]


def run_cases(
    cases: Iterable[Case],
    measure: Callable[[Case], Case],
    path: Path,
    *,
    fresh: bool = False,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """A row for each case: the case itself and what ``measure`` returned for it.

    Results are appended to ``path``, one JSON object a line, as they come. Cases that are in the
    file already are not run again, unless ``fresh``.
    """
    cases = list(cases)
    if fresh:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {_key(row["case"]): row for row in _rows(path)}
    missing = [case for case in cases if _key(case) not in done]
    jobs = n_jobs or min(2, os.cpu_count() or 1)
    work = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(_measured)(measure, case) for case in missing
    )
    bar = time_bar(path.stem, len(cases), len(cases) - len(missing))
    with path.open("a", encoding="utf-8") as file, bar as advance:
        for row in work:
            file.write(json.dumps(row) + "\n")
            file.flush()
            done[_key(row["case"])] = row
            advance(1)
    return pd.DataFrame(
        [{**done[_key(case)]["case"], **done[_key(case)]["result"]} for case in cases]
    )


def _measured(measure: Callable[[Case], Case], case: Case) -> Case:
    start = time.perf_counter()
    result = measure(case)
    return {"case": case, "result": {"seconds": time.perf_counter() - start, **result}}


def _rows(path: Path) -> list[Case]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _key(case: Case) -> str:
    return json.dumps(case, sort_keys=True)
