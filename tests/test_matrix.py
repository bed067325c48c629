"""tools/matrix.py: which interpreters it finds, and the page that it keeps."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "tools" / "matrix.py"


@pytest.fixture(scope="module")
def matrix():
    spec = importlib.util.spec_from_file_location("matrix", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["matrix"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["matrix"]


def program(folder, name, text):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(os.name != "posix", reason="programs are shell scripts")
def test_interpreters_that_do_not_start_are_left_out(matrix, tmp_path):
    shims, real = tmp_path / "shims", tmp_path / "real"
    program(shims, "python3.11", "exit 127")
    good = program(real, "python3.11", "echo 3.11")
    shim = program(shims, "python3.12", "exit 127")
    wrong = program(real, "python3.13", "echo 3.12")
    found, skipped = matrix.find_pythons(os.pathsep.join(map(str, (shims, real))))
    assert found == {"3.11": good}
    assert skipped == [
        f"python3.12 is left out: {shim} does not start",
        f"python3.13 is left out: {wrong} does not start",
        "python3.14 is left out: it is not on the PATH",
    ]
    assert matrix.named_pythons([good]) == {"3.11": good}
    with pytest.raises(SystemExit, match="does not start"):
        matrix.named_pythons([shim])


def test_bounds_are_raised_to_the_oldest_wheel(matrix, tmp_path):
    """A pip that has wheels of b from 1.10 on, and of everything else."""
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        '*"index versions b") echo "Available versions: 2.0, 1.10, 1.9.1, 1.9, 1.8" ;;\n'
        '*" b==1.8" | *" b==1.9"*) exit 1 ;;\n'
        "esac\n"
    )
    python.chmod(0o755)
    wanted = [matrix.Requirement.parse(text) for text in ("a>=1.8", "b>=1.8", "c")]
    found = matrix.with_wheels(str(python), wanted)
    assert [one.pin("oldest") for one in found] == ["a==1.8", "b==1.10", "c"]


def row(name, python, failed=0):
    return {"environment": name, "python": python, "tests": "standard", "failed": failed}


def test_rows_add_up_and_newer_ones_replace_older(matrix, tmp_path):
    path = tmp_path / "matrix" / "rows.json"
    matrix.keep(row("oldest-python3.11", "3.11.7", failed=2), path)
    matrix.keep(row("newest-python3.13", "3.13.0"), path)
    rows = matrix.keep(row("oldest-python3.11", "3.11.7"), path)
    assert [one["environment"] for one in rows] == ["newest-python3.13", "oldest-python3.11"]
    text = matrix.page(rows)
    assert "| oldest-python3.11 | 3.11.7 | standard | 0 |" in text
    assert "There are no rows of Python 3.12, 3.14." in text
