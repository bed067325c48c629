"""Accuracy at a gap, and what it costs, of FairBoostClassifier beside other ways.

python benchmarks/fairboost.py                # every part, into benchmarks/results/fairboost.md
python benchmarks/fairboost.py compas adult   # some parts

Runs are kept in benchmarks/results/fairboost; a run that was stopped goes on from there, and
--fresh starts anew. Timings are taken one at a time: run the part "time" on an idle machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from fairboost_common import RESULTS, RUNS
from fairboost_points import points_part
from fairboost_quality import adult_part, compas_part, problems_part
from fairboost_time import time_part
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

PARTS: dict[str, Callable[[bool], str]] = {
    "problems": problems_part,
    "compas": compas_part,
    "adult": adult_part,
    "points": points_part,
    "time": time_part,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all by default")
    parser.add_argument("--fresh", action="store_true", help="discard kept runs")
    options = parser.parse_args()
    for name in options.parts or PARTS:
        text = PARTS[name](options.fresh)
        print(text)
        write_text(RUNS / f"{name}.md", text + "\n")
    pages = [RUNS / f"{name}.md" for name in PARTS]
    texts = [page.read_text("utf-8") for page in pages if page.exists()]
    shown = ("fairproj", "lightgbm", "fairlearn", "scikit-learn", "numpy", "python")
    made = ", ".join(f"{package} {versions()[package]}" for package in shown)
    head = f"# FairBoost beside other ways\n\n`python benchmarks/fairboost.py`; {made}.\n\n"
    write_text(RESULTS / "fairboost.md", head + "\n".join(texts))


if __name__ == "__main__":
    main()
