"""What a release needs: one version everywhere, a check for each extra, fitting workflows."""

import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import fairproj

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
sys.path.append(str(ROOT / "tools"))

import check_release  # noqa: E402


@pytest.mark.parametrize(
    ("file", "pattern"),
    [("CITATION.cff", r"^version: (\S+)$"), ("CHANGELOG.md", r"^## (\S+) \(.+\)$")],
)
def test_the_version_is_the_same_everywhere(file, pattern):
    """The newest heading of the changes comes first."""
    found = re.search(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE)
    assert found[1] == fairproj.__version__


def test_every_version_of_python_that_is_named_is_tested():
    start = "Programming Language :: Python :: "
    named = [each.removeprefix(start) for each in PROJECT["classifiers"] if start in each]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    (listed,) = re.findall(r"python: \[(.*)\]", workflow)
    assert named == [each.strip('" ') for each in listed.split(",")]
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_make_release_checks_every_extra_of_users():
    of_developers = {"docs", "lint", "mutation", "release", "test"}
    checked = [each.extra for each in check_release.FEATURES]
    assert sorted(checked) == sorted(PROJECT["optional-dependencies"].keys() - of_developers)


def test_contents_of_an_archive_add_up(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("a/b/c/one.py", "x" * 1_000_000)
        archive.writestr("a/b/two.py", "x" * 500_000)
        archive.writestr("three.py", "x" * 20_000)
    shown = check_release.contents(tmp_path / "a.whl", 2)
    assert "MB, 3 files" in shown
    assert "| a/b | 2 | 1.50 |" in shown
    assert "| (no folder) | 1 | 0.02 |" in shown


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("raise ImportError(\"pip install 'fairproj[plot]'\")", True),
        ("raise ImportError('no module named matplotlib')", False),
        ("print('fairproj[plot]')", False),
    ],
)
def test_a_feature_must_fail_and_name_its_extra(script, named, tmp_path, monkeypatch):
    feature = check_release.Feature("plot", script)
    monkeypatch.setattr(check_release, "FEATURES", [feature])
    clean = object.__new__(check_release.Clean)  # of this interpreter; a new one takes seconds
    clean.folder, clean.python = tmp_path, sys.executable
    (check,) = check_release.check_missing(clean, "here")
    assert check.passed == named
