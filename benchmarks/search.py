"""CPU time of a search within a gap, beside the same fits from raw data, on Adult.

python benchmarks/search.py    # into benchmarks/results/search.md; about two minutes

Two searches with the default values, `FairBoostClassifier` (8) and `FairProjClassifier` (7), five
folds and one last fit each: 77 fits, one process, one thread. Both ways take turns.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from fairproj import FairBoostClassifier, FairProjClassifier, GapSearchCV
from fairproj.data import sample
from fairproj.data.encoder import FeatureEncoder
from fairproj.datasets import load_adult
from fairproj.engines.lightgbm import engine
from fairproj.estimators.base import BoostedClassifier
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions
from fairproj.metrics import equal_opportunity_difference, gaps
from fairproj.selection import FairStratifiedKFold, fair_train_test_split, splits

RESULTS = Path(__file__).parent / "results" / "search.md"
MAX_GAP = 0.05
ESTIMATORS = (FairBoostClassifier(), FairProjClassifier())
Rows = tuple[pd.DataFrame, pd.Series, pd.Series]


def adult_rows() -> Rows:
    """75 % of Adult, as ``fairproj train`` keeps for training, without the sensitive column."""
    data = load_adult()
    X = data.data.drop(columns="sex", errors="ignore")
    X, _, y, _, groups, _ = fair_train_test_split(
        X, data.target, data.sensitive_features, test_size=0.25, random_state=0
    )
    return X, y, groups


def search_all(rows: Rows) -> list[GapSearchCV]:
    X, y, groups = rows
    searches = [
        GapSearchCV(estimator, MAX_GAP, if_none="nearest", n_jobs=1) for estimator in ESTIMATORS
    ]
    return [search.fit(X, y, sensitive_features=groups) for search in searches]


def fit_from_raw_data(rows: Rows, searches: list[GapSearchCV]) -> None:
    """The same fits, scores and gaps, with nothing shared between them."""
    X, y, groups = rows
    folds = list(FairStratifiedKFold(5).split(X, y, groups))
    for search in searches:
        for at, parameters in enumerate(search.cv_results_["params"]):
            for number, (train, test) in enumerate(folds):
                model = clone(search.estimator).set_params(**parameters)
                model.fit(X.iloc[train], y.iloc[train], sensitive_features=groups.iloc[train])
                predicted = model.predict(X.iloc[test])
                score = accuracy_score(y.iloc[test], predicted)
                gap = equal_opportunity_difference(
                    y.iloc[test], predicted, sensitive_features=groups.iloc[test]
                )
                same = [f"split{number}_test_score", f"split{number}_test_gap"]
                found = [search.cv_results_[name][at] for name in same]
                assert np.allclose(found, [score, gap], rtol=0, atol=1e-12)
        model = clone(search.estimator).set_params(**search.best_params_)
        model.fit(X, y, sensitive_features=groups)


class Watch:
    """Counts the calls of functions, and the CPU seconds spent in them and in all."""

    def __init__(self) -> None:
        self.total = 0.0
        self.calls: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self._replaced: list[tuple[Any, str, Any]] = []

    def add(self, what: str, name: str, *owners: Any) -> None:
        """Count calls of the function ``name``, in each module or class that refers to it."""
        self.calls[what], self.seconds[what] = 0, 0.0
        for owner in owners:
            original = getattr(owner, name)
            self._replaced.append((owner, name, original))
            setattr(owner, name, self._counting(what, original))

    def _counting(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:
            self.calls[what] += 1
            start = time.process_time()
            try:
                return function(*arguments, **more)
            finally:
                self.seconds[what] += time.process_time() - start

        return counted

    def restore(self) -> None:
        for owner, name, original in self._replaced:
            setattr(owner, name, original)


def watched(work: Callable[[], Any]) -> Watch:
    """What is done in ``work``, and how often."""
    watch = Watch()
    watch.add("checks of labels", "check_labels", sample, splits, gaps)
    watch.add("checks of groups", "check_groups", sample, splits, gaps)
    watch.add("encodings in fits", "fit_transform", FeatureEncoder)
    watch.add("encodings in predictions", "transform", FeatureEncoder)
    watch.add("binnings", "bin_rows", engine)
    watch.add("training loops", "_run", BoostedClassifier)
    watch.add("predictions", "_margin", BoostedClassifier)
    try:
        start = time.process_time()
        work()
        watch.total = time.process_time() - start
    finally:
        watch.restore()
    return watch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, help="the first so many rows only, nothing is written")
    options = parser.parse_args()
    X, y, groups = adult_rows()
    rows = X.iloc[: options.rows], y.iloc[: options.rows], groups.iloc[: options.rows]
    warnings.simplefilter("ignore")  # targets out of reach
    searches = search_all(rows)
    ways: dict[str, Callable[[], Any]] = {
        "two searches": lambda: search_all(rows),
        "the same fits from raw data": lambda: fit_from_raw_data(rows, searches),
    }
    found: dict[str, list[Watch]] = {way: [] for way in ways}
    for _ in range(options.repeats):
        for way, work in ways.items():
            found[way].append(watched(work))
    text = page(found, len(rows[1]))
    print(text)
    if options.rows is None:
        write_text(RESULTS, text)


def page(found: dict[str, list[Watch]], n_rows: int) -> str:
    lines = [["", "CPU seconds", "times the searches", "of it training loops"]]
    ours = median(watch.total for watch in found["two searches"])
    for way, watches in found.items():
        total = median(watch.total for watch in watches)
        share = median(watch.seconds["training loops"] / watch.total for watch in watches)
        lines.append([way, f"{total:.2f}", f"{total / ours:.2f}", f"{share:.0%}"])
    counts = [["calls", *found]]
    for what in found["two searches"][0].calls:
        counts.append([what, *(str(watches[0].calls[what]) for watches in found.values())])
    made = f"Python {versions()['python']}, LightGBM {versions()['lightgbm']}"
    return (
        "# What a search costs\n\n`python benchmarks/search.py`: `GapSearchCV` on "
        f"{n_rows:,} rows of Adult around `FairBoostClassifier` and `FairProjClassifier`, "
        f"max_gap={MAX_GAP:g}, the default values, five folds and a last fit each; one process, "
        "one thread, medians of CPU time. Scores and gaps of both ways are equal. "
        f"{made}.\n\n{markdown(lines)}\n{markdown(counts)}"
    )


if __name__ == "__main__":
    main()
