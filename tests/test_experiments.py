"""The paper's experiments: plans, data, resuming, tables, claims, pages and the command."""

import json
import re
import shutil
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import cvxpy
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from typer.testing import CliRunner

from fairproj.boosting.projection import project
from fairproj.boosting.record import History
from fairproj.datasets import load_adult, load_compas
from fairproj.estimators import FairBoostClassifier, FairProjClassifier
from fairproj.experiments import _data, _methods, _reproduce
from fairproj.experiments._claims import Difference, lower, paired
from fairproj.experiments._data import Part, encode, prepare, split
from fairproj.experiments._page import write_page
from fairproj.experiments._plan import Features, Method, Task, published, read_plan
from fairproj.experiments._readings import (
    AddedUp,
    EqualMasses,
    FixedMultiplier,
    ReadingClassifier,
    ShareOfPositives,
    SmoothedDual,
    with_multipliers,
)
from fairproj.experiments._run import KEY, Results, discard, run, run_task
from fairproj.experiments._study import feature_ranking
from fairproj.experiments._tables import DATASETS, table1, table2
from fairproj.io.records import from_json

pytestmark = pytest.mark.xdist_group("experiments")  # one process: the runs are shared

DOCS = Path(__file__).parents[1] / "docs"
CODES = Features("codes", "codes")


def small(name, **changes):
    """A plan of the package with few rounds, splits and features: all methods and datasets."""
    plan = read_plan(name, quick=True)
    methods = (
        replace(m, constraints=m.constraints[:1]) if m.name.startswith("EG") else m
        for m in plan.methods
    )
    few = {"rounds": 5, "methods": tuple(methods), "features": plan.features[-2:]}
    return replace(plan, **few, **changes)


@pytest.fixture(scope="module")
def few_iterations():
    """Exponentiated Gradient ends early; what it finds is tested elsewhere."""

    def short(build):
        return lambda *task, **settings: build(*task, **settings).set_params(max_iter=3)

    changed = {
        name: (short(build) if name.startswith("EG") else build, seconds)
        for name, (build, seconds) in _methods.METHODS.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_methods, "METHODS", changed)
        yield


@pytest.fixture(scope="module")
def german(tmp_path_factory, few_iterations):
    """A finished run on German Credit, one process."""
    plan = small("paper", datasets=("german",))
    results = Results(tmp_path_factory.mktemp("run") / "german", plan)
    run(results, 1, lambda seconds: None)
    return results


# Plans


@pytest.mark.parametrize("name", ["paper", "readings"])
def test_a_quick_plan_is_part_of_the_full_one(name):
    full, quick = read_plan(name), read_plan(name, quick=True)
    assert set(quick.tasks()) < set(full.tasks())
    assert full.fingerprint != quick.fingerprint


def test_the_plan_is_the_papers_protocol():
    plan = read_plan("paper")
    assert plan.seeds == tuple(range(42, 52))
    assert (plan.test_size, plan.rounds) == (0.2, 100)
    ours = next(method for method in plan.methods if method.name == "FairProj")
    assert len(ours.epsilons) == 12
    assert {0.40, 0.25, 0.15, 0.10} <= set(ours.epsilons)


def test_every_row_of_the_papers_tables_is_in_the_plan():
    settings = {(t.dataset, t.method, t.epsilon) for t in read_plan("paper").tasks()}
    rows = published()["table1"]["rows"]
    assert len(rows) == 15
    for dataset, method, epsilon, *_ in rows:
        assert (dataset, method, None if np.isnan(epsilon) else epsilon) in settings


# Data


def test_codes_and_indicators_are_those_of_scikit_learn():
    columns = load_compas().data
    names = columns.select_dtypes("category").columns
    codes = encode(columns, "codes")
    positions = [columns.columns.get_loc(name) for name in names]
    expected = OrdinalEncoder().fit_transform(columns[names].astype(str))
    np.testing.assert_array_equal(codes[:, positions], expected)
    indicators = encode(columns, "one-hot")
    expected = OneHotEncoder(sparse_output=False).fit_transform(columns[names].astype(str))
    assert indicators.shape[1] == columns.shape[1] - len(names) + expected.shape[1]
    np.testing.assert_array_equal(indicators[:, -expected.shape[1] :], expected)


def test_missing_values_are_a_category_or_drop_the_row():
    columns = load_adult().data
    incomplete = columns.isna().any(axis=1).to_numpy()
    assert incomplete.sum() == 48_842 - 45_222  # the complete rows of the literature
    work = columns.columns.get_loc("workclass")
    missing = columns["workclass"].isna().to_numpy()
    np.testing.assert_array_equal(encode(columns, "codes")[:, work] == -1, missing)
    dropped = prepare("adult", replace(CODES, drop_incomplete=True))
    assert len(dropped.y) == len(dropped.X) == len(dropped.groups) == 45_222


def test_sensitive_column_kept_and_column_left_out():
    plain = prepare("adult", CODES)
    changed = prepare("adult", replace(CODES, keep_sensitive=True, leave_out=("education_num",)))
    assert plain.X.shape == changed.X.shape == (48_842, 13)
    np.testing.assert_array_equal(changed.X[:, -1] == 1, changed.groups == "Male")


def test_splits_are_stratified_and_follow_the_seed():
    train, test = split("german", CODES, 0.2, 42)
    assert (len(train.y), len(test.y)) == (800, 200)
    assert test.y.mean() == pytest.approx(0.7)
    again, other = split("german", CODES, 0.2, 42), split("german", CODES, 0.2, 43)
    np.testing.assert_array_equal(again[1].X, test.X)
    assert (other[1].X != test.X).any()


# Readings

G = np.array([[0.0], [1.0], [0.0], [-1.0]])  # cells (group, label); only positives count


@pytest.mark.parametrize("seed", range(4))
def test_share_of_positives_is_a_projection(seed):
    mass = np.random.default_rng(seed).dirichlet([3, 8, 3, 1])
    found = ShareOfPositives(G, np.array([0.2]))(np.log(mass))
    w = cvxpy.Variable(4, nonneg=True)
    within = cvxpy.abs(w @ G[:, 0]) <= 0.2 * (w[1] + w[3])
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum(cvxpy.kl_div(w, mass))), [cvxpy.sum(w) == 1, within]
    )
    problem.solve(solver="CLARABEL")
    np.testing.assert_allclose(found.mass, w.value, atol=1e-4)
    assert found.kl == pytest.approx(problem.value, abs=1e-7)


def test_the_papers_solver_finds_the_projection():
    """Its smoothed dual agrees with the exact projection to what its smoothing allows."""
    epsilon = np.array([0.2])
    for seed in range(5):
        log_mass = np.log(np.random.default_rng(seed).dirichlet([3, 8, 3, 1]))
        found = SmoothedDual(G, epsilon)(log_mass)
        exact = project(log_mass, G, epsilon)
        np.testing.assert_allclose(found.mass, exact.mass, atol=2e-3)


def test_multipliers_added_up():
    log_mass = np.log([0.2, 0.4, 0.2, 0.2])
    epsilon = np.array([0.1])
    reading = AddedUp(G, epsilon)
    once = project(log_mass, G, epsilon).multipliers
    for times in (1, 2, 3):
        assert reading(log_mass).multipliers == pytest.approx(times * once)


def test_other_readings_act_beyond_epsilon_only():
    log_mass = np.log([0.2, 0.4, 0.2, 0.2])
    within, beyond = np.array([0.3]), np.array([0.1])
    assert EqualMasses(G, beyond)(log_mass).balance == pytest.approx([0], abs=1e-12)
    assert FixedMultiplier(G, beyond, 0.7)(log_mass).multipliers == pytest.approx([0.7])
    for reading in (EqualMasses(G, within), FixedMultiplier(G, within, 0.7)):
        assert reading(log_mass).kl == 0
    np.testing.assert_allclose(
        with_multipliers(log_mass, G, np.array([0.7])).mass,
        np.exp(log_mass) * np.exp(-0.7 * G[:, 0]) / (np.exp(log_mass) @ np.exp(-0.7 * G[:, 0])),
    )


def test_a_reading_chooses_the_weights_of_every_round():
    train, _ = split("german", CODES, 0.2, 42)
    plain, same, other = (
        model.fit(train.X, train.y, sensitive_features=train.groups).history_
        for model in (
            FairProjClassifier(epsilon=0.1, n_estimators=5),
            ReadingClassifier(epsilon=0.1, n_estimators=5),
            ReadingClassifier(epsilon=0.1, n_estimators=5, reading=EqualMasses),
        )
    )
    assert same == plain
    assert np.abs(plain.by_constraint("balance")).max() == pytest.approx(0.1)
    before, after = (np.abs(other.by_constraint(name)) for name in ("balance_q", "balance"))
    assert (before > 0.1).any()
    np.testing.assert_allclose(after, np.where(before > 0.1, 0.0, before), atol=1e-12)


# Running


def test_a_row_is_what_the_library_gives(german):
    row = german.read().query("method == 'FairProj' and epsilon == 0.1 and seed == 43").iloc[0]
    train, test = split("german", german.plan.features[0], 0.2, 43)
    model = FairProjClassifier(row["constraint"], epsilon=0.1, n_estimators=5)
    model.fit(train.X, train.y, sensitive_features=train.groups)
    predicted = model.predict(test.X)
    rates = [predicted[(test.groups == g) & (test.y == 1)].mean() for g in ("male", "female")]
    assert row["accuracy"] == pytest.approx((predicted == test.y).mean())
    assert row["equal_opportunity"] == pytest.approx(abs(rates[0] - rates[1]))
    assert row["rounds"] == len(model.history_)
    costs = [record.fairness_cost for record in model.history_]
    assert row["fairness_cost"] == pytest.approx(np.mean(costs))


def test_fairboost_takes_the_epsilon_of_a_plan_as_its_largest_gap():
    task = Task("german", "codes", "FairBoost", "equalized_odds", 0.03, 42)
    model = _methods.METHODS["FairBoost"][0](task, 7, loss="exponential")
    assert isinstance(model, FairBoostClassifier)
    assert (model.constraints, model.max_gap, model.n_estimators) == ("equalized_odds", 0.03, 7)
    assert model.loss == "exponential"


def test_every_task_has_one_row_and_a_second_start_has_nothing_to_do(german):
    assert len(german.read()) == len(list(german.plan.tasks()))
    assert german.todo() == []
    before = german.file.read_bytes()
    run(german, 1, lambda seconds: pytest.fail("a task was run again"))
    assert german.file.read_bytes() == before


def test_a_run_that_was_stopped_goes_on(german, tmp_path):
    methods = [m for m in german.plan.methods if not m.name.startswith(("EG", "Adaptive"))]
    plan = replace(german.plan, methods=tuple(methods))
    results = Results(tmp_path / "run", plan)
    count = []

    def stop(seconds):
        count.append(seconds)
        if len(count) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(results, 1, stop)
    assert len(results.read()) == 3
    with results.file.open("a") as file:
        file.write("german,codes,Adab")  # as a process that is killed leaves it
    results = Results(tmp_path / "run", plan)
    assert len(results.todo()) == len(list(plan.tasks())) - 3
    run(results, 1, lambda seconds: None)
    expected = german.read().query(
        "method in @names", local_dict={"names": [m.name for m in methods]}
    )
    found = results.tidy()
    pd.testing.assert_frame_equal(
        found.drop(columns="seconds"), expected.drop(columns="seconds").reset_index(drop=True)
    )


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes(german, tmp_path):
    plan = replace(german.plan, methods=(Method("AdaFair"), Method("AdaBoost")))
    results = Results(tmp_path / "run", plan)
    run(results, 2, lambda seconds: None)
    found = results.tidy().drop(columns="seconds")
    expected = german.read().query("method in ('AdaFair', 'AdaBoost')").drop(columns="seconds")
    key = ["method", "seed"]
    pd.testing.assert_frame_equal(
        found.sort_values(key, ignore_index=True),
        expected.sort_values(key, ignore_index=True),
        check_dtype=False,
    )


def test_results_of_another_plan_are_refused(german):
    other = replace(german.plan, rounds=6)
    with pytest.raises(ValueError, match="holds results of another plan"):
        Results(german.folder, other)


def test_the_history_of_figure_3_is_kept():
    plan = small("paper")
    tasks = [
        task
        for task in plan.tasks()
        if task[0::2][:2] == ("adult", "FairProj") and task.constraint == "equal_opportunity"
    ]
    histories = {(t.epsilon, t.seed): run_task(t, plan)[1] for t in tasks}
    drawn = {key: text for key, text in histories.items() if text is not None}
    assert list(drawn) == [(0.25, 42)]
    assert len(from_json(drawn[0.25, 42], History)) == 5


def test_results_of_other_versions_are_not_mixed_with_new_ones(german, tmp_path):
    shutil.copytree(german.folder, tmp_path / "run")
    note = tmp_path / "run" / "plan.json"
    note.write_text(re.sub(r'"lightgbm": "[^"]+"', '"lightgbm": "0.1"', note.read_text()))
    results = Results(tmp_path / "run", german.plan)
    run(results, 1, lambda seconds: None)  # nothing to do, nothing to mix
    kept = results.file.read_text().splitlines(keepends=True)[:-1]
    results.file.write_text("".join(kept))
    with pytest.raises(ValueError, match=r"other versions \(lightgbm 0.1, now"):
        run(results, 1, lambda seconds: None)
    discard(tmp_path / "run")
    assert len(Results(tmp_path / "run", german.plan).read()) == 0


@pytest.mark.parametrize("text", ["", "dataset,feat", "dataset\nadult\n"])
def test_a_file_cut_short_or_broken(german, tmp_path, text):
    shutil.copytree(german.folder, tmp_path / "run")
    results = Results(tmp_path / "run", german.plan)
    results.file.write_text(text)
    if "\n" in text:
        with pytest.raises(ValueError, match=r"results.csv cannot be read .* use --fresh"):
            results.read()
    else:
        assert len(results.todo()) == len(list(german.plan.tasks()))


# Tables and claims


def made_up(seed=0):
    """Results of the whole plan that no method made."""
    rng = np.random.default_rng(seed)
    plan = read_plan("paper")
    frame = pd.DataFrame(plan.tasks(), columns=KEY)
    frame["epsilon"] = frame["epsilon"].astype(float)
    for name in ("accuracy", "equal_opportunity", "demographic_parity", "rounds", "fairness_cost"):
        frame[name] = rng.random(len(frame))
    return frame


def test_tables_hold_means_and_the_papers_numbers():
    frame = made_up()
    first = table1(frame).set_index(["dataset", "method", "epsilon"])
    row = first.loc[("compas", "FairProj", 0.10)]
    mine = frame[
        (frame.dataset == "compas")
        & (frame.method == "FairProj")
        & (frame.epsilon == 0.1)
        & (frame.constraint == "equal_opportunity")
    ]
    assert len(mine) == 10
    assert row["gap_ours"] == pytest.approx(np.mean(mine.equal_opportunity))
    assert row["gap_ours_std"] == pytest.approx(np.std(mine.equal_opportunity, ddof=1))
    assert (row["accuracy_paper"], row["gap_paper"], row["rounds_paper"]) == (0.660, 0.169, 17.3)
    assert row["gap_difference"] == pytest.approx(np.mean(mine.equal_opportunity) - 0.169)
    second = table2(frame).set_index("epsilon")
    assert second.loc[0.15, "fairness_cost_paper"] == 0.477
    assert second["rounds_paper"].tolist() == [100.0, 10.0, 7.4]


def test_intervals_are_students_where_splits_do_not_overlap():
    rng = np.random.default_rng(1)
    a, b = (pd.DataFrame({"seed": range(10), "gap": rng.normal(size=10)}) for _ in "ab")
    b = b.sample(frac=1, random_state=0)  # pairing is by seed, not by position
    found = paired(a, b, "gap", test_size=0.0)
    other = b.sort_values("seed")["gap"].to_numpy()
    expected = stats.ttest_rel(a["gap"], other).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    wider = paired(a, b, "gap", test_size=0.2)
    assert (wider.high - wider.low) / (found.high - found.low) == pytest.approx(np.sqrt(1 + 10 / 4))


@pytest.mark.parametrize(
    ("intervals", "verdict"),
    [
        ([(-2, -1), (-3, -1)], "holds"),
        ([(-2, -1), (-1, 1)], "holds in part"),
        ([(-2, -1), (1, 2)], "holds in part"),
        ([(-1, 1), (-2, 1)], "not decided"),
        ([(1, 2), (1, 3)], "does not hold"),
        ([(1, 2), (-1, 1)], "does not hold"),
    ],
)
def test_verdicts(intervals, verdict):
    assert lower([Difference((low + high) / 2, low, high) for low, high in intervals]) == verdict


# Pages


@lru_cache
def some_rows(dataset, features):
    """At most 4000 rows of a dataset, every group and label among them."""
    whole = prepare(dataset, features)
    chosen = np.random.default_rng(0).permutation(len(whole.y))[:4000]
    return Part(*(array[chosen] for array in whole))


@pytest.fixture(scope="module")
def finished(tmp_path_factory, few_iterations):
    """Both plans, small and with few rows, through the function that the command calls."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_reproduce, "read_plan", lambda name, quick: small(name))
        patch.setattr(_data, "prepare", some_rows)
        pages = [
            _reproduce.reproduce(folder / name, plan=plan, quick=True, n_jobs=1)
            for name, plan in (("reproduction", "paper"), ("readings", "readings"))
        ]
        texts = [page.read_text() for page in pages]
        again = _reproduce.reproduce(folder / "reproduction", quick=True, n_jobs=1)
    assert again == pages[0]
    assert again.read_text() == texts[0]
    return folder


@pytest.mark.slow
def test_the_page_has_our_value_the_papers_and_the_difference_for_every_cell(finished):
    text = (finished / "reproduction.md").read_text()
    for dataset, method, epsilon, accuracy, spread, gap, gap_spread, _ in published()["table1"][
        "rows"
    ]:
        name = method if np.isnan(epsilon) else f"{method} (ε={epsilon:g})"
        pattern = (
            rf"\| {re.escape(DATASETS[dataset])} \| {re.escape(name)} "
            rf"\| ([\d.]+).±.[\d.]+ \| {accuracy:.3f}.±.{spread:.3f} \| ([+-]?[\d.]+) "
            rf"\| ([\d.]+).±.[\d.]+ \| {gap:.3f}.±.{gap_spread:.3f} \| ([+-]?[\d.]+) \|"
        )
        found = re.search(pattern, text)
        assert found, name
        ours, difference, our_gap, gap_difference = map(float, found.groups())
        assert difference == pytest.approx(ours - accuracy, abs=0.0011)
        assert gap_difference == pytest.approx(our_gap - gap, abs=0.0011)


@pytest.mark.slow
def test_everything_the_pages_show_is_there(finished):
    for name in ("reproduction", "readings"):
        text = (finished / f"{name}.md").read_text()
        assert "{" not in text
        for link in re.findall(r"\]\(([^)]+)\)", text):
            assert (finished / link).exists(), link
    for stem in ("table1", "table2", "figure1", "figure2", "figure3"):
        for ending in ("csv", "md"):
            assert (finished / "reproduction" / f"{stem}.{ending}").stat().st_size > 50
    for stem in ("figure1", "figure2", "figure3"):
        for ending in ("png", "svg"):
            assert (finished / "reproduction" / f"{stem}.{ending}").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plan"), [("reproduction", "paper"), ("readings", "readings")])
def test_the_kept_page_follows_from_the_kept_results(name, plan, tmp_path):
    shutil.copytree(DOCS / name, tmp_path / name)
    results = Results(tmp_path / name, read_plan(plan))
    assert results.todo() == []
    command = "fairproj reproduce" + (" --readings" if plan == "readings" else "")
    write_page(tmp_path / f"{name}.md", results, command)
    assert (tmp_path / f"{name}.md").read_text() == (DOCS / f"{name}.md").read_text()
    for file in sorted((DOCS / name).glob("*.csv")):
        assert (tmp_path / name / file.name).read_text() == file.read_text(), file.name


def test_the_features_are_those_the_study_finds():
    study = Results(DOCS / "readings", read_plan("readings"))
    nearest = feature_ranking(study.read())["features"].iloc[0]
    chosen = read_plan("paper").features
    assert [features.name for features in chosen] == [nearest]
    candidates = {features.name: features for features in read_plan("readings").features}
    assert chosen[0] == candidates[nearest]


# The command


def test_the_command_writes_the_page_and_says_where(monkeypatch, tmp_path):
    from fairproj.cli import app

    tiny = replace(
        small("readings"), methods=tuple(m for m in small("readings").methods if "own" in m.name)
    )
    ours = next(m for m in small("readings").methods if m.name == "FairProj")
    tiny = replace(tiny, methods=(*tiny.methods, ours), features=tiny.features[-1:])
    monkeypatch.setattr(_reproduce, "read_plan", lambda name, quick: tiny)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", "--readings", "--quick", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    assert "Page: readings-quick.md" in done.output
    assert (tmp_path / "readings-quick.md").exists()
    assert (tmp_path / "readings-quick" / "results.csv").exists()
    again = CliRunner().invoke(app, ["reproduce", "--readings", "--quick", "--jobs", "1", "--json"])
    assert json.loads(again.stdout) == {"page": "readings-quick.md", "folder": "readings-quick"}


def test_the_command_in_a_folder_of_another_plan(tmp_path):
    from fairproj.cli import app

    old = Results(tmp_path / "old", replace(read_plan("paper"), rounds=7))
    old.add(dict.fromkeys(KEY, "x"), None)
    done = CliRunner().invoke(app, ["reproduce", "--output", str(tmp_path / "old")])
    assert done.exit_code == 1
    assert "holds results of another plan" in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--jobs", "0"], "must be 1 or more"),
        (["--output", ""], "must name a folder"),
        (["--output", "/proc/none/run"], "cannot be written"),
    ],
)
def test_options_that_cannot_work(arguments, words):
    from fairproj.cli import app

    done = CliRunner().invoke(app, ["reproduce", "--quick", *arguments])
    assert done.exit_code in (1, 2)
    assert words in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_version_and_help():
    from fairproj.cli import app

    assert re.match(r"fairproj \d", CliRunner().invoke(app, ["--version"]).output)
    assert "--quick" in CliRunner().invoke(app, ["reproduce", "--help"]).output


def test_without_its_extra_the_command_says_what_to_install(monkeypatch):
    from fairproj.__main__ import main

    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("fairproj.cli")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit, match=r"needs typer; install it with pip install 'fairproj\["):
        main()


@pytest.mark.parametrize("package", ["fairlearn", "matplotlib", "msgspec"])
def test_without_its_extra_the_function_says_what_to_install(package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"need {package}; .* 'fairproj\[reproduce\]'"):
        _reproduce.reproduce(tmp_path / "run")
    assert not (tmp_path / "run").exists()
