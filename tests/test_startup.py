"""What is imported when: names of the package on first use, commands when they run."""

import ast
import importlib
import inspect
import pickle

import pytest

import fairproj
from commands import run, run_main, run_new
from fairproj.cli import _app

HEAVY = {"numpy", "pandas", "scipy", "sklearn", "lightgbm", "pyarrow", "narwhals", "joblib"}
COMMANDS = list(_app._openings)


def imported_by(code):
    """What this code prints in a new interpreter, and the packages that are imported then."""
    printed, modules = run_new(code)
    return printed, {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize(
    ("option", "expected"), [("--version", f"fairproj {fairproj.__version__}"), ("--help", "train")]
)
def test_the_command_line_starts_without_the_libraries(option, expected):
    printed, packages = imported_by(run_main(option))
    assert expected in printed
    assert "fairproj" in packages
    assert not packages & HEAVY


def test_a_command_imports_what_it_needs():
    """The negative control: the list of packages does see NumPy."""
    _, packages = imported_by(run_main("info", "--help"))
    assert {"numpy", "sklearn"} <= packages


def test_the_exit_need_not_look_at_every_object():
    """What imports made stays to the end, and the system takes the memory back."""
    printed, _ = run_new(f"{run_main('--version')}\nimport gc\nprint(gc.get_freeze_count() > 0)")
    assert printed.splitlines()[-1] == "True"


def test_importing_the_package_imports_no_library():
    _, packages = imported_by("import fairproj")
    assert not packages & HEAVY
    _, packages = imported_by("import fairproj; fairproj.FairBoostClassifier")
    assert {"numpy", "sklearn", "lightgbm"} <= packages


def test_modules_of_the_package_are_found_without_an_import():
    names = (
        *("baselines", "boosting", "data", "engines", "estimators", "experiments"),
        *("inference", "inspection", "io", "report"),
    )
    printed, _ = imported_by(
        "import fairproj\n"
        "print(fairproj.metrics.__name__, fairproj.datasets.load_adult.__name__)\n"
        f"print(*(getattr(fairproj, n).__name__ for n in {names}))"
    )
    assert printed.split() == [
        "fairproj.metrics",
        "load_adult",
        *(f"fairproj.{name}" for name in names),
    ]


def test_names_of_other_packages_are_found_on_first_use():
    """The engines are imported by what exports a model, and not by what writes a file."""
    exports = "from fairproj.io import to_lightgbm, to_onnx, to_xgboost"
    ranges = "from fairproj.data import CellCounts, cut_ranges, propose_cuts, range_names"
    _, packages = imported_by("import fairproj.io.text, fairproj.data.user_warning")
    assert not packages & HEAVY
    _, packages = imported_by(f"{exports}\n{ranges}")
    assert {"numpy", "lightgbm"} <= packages


@pytest.mark.parametrize("package", ["data", "io"])
def test_a_package_lists_its_names_and_refuses_others(package):
    module = importlib.import_module(f"fairproj.{package}")
    assert {*module.__all__} <= {*dir(module)}
    with pytest.raises(AttributeError, match=f"module 'fairproj.{package}' has no attribute 'no'"):
        module.no  # noqa: B018


def test_the_package_for_clusters_is_found_too():
    pytest.importorskip("distributed")
    assert fairproj.distributed.__name__ == "fairproj.distributed"


def test_the_names_for_type_checkers_are_the_names_that_are_found():
    """The imports under TYPE_CHECKING name the same homes as the table behind `__getattr__`."""
    tree = ast.parse(inspect.getsource(fairproj))
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in branch.body if isinstance(node, ast.ImportFrom)]
    typed = {name.name: node.module for node in imports for name in node.names}
    homes = {name: f"fairproj.{home}" for name, home in fairproj._HOMES.items()}
    assert typed == homes | dict.fromkeys(fairproj._MODULES, "fairproj")
    assert {*typed, "__version__"} == set(fairproj.__all__) <= set(dir(fairproj))


@pytest.mark.parametrize("name", sorted(set(fairproj.__all__) - {"__version__"}))
def test_each_name_is_the_object_of_its_home(name):
    found = getattr(fairproj, name)
    home = importlib.import_module(f"fairproj.{fairproj._HOMES.get(name, name)}")
    assert found is (home if name in fairproj._MODULES else getattr(home, name))
    if inspect.isclass(found) or inspect.isfunction(found):
        assert pickle.loads(pickle.dumps(found)) is found


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match="module 'fairproj' has no attribute 'FairForest'"):
        fairproj.FairForest  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'FairForest'"):
        from fairproj import FairForest  # noqa: F401


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_the_opening_of_each(name):
    loaded = _app.load_command(name)
    assert loaded.name == name
    assert inspect.getdoc(loaded.callback).startswith(_app._openings[name])
    assert _app._openings[name] in " ".join(run(name, "--help").stdout.split())


def test_the_help_page_lists_the_commands_in_order():
    page = run("--help").stdout.partition("Commands:")[2]
    names = [line.split()[0] for line in page.splitlines() if line[:2] == "  " and line[2:3] != " "]
    assert names == COMMANDS
    assert [name for name in names if name in ("demo", "train", "audit", "report", "predict")] == [
        "demo",
        "train",
        "audit",
        "report",
        "predict",
    ]


def test_an_unknown_command_gets_a_suggestion():
    result = run("trian", code=2)
    assert "No such command 'trian'. Did you mean 'train'?" in result.stderr


def test_an_interrupt_while_a_command_is_imported(monkeypatch):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(_app, "import_module", interrupt)
    _app.load_command.cache_clear()
    run("info", "nothing", code=130)
