"""``fairproj reproduce``: run the tasks that are left, then make the page from the tidy file."""

from __future__ import annotations

import os
from pathlib import Path

from fairproj.experiments._page import check_extras, write_page
from fairproj.experiments._plan import read_plan
from fairproj.experiments._run import Results, discard, expected_seconds, run
from fairproj.io.progress import time_bar


def reproduce(
    output: str | os.PathLike[str] = "reproduction",
    *,
    plan: str = "paper",
    quick: bool = False,
    fresh: bool = False,
    n_jobs: int = -1,
    verbose: bool = False,
) -> Path:
    """Run the paper's experiments and write its tables and figures, with the paper's beside ours.

    A run that was stopped continues: finished fits are in ``output/results.csv``.

    Parameters
    ----------
    output : path, default="reproduction"
        The folder for results, tables and figures; the page is written to ``output.md``.
    plan : {"paper", "readings"}, default="paper"
        The paper's experiments, or the study of what it leaves open.
    quick : bool, default=False
        Two splits and few epsilons.
    fresh : bool, default=False
        Discard earlier results and run everything.
    n_jobs : int, default=-1
        Number of fits at a time; -1 means one per core.
    verbose : bool, default=False
        Show a progress bar with the time left.

    Returns
    -------
    Path
        The page.
    """
    check_extras(plan)
    if fresh:
        discard(Path(output))
    results = Results(Path(output), read_plan(plan, quick=quick))
    run_with_progress(results, n_jobs, verbose=verbose)
    page = results.folder.with_name(results.folder.name + ".md")
    options = (" --readings" if plan == "readings" else "") + (" --quick" if quick else "")
    write_page(page, results, f"fairproj reproduce{options}")
    return page


def run_with_progress(results: Results, n_jobs: int = -1, *, verbose: bool = True) -> None:
    """Run what is left of a plan, with a bar in expected seconds."""
    plan = results.plan
    total = sum(expected_seconds(task, plan) for task in plan.tasks())
    left = sum(expected_seconds(task, plan) for task in results.todo())
    with time_bar(plan.title, total, total - left, show=verbose and left > 0) as advance:
        run(results, n_jobs, advance)
