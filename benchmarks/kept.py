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

from fairproj.io.atomic import write_text
from fairproj.io.progress import time_bar

Case = dict[str, Any]


def run_cases(
    cases: Iterable[Case],
    measure: Callable[[Case], Case],
    path: Path,
    *,
    fresh: bool = False,
    n_jobs: int | None = None,
    expected: Callable[[Case], float] = lambda case: 1.0,
) -> pd.DataFrame:
    """A row for each case: the case itself and what ``measure`` returned for it.

    Results are appended to ``path``, one JSON object a line, as they come. Cases that are in the
    file already are not run again, unless ``fresh``. ``expected`` says how long a case takes, in
    any unit, for the time left.
    """
    cases = list(cases)
    if fresh:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {_key(row["case"]): row for row in read_kept(path)}
    missing = [case for case in cases if _key(case) not in done]
    jobs = n_jobs or min(2, os.cpu_count() or 1)
    work = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(
        delayed(_measured)(measure, case) for case in missing
    )
    total, left = (sum(map(expected, some)) for some in (cases, missing))
    bar = time_bar(path.stem, total, total - left, show=bool(missing))
    with path.open("a", encoding="utf-8") as file, bar as advance:
        for row in work:
            file.write(json.dumps(row) + "\n")
            file.flush()
            done[_key(row["case"])] = row
            advance(expected(row["case"]))
    return pd.DataFrame(
        [{**done[_key(case)]["case"], **done[_key(case)]["result"]} for case in cases]
    )


def _measured(measure: Callable[[Case], Case], case: Case) -> Case:
    start = time.perf_counter()
    result = measure(case)
    return {"case": case, "result": {"seconds": time.perf_counter() - start, **result}}


def read_kept(path: Path) -> list[Case]:
    """The cases of a file with their results; a last line that is not complete is removed."""
    if not path.exists():
        return []
    text = path.read_text("utf-8")
    complete = text[: text.rfind("\n") + 1]
    if complete != text:
        write_text(path, complete)
    return [json.loads(line) for line in complete.splitlines() if line]


def _key(case: Case) -> str:
    return json.dumps(case, sort_keys=True)
