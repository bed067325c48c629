"""Full disks and folders that cannot be written: the old file stays, and one sentence says why."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairproj import __version__
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from kept import read_kept
from safety.commands import COMMANDS, Command, is_whole, prepare, shorten_demo
from safety.forks import preload, start

REFUSED, WRITTEN = "old files kept, one sentence", "new files, whole"
_PATIENCE = 300.0  # seconds
_SPACE = 1 << 20  # bytes of the disk that is filled
_NOBODY = 65534


def run(path: Path, page: Path, arguments: Any) -> int:
    """Run every command with every fault, and write the page; returns the number of failures."""
    preload()
    path.parent.mkdir(parents=True, exist_ok=True)
    if arguments.fresh:
        path.unlink(missing_ok=True)
    done = {json.dumps(line["case"]) for line in read_kept(path)}
    for command in COMMANDS:
        for fault in FAULTS:
            case = {"command": command, "fault": fault}
            if json.dumps(case) not in done and (end := try_fault(command, fault)) is not None:
                line = {"case": case, "result": {"version": __version__, "end": end}}
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
    return write_page(path, page)


def try_fault(name: str, fault: str) -> str | None:
    """How a command ends; None where the fault cannot be made here."""
    with tempfile.TemporaryDirectory(prefix="fairproj-fault-") as folder_name:
        folder = Path(folder_name)
        folder.chmod(0o755)
        disk = folder / "disk"
        disk.mkdir()
        prepare(folder)
        command = _elsewhere(COMMANDS[name])
        try:
            with FAULTS[fault](disk, lambda: _run(command, folder)) as in_child:
                return _verdict(command, folder, in_child)
        except subprocess.CalledProcessError:
            return None


def _elsewhere(command: Command) -> Command:
    """The same with outputs on the disk of the fault."""
    moved = {name: f"disk/{name}" for name in command.outputs}
    arguments = [moved.get(text, text) for text in command.arguments]
    if command.arguments[0] == "demo":
        arguments[arguments.index(".")] = "disk"
    return Command(arguments, list(moved.values()))


def _run(command: Command, folder: Path, before: Callable[[], None] = lambda: None) -> int:
    def begin() -> None:
        shorten_demo()
        before()

    fork = start(command.arguments, folder, folder / "errors.log", begin)
    fork.wait(lambda: False, _PATIENCE)
    return fork.finish()


def _verdict(command: Command, folder: Path, in_child: Callable[[], None]) -> str:
    """Run over the old files, which the context has made."""
    before = {name: (folder / name).read_bytes() for name in command.outputs}
    code = _run(command, folder, in_child)
    if list((folder / "disk").glob(".*.partial")):
        return "a partial file is left"
    if not all(is_whole(folder / name) for name in command.outputs):
        return "half a file"
    if code in (0, 3, 4, 5):
        return WRITTEN
    errors = (folder / "errors.log").read_text("utf-8").splitlines()
    errors = [line for line in errors if not line.startswith(("warning: ", "note: "))]
    if code != 1 or len(errors) != 1 or not errors[0].startswith("error: "):
        return f"exit code {code}"
    old = [name for name in command.outputs if (folder / name).read_bytes() == before[name]]
    return REFUSED if len(old) == len(before) else f"{len(old)} of {len(before)} old files kept"


Fault = Iterator[Callable[[], None]]


@contextmanager
def _disk(path: Path, write: Callable[[], int]) -> Iterator[None]:
    """A small disk with the old files; needs the right to mount."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SPACE}", "tmpfs", str(path)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        write()
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


@contextmanager
def full_disk(path: Path, write: Callable[[], int]) -> Fault:
    """No byte is left."""
    with _disk(path, write):
        _fill(path, 0)
        yield lambda: None


@contextmanager
def nearly_full_disk(path: Path, write: Callable[[], int]) -> Fault:
    """A page is left, so that files are opened and cannot be written to the end."""
    with _disk(path, write):
        _fill(path, 4096)
        yield lambda: None


def _fill(path: Path, left: int) -> None:
    free = shutil.disk_usage(path).free - left
    (path / "filler").write_bytes(bytes(max(0, free)))


@contextmanager
def read_only_disk(path: Path, write: Callable[[], int]) -> Fault:
    with _disk(path, write):
        subprocess.run(["mount", "-o", "remount,ro", str(path)], check=True, capture_output=True)
        yield lambda: None


@contextmanager
def file_size_limit(path: Path, write: Callable[[], int]) -> Fault:
    """Files may have 600 bytes (``ulimit -f``), which writing tells as a full disk does."""
    write()
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))


@contextmanager
def folder_of_another(path: Path, write: Callable[[], int]) -> Fault:
    """A folder that the user may read and not write."""
    write()
    path.chmod(0o555)
    try:
        yield _become_nobody
    finally:
        path.chmod(0o755)


def _become_nobody() -> None:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


FAULTS: dict[str, Any] = {
    "full disk": full_disk,
    "4 KB left": nearly_full_disk,
    "read-only disk": read_only_disk,
    "folder of another user": folder_of_another,
    "files of 600 bytes": file_size_limit,
}


def write_page(path: Path, page: Path) -> int:
    """The table of all runs that are kept; returns the number of failures."""
    ends: dict[str, dict[str, str]] = {}
    for line in read_kept(path):
        case = line["case"]
        ends.setdefault(case["command"], {})[case["fault"]] = line["result"]["end"]
    short = {REFUSED: "kept", WRITTEN: "written", None: "not run"}
    rows = [
        [f"`{name}`", *(short.get(found.get(fault), found.get(fault)) for fault in FAULTS)]
        for name, found in ends.items()
    ]
    counts = Counter(end for found in ends.values() for end in found.values())
    failures = counts.total() - counts[REFUSED] - counts[WRITTEN]
    text = (
        "# Full disks and folders that cannot be written\n\n`python benchmarks/safety faults`: "
        f"each command over older files. Of {counts.total()} runs, {counts[REFUSED]} kept the old "
        "files and ended with one sentence and exit code 1 (kept), "
        f"{counts[WRITTEN]} had room for the new ones (written), and {failures} did otherwise. "
        "Disks need the right to mount; where it is missing they are not run.\n\n"
        + markdown([["command", *FAULTS], *rows])
    )
    write_text(page, text)
    return failures
