"""Commands that the system ends: no process is left, no half file, and the right exit code."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairproj.datasets import load_compas

pytestmark = [
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc"),
    pytest.mark.xdist_group("signals"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    load_compas().frame.to_csv(folder / "compas.csv", index=False)
    return folder


def start(folder, *arguments, code="from fairproj.__main__ import main; main()", **options):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def descendants(process):
    """The numbers of all processes that a process has started, directly or not."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


DATA = ["compas.csv", "--label", "two_year_recid", "--sensitive", "sex"]
SEARCH = [*DATA, "--jobs", "2", "-o"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "output", "number"),
    [("alternatives", "a.html", signal.SIGTERM), ("frontier", "f.csv", signal.SIGHUP)],
)
def test_workers_end_with_the_command(folder, command, output, number):
    heed = {"preexec_fn": lambda: signal.signal(number, signal.SIG_DFL)}  # also under nohup
    process = start(folder, command, *SEARCH, output, **heed)
    workers = set()
    wait_until(lambda: len(workers.update(descendants(process.pid)) or workers) >= 3)
    process.send_signal(number)
    errors = process.communicate(timeout=30)[1]  # nobody holds its output open
    assert process.returncode == 128 + number, errors
    wait_until(lambda: not any(map(is_running, workers)), 20)
    assert sorted(os.listdir(folder)) == ["compas.csv"]


WRITING = """
import sys, time
from fairproj.io import atomic
atomic._publish = lambda *_: (print("writing", flush=True), time.sleep(60))
from fairproj.__main__ import main
main()
"""


@pytest.mark.parametrize("ignored", [False, True])
def test_a_partial_file_is_removed_and_nohup_is_respected(folder, ignored):
    asked = [
        "train",
        "compas.csv",
        "--label",
        "two_year_recid",
        "--sensitive",
        "sex",
        "--rounds",
        3,
    ]
    handler = signal.SIG_IGN if ignored else signal.SIG_DFL  # whatever the tests themselves got
    process = start(
        *(folder, *asked, "-o", "m.fairproj"),
        code=WRITING,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, handler),
    )
    line = ""
    while "writing" not in line:
        line = process.stdout.readline()
        assert line, process.stderr.read()
    process.send_signal(signal.SIGHUP)
    if ignored:
        time.sleep(0.3)
        assert process.poll() is None
        process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 128 + (signal.SIGTERM if ignored else signal.SIGHUP)
    assert sorted(os.listdir(folder)) == ["compas.csv"]


INTERRUPTED_REMOVAL = """
import os, signal
from pathlib import Path
unlink, interrupted = Path.unlink, []
def interrupt(path, missing_ok=False):
    if path.name.endswith(".partial") and not interrupted:
        interrupted.append(path)
        os.kill(os.getpid(), signal.SIGTERM)
    unlink(path, missing_ok)
Path.unlink = interrupt
from fairproj.__main__ import main
main()
"""

# As a pool of workers does that is ended while it starts
ERROR_ON_THE_WAY_OUT = """
import os, signal
from fairproj.io import atomic
def publish(*_):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        raise RuntimeError("cannot join thread before it is started")
atomic._publish = publish
from fairproj.__main__ import main
main()
"""


@pytest.mark.parametrize("code", [INTERRUPTED_REMOVAL, ERROR_ON_THE_WAY_OUT])
def test_a_command_ends_cleanly_wherever_the_signal_comes(folder, code):
    process = start(folder, "train", *DATA, "--rounds", 3, "-o", "m.fairproj", code=code)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert "Traceback" not in errors
    assert sorted(os.listdir(folder)) == ["compas.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_group_prints_no_traceback_of_workers(folder, number):
    """As Ctrl-C and a terminal that closes send it, while the workers start."""
    handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    heed = {"preexec_fn": lambda: signal.signal(number, handler), "start_new_session": True}
    process = start(folder, "alternatives", *SEARCH, "a.html", **heed)
    workers = set()
    wait_until(lambda: len(workers.update(descendants(process.pid)) or workers) >= 4)
    os.killpg(process.pid, number)
    errors = process.communicate(timeout=30)[1]
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number), errors
    assert "Traceback" not in errors
    assert len(errors.splitlines()) <= 2, errors  # a worker may stop, and loky say so
    wait_until(lambda: not any(map(is_running, workers)), 20)
    assert sorted(os.listdir(folder)) == ["compas.csv"]


SWALLOWED = """
import time
import fairproj.cli
from fairproj.__main__ import main

def app():
    try:
        print("started", flush=True)
        time.sleep(60)
    except BaseException:
        print("swallowed", flush=True)
    time.sleep(60)

fairproj.cli.app = app
main()
"""
CLEANING = """
import time
import fairproj.cli
from fairproj.__main__ import main

def app():
    try:
        print("started", flush=True)
        time.sleep(60)
    finally:
        for _ in range(8):
            time.sleep(0.1)
        print("cleaned", flush=True)

fairproj.cli.app = app
main()
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
@pytest.mark.parametrize(("code", "said"), [(SWALLOWED, "swallowed"), (CLEANING, "cleaned")])
def test_a_signal_whose_exception_is_swallowed_ends_the_command(folder, code, said):
    """As callbacks from C do; a clean-up that takes longer than the timer is not interrupted."""
    process = start(folder, code=code)
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert output == f"{said}\n"
    assert errors == ""


def test_commands_read_files_without_the_signal_handlers_of_pyarrow(monkeypatch):
    """They lose a signal now and then: `benchmarks/safety kills` found it."""
    import pyarrow

    from fairproj.cli._app import load_command

    said = []
    monkeypatch.setattr(pyarrow, "enable_signal_handlers", said.append)
    load_command.__wrapped__("train")
    assert said == [False]
