"""A small part of benchmarks/safety: every kind of trial, and that a fault would be seen."""

import ast
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from safety import cli, data_files, faults, kept, kills, model_files, trials
from safety.effects import EffectMonitor
from safety.trials import Block, Tally


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    model_files.prepare(folder)
    return folder


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_mutated_model_files_are_refused_or_answer(models, tmp_path):
    trial = model_files.Trial(models, tmp_path)
    for index in range(400):
        kind, _ = trial.make(12345, index)
        end, message = trial.run()
        assert end in model_files.MEANING, (index, kind, end, message)


@pytest.mark.filterwarnings("ignore")
def test_data_files_with_faults_are_read_or_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where archives are unpacked
    data_files.prepare(tmp_path)
    trial = data_files.Trial(tmp_path, tmp_path)
    kinds = set()
    for index in range(300):
        kind, _ = trial.make(12345, index)
        end, message = trial.run()
        assert end in data_files.MEANING, (index, kind, end, message)
        kinds.add(kind)
    assert {".csv", ".csv.gz", ".parquet", ".feather"} <= kinds


def test_mutants_are_the_same_whenever_they_are_made():
    for index in range(20):
        assert data_files.data_mutant(1, index) == data_files.data_mutant(1, index)
    assert data_files.data_mutant(1, 0) != data_files.data_mutant(2, 0)


def test_effects_are_seen(tmp_path):
    monitor = EffectMonitor(tmp_path / "scratch")
    with monitor.watch() as seen:
        (tmp_path / "written").write_text("x")
        exec("1 + 1")
    assert [effect.split()[0] for effect in seen] == ["open", "compile", "exec"]
    with monitor.watch() as seen:
        (tmp_path / "written").read_text()
    assert seen == []


def test_code_that_an_imported_module_makes_is_no_effect(tmp_path, monkeypatch):
    made = "import typing\nmany = typing.List['int']\nexec('one = 1')\n"
    (tmp_path / "annotated.py").write_text(made)
    monkeypatch.syspath_prepend(tmp_path)
    monitor = EffectMonitor(tmp_path / "scratch", usual=("open", "os.rename"))
    with monitor.watch() as seen:
        importlib.import_module("annotated")
    assert seen == []
    with monitor.watch() as seen:
        sys.modules["annotated"].typing.List["str"]
    assert [effect.split()[0] for effect in seen] == ["compile"]


class Dying:
    """Files of which some end the process, or the patience."""

    def __init__(self, folder, scratch):
        pass

    def make(self, seed, index):
        self.index = index
        return "even" if index % 2 == 0 else "odd", Path()

    def run(self):
        if self.index == 3:
            signal.raise_signal(signal.SIGKILL)
        if self.index == 5:
            signal.pause()
        return ("bad", "why") if self.index == 6 else ("good", "")


Trial = Dying
MEANING = {"good": "well"}
TITLE = COLUMN = WORDS = "words"


@pytest.mark.slow
def test_a_file_that_ends_or_stops_its_worker_is_charged(tmp_path):
    blocks = [Block(7, 0, 4), Block(7, 4, 4)]
    found = trials.run_blocks("test_safety", tmp_path, blocks, n_workers=1, limit=3)
    path = tmp_path / "kept.jsonl"
    for tally in found:
        kept.keep(path, tally)
    assert kept.done_blocks(path) == set(blocks)
    text = kept.page(path, sys.modules[__name__], "python x")
    assert "8 files" in text
    assert "| even | 4 | 3 | 1 |" in text
    assert "| odd | 4 | 2 | 2 |" in text
    assert "died (-9) (`python x --replay 7:3`)" in text
    assert "hangs for 3 s (`python x --replay 7:5`)" in text
    kept.discard_failed(path)
    assert kept.done_blocks(path) == set()


def test_counts_of_several_seeds_add_up(tmp_path):
    path = tmp_path / "kept.jsonl"
    for seed in (1, 2):
        tally = Tally(Block(seed, 0, 2))
        for index in range(2):
            tally.add(index, "a", ("good", ""), MEANING)
        kept.keep(path, tally)
    text = kept.page(path, sys.modules[__name__], "python x")
    assert "seeds 1, 2" in text
    assert "| all | 4 | 4 | 0 |" in text


# In processes of their own: a fork of a process with threads, as this one may be, can stop

KILL = """
import random, sys
from safety import forks, kills
forks.preload()
print(dict(kills.kill_batch(sys.argv[1], random.Random(1), 4)))
"""

# Signals end the command with a code of their own, which no other code may stand for.
WRONG_CODE = """
import random, sys
from fairproj import __main__ as entry
from safety import forks, kills
entry._exit = lambda number, _: sys.exit(1)
kills.SIGNALS = {"SIGTERM": 0.5, "SIGHUP": 0.5}
forks.preload()
print(dict(kills.kill_batch(sys.argv[1], random.Random(1), 2)))
"""

FAULT = """
import sys
from safety import faults, forks
forks.preload()
print(faults.try_fault(sys.argv[1], sys.argv[2]))
"""


def in_process(code, *arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["export", "predict, CSV"])
def test_killed_commands_leave_whole_files(command):
    counts = ast.literal_eval(in_process(KILL, command))
    assert counts["killed"] == 4
    assert counts.get(kills.OLD, 0) + counts.get(kills.NEW, 0) >= 4
    assert {fault: counts.get(fault, 0) for fault in kills.FAULTS} == dict.fromkeys(kills.FAULTS, 0)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["files of 600 bytes", "folder of another user"])
def test_commands_that_cannot_write_keep_the_old_files(fault):
    assert in_process(FAULT, "predict, CSV", fault) == faults.REFUSED


# Writes to the file itself, and waits in the middle.
HALF = (
    """
import time
from fairproj.io import atomic
def publish(partial, target):
    raw = partial.read_bytes()
    target.write_bytes(raw[:99])
    time.sleep(0.5)
    target.write_bytes(raw)
    return target
atomic._publish = publish
"""
    + KILL
)


@pytest.mark.slow
def test_half_a_file_would_be_seen():
    counts = ast.literal_eval(in_process(HALF, "export").splitlines()[-1])
    assert counts[kills.HALF] > 0


@pytest.mark.slow
def test_another_exit_code_would_be_seen():
    counts = ast.literal_eval(in_process(WRONG_CODE, "export").splitlines()[-1])
    assert counts[kills.CODE] == 2


def test_kills_of_another_design_are_not_shown(tmp_path):
    kept_lines, page = tmp_path / "kills.jsonl", tmp_path / "kill.md"
    counts = {"killed": 20, "SIGKILL": 12, "SIGTERM": 5, "SIGHUP": 3, kills.OLD: 20}
    case = {"command": "train", "seed": 0, "first": 0}
    lines = [
        {"case": case, "result": {"counts": {"killed": 999, kills.HALF: 1}}},
        {"case": case | {"signals": kills.SIGNALS}, "result": {"counts": counts}},
    ]
    kept_lines.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert kills.write_page(kept_lines, page) == 0
    text = page.read_text()
    assert "20 kills of commands" in text
    assert "50 % SIGKILL, 25 % SIGTERM, 25 % SIGHUP" in text
    assert "| `train` | 20 | 12 | 5 | 3 | 0 | 20 | 0 | 0 | 0 |" in text
    counts[kills.CODE] = 2
    lines[1]["result"]["counts"] = counts
    kept_lines.write_text(json.dumps(lines[1]) + "\n")
    assert kills.write_page(kept_lines, page) == 2


def test_the_command_goes_on_where_it_was(tmp_path, capsys):
    options = ["models", "--files", "30", "--block", "20", "--jobs", "1", "--output", str(tmp_path)]
    assert cli.main(options) == 0
    kept_lines = tmp_path / "safety" / "models.jsonl"
    first, second = kept_lines.read_text().splitlines(keepends=True)
    assert cli.main(options) == 0
    assert kept_lines.read_text() == first + second
    kept_lines.write_text(second)
    assert cli.main([*options, "--block", "8"]) == 0
    blocks = [(block.first, block.files) for block in kept.done_blocks(kept_lines)]
    assert sorted(blocks) == [(0, 8), (8, 8), (16, 4), (20, 10)]
    assert "| all | 30 |" in (tmp_path / "fuzz.md").read_text()
