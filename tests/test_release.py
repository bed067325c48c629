"""What a release needs: one version everywhere, and workflows that fit the package."""

import re
import tomllib
from pathlib import Path

import pytest

import fairproj

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [("CITATION.cff", r"^version: (\S+)$"), ("CHANGELOG.md", r"^## (\S+) \(.+\)$")],
)
def test_the_version_is_the_same_everywhere(file, pattern):
    """The newest heading of the changes comes first."""
    found = re.search(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE)
    assert found[1] == fairproj.__version__


def test_every_version_of_python_that_is_named_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    start = "Programming Language :: Python :: "
    named = [each.removeprefix(start) for each in project["classifiers"] if start in each]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    (listed,) = re.findall(r"python: \[(.*)\]", workflow)
    assert named == [each.strip('" ') for each in listed.split(",")]
    assert project["requires-python"] == f">={named[0]}"
