"""Environments of peers whose packages do not fit beside ours: built, checked and talked to.

Each is a virtual environment in a folder that git ignores. One that cannot be built is reported
with its reason, and the command goes on without it.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from arena.plan import Environment

BENCHMARKS = Path(__file__).parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Built:
    """What became of an environment: the versions it has, or the reason why it has none."""

    name: str
    ok: bool
    reason: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def build(environment: Environment, folder: Path) -> Built:
    """Create an environment, or take it as it is if it was built from the same packages."""
    path = folder / environment.name
    key = hashlib.sha256(json.dumps(asdict(environment), default=list).encode()).hexdigest()
    marker = path / "built.json"
    if marker.exists():
        kept = json.loads(marker.read_text("utf-8"))
        if kept.pop("key") == key:
            return Built(**kept)
    shutil.rmtree(path, ignore_errors=True)
    start = time.perf_counter()
    try:
        _install(environment, path)
        versions = _versions(environment, path)
    except (subprocess.CalledProcessError, OSError) as error:
        shutil.rmtree(path, ignore_errors=True)
        return Built(environment.name, False, _reason(error))
    built = Built(environment.name, True, "", versions, time.perf_counter() - start)
    marker.write_text(json.dumps(built.to_dict() | {"key": key}), "utf-8")
    return built


def _install(environment: Environment, path: Path) -> None:
    _run([sys.executable, "-m", "venv", str(path)])
    install = [str(python_of(path)), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([*install, *environment.packages])
    if environment.unpinned:
        _run([*install, "--no-deps", *environment.unpinned])


_SHOW = """
import json, platform, sys
from importlib.metadata import version
print(json.dumps({"python": platform.python_version(), **{n: version(n) for n in sys.argv[1:]}}))
"""


def _versions(environment: Environment, path: Path) -> dict[str, str]:
    out = _run([str(python_of(path)), "-c", _SHOW, *environment.shown])
    return dict(json.loads(out))


def check(name: str, path: Path) -> str:
    """Import the methods of an environment; the reason if that fails, otherwise nothing."""
    try:
        run_in(path, "-c", f"import arena.peers.{name}")
    except (subprocess.CalledProcessError, OSError) as error:
        return _reason(error)
    return ""


def run_in(path: Path, *arguments: Any) -> str:
    """Run Python in an environment, with this folder's modules; what it prints."""
    given = [str(each.resolve()) if isinstance(each, Path) else each for each in arguments]
    return _run([str(python_of(path)), *given], cwd=BENCHMARKS)


def python_of(path: Path) -> Path:
    return path / ("Scripts" if os.name == "nt" else "bin") / "python"


def _run(command: list[str], cwd: Path | None = None) -> str:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd, env=environ)
    return done.stdout


def _reason(error: Exception) -> str:
    """The line that says most, without addresses and paths of this machine."""
    said = getattr(error, "stderr", None) or str(error)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(ERROR|\w*Error)\b", line)]
    line = (errors or lines or ["no message"])[-1]
    return re.sub(r"\S*[/\\]\S*", "...", line)[:300]


def download_wheel(package: str, folder: Path) -> str:
    """Download a wheel without what it needs; the reason if that fails, otherwise nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
    try:
        _run([*command, "--no-deps", "-d", str(folder), package])
    except (subprocess.CalledProcessError, OSError) as error:
        return _reason(error)
    return ""


class Service:
    """A worker process in an environment that answers requests one after the other."""

    def __init__(self, python: Path, log: Path) -> None:
        self.python, self.log = python, log
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """The answer; an error if the process ends without one, or does not answer in time.

        The process is started where it does not run, and stopped where it took too long.
        """
        try:
            process = self._running()
        except OSError as error:
            return {"error": _reason(error)}
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Timer(limit, process.kill)
        late.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            in_time = late.is_alive()
            late.cancel()
        if line:
            return dict(json.loads(line))
        self.close()
        ended = "the process ended without an answer"
        return {"error": ended if in_time else f"no answer in {limit:g} s"}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("a", encoding="utf-8") as log:
                self._process = _start_worker(self.python, log)
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
            self._process = None


def _start_worker(python: Path, log: IO[str]) -> subprocess.Popen[str]:
    """It has a session of its own, so that an interrupt reaches the command alone."""
    environ = dict(os.environ) | ONE_THREAD
    environ.pop("PYTHONPATH", None)
    return subprocess.Popen(
        [str(python), "-m", "arena.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        cwd=BENCHMARKS,
        env=environ,
        start_new_session=True,
    )


_services: dict[Path, Service] = {}


def ask(path: Path, request: dict[str, Any], limit: float) -> dict[str, Any]:
    """Ask the service of an environment, which this process keeps running."""
    if path not in _services:
        log = path.parents[1] / "logs" / f"{path.name}-{os.getpid()}.log"
        service = Service(python_of(path), log)
        _services[path] = service
        atexit.register(service.close)
    return _services[path].ask(request, limit)
