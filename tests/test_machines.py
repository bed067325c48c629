"""tools/machines.py: the same models on other instruction sets, threads and versions."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[1] / "tools" / "machines.py"


@pytest.fixture(scope="module")
def machines():
    spec = importlib.util.spec_from_file_location("machines", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["machines"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["machines"]


def fits(margin=0.0, labels=0, accuracy=0.0, gap=0.0):
    """Two models, of which the second differs by so much."""
    return {
        "one: margins": np.array([1.0, -1.0]),
        "one: labels": np.array([True, False]),
        "one: accuracy": np.array(0.8),
        "one: gap": np.array(0.1),
        "two: margins": np.array([2.0, -2.0 + margin]),
        "two: labels": np.array([True, labels > 0]),
        "two: accuracy": np.array(0.7 + accuracy),
        "two: gap": np.array(0.05 + gap),
    }


@pytest.mark.parametrize(
    ("other", "holds"),
    [
        ({"margin": 5e-11}, True),
        ({"margin": 2e-10}, False),
        ({"margin": np.nan}, False),
        ({"labels": 1}, False),
    ],
)
def test_same_versions_must_agree(machines, monkeypatch, other, holds):
    here, there = machines.Setting("here"), machines.Setting("there")
    monkeypatch.setattr(
        machines, "fit_elsewhere", lambda setting: fits(**other if setting is there else {})
    )
    page, held = machines.compare([here, there], [])
    assert held is holds
    assert f"| there | {other.get('margin', 0):.1e} | {other.get('labels', 0)} |" in page
    assert "labels of 4" in page


@pytest.mark.parametrize(
    ("other", "holds"),
    [
        ({"margin": 0.1, "labels": 1}, True),
        ({"accuracy": -0.0025}, False),
        ({"gap": 0.0025}, False),
        ({"gap": np.nan}, False),
    ],
)
def test_other_versions_must_have_the_same_scores(machines, monkeypatch, other, holds):
    here, there = machines.Setting("here"), machines.Setting("there")
    monkeypatch.setattr(
        machines, "fit_elsewhere", lambda setting: fits(**other if setting is there else {})
    )
    page, held = machines.compare([here], [there])
    assert held is holds
    differ = [f"{abs(other.get(part, 0)):.4f}" for part in ("accuracy", "gap")]
    assert f"| {' | '.join(differ)} | {other.get('labels', 0)} |" in page


@pytest.mark.slow
def test_another_instruction_set_gives_the_same_models(machines):
    plain, *others = machines.machines()
    known = machines.fit_elsewhere(plain)
    for setting in (others[0], others[-1]):
        fitted = machines.fit_elsewhere(setting)
        assert machines.largest(known, fitted, "margins") <= machines.MARGIN_LIMIT
        assert machines.different_labels(known, fitted) == 0
    assert 0.5 < known["COMPAS, FairBoost: accuracy"] < 0.7  # something was learnt


def test_versions_that_the_machine_does_not_have_are_named(machines):
    assert machines.absent({"3.11.7", "3.13.0"}) == ["Not on this machine: Python 3.12, 3.14."]
    assert machines.absent({f"{version}.1" for version in machines.PYTHONS}) == []
