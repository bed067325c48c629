"""Damaged and hostile model files by the thousand, opened in processes that may die.

    python benchmarks/fuzz.py                 20,000 files, several minutes
    python benchmarks/fuzz.py --files 500 --seed 7

Each file is a mutant of a good one: bytes flipped, cut or put in; lines of LightGBM's text swapped;
values of the JSON replaced by others of a wrong type or of an extreme size. Most get a fresh
checksum, so that the deeper checks are reached. A file must be refused with one sentence, or open
as a model that answers. A worker that dies or hangs is charged to the file it had open, which is
kept. An audit hook checks that opening a file starts nothing, sends nothing and writes nothing.
"""

from __future__ import annotations

import argparse
import base64
import copy
import hashlib
import io
import json
import multiprocessing as mp
import os
import random
import re
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from fairproj import FairBoostClassifier, FairProjClassifier, ModelFileError, load

RESULTS = Path(__file__).parent / "results" / "fuzz.md"
REFUSED, ANSWERED, DECLINED = "refused", "answered", "declined"
MEANING = {
    REFUSED: "refused with one sentence",
    ANSWERED: "opened, and every answer well-formed",
    DECLINED: "opened, and the rows refused",
}
EXTREMES: list[Any] = [
    *(0, 1, -1, 2, 255, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63, -(2**63), 10**9, 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, 1.7976931348623157e308),
    *(
        "",
        "a",
        "\0",
        "a\nb",
        "a\r\nb",
        "\ud800",
        "nan",
        "inf",
        "-inf",
        "../../x",
        "\x1b[2J",
        "é" * 9,
    ),
    *(None, True, False, [], {}, [[]], [1, "a"], [1.0, 2.0], {"": 0}, [None], [0.0] * 9),
]
NUMBERS = [
    *("0", "1", "-1", "2", "99999999999", "-99999999999", "2147483648", "4294967296", "1e308"),
    *(
        "-1e308",
        "1e309",
        "nan",
        "inf",
        "-inf",
        "",
        ".",
        "-",
        "1e",
        "0x10",
        "1_0",
        "1\r2",
        "1\0",
        "٣",
    ),
    *("1e-320", "-0", "+1", "1.5", "15", "12", "9" * 400, "1\t2", "\x0b1"),
]


# Good files


def table(n_rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b c", "d"])
    frame.loc[::7, "d"] = np.nan
    frame["kind"] = pd.Categorical(rng.choice(["x", "y", "z", "w"], n_rows))
    frame["code"] = pd.Categorical(rng.choice([3, 5, 8], n_rows))
    frame["sex"] = rng.choice(["f", "m"], n_rows)
    return frame


def good_models() -> dict[str, tuple[Any, Any]]:
    """Fitted models, each with rows to ask it about."""
    X = table()
    rng = np.random.default_rng(1)
    y = np.where(X["a"] + (X["kind"] == "x") + rng.normal(size=len(X)) > 0.4, "yes", "no")
    numbers, sex = X[["a", "b c"]].to_numpy(), X["sex"]
    named = {"n_estimators": 6, "sensitive_columns": "sex"}
    plain = {"n_estimators": 5}

    def fit(model: Any, data: Any, labels: Any, groups: Any = None) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(data, labels, sensitive_features=groups), data[:8]

    logistic, first_order = LogisticRegression(), {**plain, "tree_step": "first_order"}
    deep = FairProjClassifier(max_depth=4, votes="confidence", epsilon=[0.1], **named)
    odds = FairBoostClassifier("equalized_odds", [0.1, 0.2], max_depth=3, **plain)
    return {
        "stumps": fit(FairProjClassifier(**plain), numbers, y == "yes", sex),
        "deep": fit(deep, X, y),
        "crossed": fit(FairProjClassifier(**plain), X[["a", "kind"]], y, X[["sex", "code"]]),
        "constant": fit(FairProjClassifier(**plain), np.zeros((len(y), 2)), y, sex),
        "skops": fit(FairProjClassifier(estimator=logistic, **plain), numbers, y, sex),
        "fairboost": fit(FairBoostClassifier(baseline=True, **named), X, y),
        "fairboost steps": fit(FairBoostClassifier(**first_order), numbers, y, sex),
        "fairboost odds": fit(odds, numbers, y, sex),
        "xgboost": fit(FairBoostClassifier(engine="xgboost", max_depth=3, **named), X, y),
        "xgboost stumps": fit(FairProjClassifier(engine="xgboost", **plain), numbers, y, sex),
        "fairboost skops": fit(
            FairBoostClassifier(estimator=logistic, **first_order), numbers, y, sex
        ),
    }


# Mutants


def mutant(good: dict[str, bytes], seed: int, index: int) -> tuple[str, str, bytes]:
    """The name of its base, the kind of damage and the bytes of a file; always the same."""
    rng = random.Random(f"{seed}-{index}")
    name = rng.choice(sorted(good))
    kinds = [*KINDS, "archive"] if "skops" in name else list(KINDS)
    kind = rng.choice(kinds)
    raw = good[name]
    if kind == "bytes":
        if rng.random() < 0.2:  # anywhere, and the checksum stays as it is
            return name, kind, damaged(raw, rng, list(good.values()))
        others = [other.split(b"\n")[1] for other in good.values()]
        return name, kind, enclosed(damaged(raw.split(b"\n")[1], rng, others), rng)
    record = json.loads(raw)["model"]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        (KINDS | {"archive": change_archive})[kind](record, rng)
    return name, kind, enclosed(as_json(record), rng)


def as_json(record: Any) -> bytes:
    """As fairproj writes it, where that can be done."""
    try:
        return bytes(msgspec.json.encode(record))
    except (ValueError, RecursionError):  # half a surrogate pair
        return json.dumps(record).encode()


def enclosed(record: bytes, rng: random.Random) -> bytes:
    """A file around a record; its checksum and version are right in most cases."""
    digest = hashlib.sha256(record if rng.random() < 0.95 else b"").hexdigest()
    version = 2 if rng.random() < 0.99 else rng.choice([0, 1, 3, 10**9])
    first = f'{{"format":"fairproj model","format_version":{version},"sha256":"{digest}","model":'
    return first.encode() + b"\n" + record + b"\n}\n"


def damaged(raw: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    data = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + rng.choice([1, 4, 64, 4096]))
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:end] = b""
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.choice([1, 4, 64]))
        elif kind == 3:
            data[at:at] = data[at:end]
        elif kind == 4:
            other = rng.choice(others)
            data[at:end] = other[at:end]
        elif rng.random() < 0.3:
            del data[at:]
        elif at < len(data):
            data[at : at + 1] = rng.choice([b"0", b"9", b"-", b"e", b'"', b"[", b"}", b"\\", b","])
        if not data:
            break
    return bytes(data)


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key in it."""
    keys = content if isinstance(content, dict) else range(len(content))
    for key in list(keys):
        yield content, key
        if isinstance(content[key], dict | list):
            yield from places(content[key])


def change_json(content: Any, rng: random.Random) -> None:
    """One value replaced, removed, doubled, moved or added; parts before single numbers."""
    candidates = list(places(content))
    if not candidates:
        return
    top = rng.choice(sorted({str(key) for key in content})) if rng.random() < 0.5 else None
    if top is not None and isinstance(content.get(top), dict | list) and content[top]:
        candidates = list(places(content[top])) or candidates
    where, key = rng.choice(candidates)
    kind = rng.randrange(8)
    if kind == 0:
        del where[key]
    elif kind == 1:
        other, other_key = rng.choice(candidates)
        where[key] = copy.deepcopy(other[other_key])
    elif kind == 2 and isinstance(where, list):
        where.insert(key, copy.deepcopy(where[key]))
    elif kind == 2:
        where[rng.choice(["x", "a\nb", "", str(key) + " "])] = rng.choice(EXTREMES)
    elif kind == 3 and isinstance(where, list):
        rng.shuffle(where)
    elif kind == 4:
        where[key] = nested(rng)
    else:
        where[key] = other_value(where[key], rng)


def nested(rng: random.Random) -> Any:
    value: Any = 1
    for _ in range(rng.choice([3, 50, 200])):
        value = {"a": value} if rng.random() < 0.7 else [value]
    return value


def other_value(value: Any, rng: random.Random) -> Any:
    """The same kind with another size, or any kind."""
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.4:
        return rng.choice([-value, value * 10**9, value + 1, str(value), [value], value + 0.5])
    if isinstance(value, str) and rng.random() < 0.4:
        return rng.choice([value * 2, value[:-1], value + "\n", value.upper(), [value], {value: 1}])
    return copy.deepcopy(rng.choice(EXTREMES))


def change_text(content: Any, rng: random.Random) -> None:
    """LightGBM's lines swapped, doubled, lost or rewritten; the sizes often made right again."""
    try:
        payload = content["ensemble"]["payload"]
        lines = payload["text"].split("\n")
    except (KeyError, TypeError, AttributeError):  # another kind, or damaged already
        return change_json(content, rng)
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(9)
    if kind == 0:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 1:
        lines.insert(at, lines[other])
    elif kind == 2:
        del lines[at]
    elif kind == 3:
        place = rng.randrange(len(lines[at]) + 1)
        char = chr(rng.choice([0, 9, 10, 13, 32, 45, 48, 61, 127, 133, 8232, 0xD800]))
        lines[at] = lines[at][:place] + char + lines[at][place + rng.randrange(2) :]
    elif kind == 4:
        lines = lines[:at]
    else:
        lines[at] = rewritten(lines[at], rng)
    text = "\n".join(lines)
    payload["text"] = resized(text) if rng.random() < 0.8 else text
    return None


def rewritten(line: str, rng: random.Random) -> str:
    name, equals, value = line.partition("=")
    words = value.split(" ")
    at = rng.randrange(len(words))
    if rng.random() < 0.7:
        near = [words[at] + "0", "-" + words[at]]
        if re.fullmatch(r"-?\d+", words[at]):
            near = [str(int(words[at]) + step) for step in (-1, 1, 2)]
        words[at] = rng.choice(NUMBERS if rng.random() < 0.5 else near)
    elif rng.random() < 0.5:
        rng.shuffle(words)
    else:
        words = words * rng.choice([0, 2, 1000])
    return name + equals + " ".join(words)


def resized(text: str) -> str:
    """The text with tree_sizes as its trees have them."""
    trees = re.split(r"^(?=Tree=)", text.partition("end of trees")[0], flags=re.MULTILINE)[1:]
    sizes = " ".join(str(len(tree.encode("utf-8", "replace"))) for tree in trees)
    return re.sub(r"^tree_sizes=.*$", f"tree_sizes={sizes}", text, count=1, flags=re.MULTILINE)


def change_archive(content: Any, rng: random.Random) -> None:
    """The zip that skops wrote: its bytes, its names, its schema or its arrays."""
    try:
        payload = content["ensemble"]["payload"]
        raw = base64.b64decode(payload["skops"])
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        schema = json.loads(parts["schema.json"])
    except Exception:  # damaged already, in one of many ways
        return change_json(content, rng)
    kind = rng.randrange(4)
    if kind == 0:
        raw = damaged(raw, rng, [raw])
    else:
        if kind == 1:
            change_schema(schema, rng)
            parts["schema.json"] = json.dumps(schema).encode()
        else:
            name = rng.choice(sorted(parts))
            parts[name] = damaged(parts[name], rng, list(parts.values()))
        if rng.random() < 0.1:
            parts[rng.choice(["../x", "/etc/x", "a" * 300, "x.npy"])] = b"\0" * 4096
        raw = archived(parts, rng.choice([zipfile.ZIP_STORED] * 4 + [zipfile.ZIP_DEFLATED]))
    payload["skops"] = base64.b64encode(raw).decode()
    return None


def change_schema(schema: Any, rng: random.Random) -> None:
    """Types that would run code, or any other change."""
    types = [(where, key) for where, key in places(schema) if key in ("__class__", "__module__")]
    if not types or rng.random() < 0.6:
        return change_json(schema, rng)
    where, _ = rng.choice(types)
    module, name, loader = rng.choice(
        [
            ("os", "system", "FunctionNode"),
            ("functools", "partial", "PartialNode"),
            ("builtins", "eval", "TypeNode"),
            ("subprocess", "Popen", "ObjectNode"),
            ("operator", "methodcaller", "OperatorFuncNode"),
            ("fairproj.engines.sklearn", "ConstantLearner", "ObjectNode"),
        ]
    )
    where |= {"__module__": module, "__class__": name}
    if rng.random() < 0.7:
        where["__loader__"] = loader
    return None


def archived(parts: dict[str, bytes], compression: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


KINDS: dict[str, Callable[[Any, random.Random], None]] = {
    "bytes": change_json,  # not called; `mutant` damages the bytes themselves
    "json": change_json,
    "lightgbm text": change_text,
}


# Trying a file


def verdict(path: Path, rows: Any) -> tuple[str, str]:
    """How a file ended, in one of three good ways or with a failure's name, and the message."""
    try:
        model = load(path)
    except ModelFileError as error:
        message = str(error)
        good = message.isprintable() and len(message) < 1000
        return (REFUSED, message) if good else ("refused with a bad sentence", repr(message))
    except BaseException as error:
        return f"load raised {type(error).__name__}", str(error)
    try:
        look_at(model)
        return ask(model, rows)
    except BaseException as error:
        return f"model raised {type(error).__name__}", str(error)


def look_at(model: Any) -> None:
    """Everything that a page or a person would read off the model."""
    for shown in (model, model.history_, model.certificate_):
        str(shown), repr(shown), shown._repr_html_()
    model.history_.to_frame(), model.certificate_.to_dict(), model.certificate_.holds
    list(model.estimator_weights_), list(model.estimator_errors_)
    if model.estimator is None:
        assert model.feature_importances_.shape == (model.n_features_in_,)


def ask(model: Any, rows: Any) -> tuple[str, str]:
    try:
        margin = model.decision_function(rows)
    except ValueError as error:
        return DECLINED, str(error)
    except Exception as error:
        if model.estimator is None:
            raise
        return DECLINED, str(error)  # a learner of scikit-learn whose arrays do not fit together
    labels, probabilities = model.predict(rows), model.predict_proba(rows)
    right = margin.shape == labels.shape == (len(rows),) and probabilities.shape == (len(rows), 2)
    if not (right and margin.dtype == np.float64 and not np.isnan(margin).any()):
        return "margins are not well-formed", repr(margin)
    return ANSWERED, ""


class EffectMonitor:
    """Records effects that a file must not have, while ``on``; an audit hook cannot be removed."""

    ALWAYS = re.compile(
        r"os\.(system|exec|posix_spawn|spawn|fork|startfile|remove|rename|chmod|link|symlink)"
        r"|subprocess\.|socket\.|pty\.|ctypes\.dlopen|pickle\.|marshal\.loads|shutil\.|webbrowser"
    )

    def __init__(self, scratch: Path) -> None:
        self.on = False
        self.seen: list[str] = []
        self._scratch = str(scratch)
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.on and self._is_bad(event, args):
            self.seen.append(f"{event} {args!r}"[:300])

    def _is_bad(self, event: str, args: tuple[Any, ...]) -> bool:
        if event == "open":
            path, mode, flags = str(args[0]), args[1], args[2]
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) or "w" in str(mode)
            return writes and not path.startswith(self._scratch)
        if event == "exec":  # the code of an imported module comes from a file of the installation
            return not os.path.isfile(args[0].co_filename)
        if event == "compile":  # ast.literal_eval, which reads the header of an array
            return args[1] != "<unknown>"
        return event != "marshal.loads" and bool(self.ALWAYS.match(event))


@dataclass
class Job:
    """The files of a worker: ``first, first + step, ...`` below ``stop``."""

    scratch: Path
    seed: int
    first: int
    stop: int
    step: int


def work(job: Job, wire: Connection) -> None:
    warnings.simplefilter("ignore")
    models = good_models()
    good = read_good(job.scratch)
    for name, (_, rows) in models.items():  # whatever is imported late is imported now
        assert verdict(job.scratch / f"{name}.fairproj", rows)[0] == ANSWERED, name
    path = job.scratch / f"mutant-{os.getpid()}.fairproj"
    monitor = EffectMonitor(job.scratch)
    for index in range(job.first, job.stop, job.step):
        name, kind, raw = mutant(good, job.seed, index)
        path.write_bytes(raw)
        wire.send((index, None))
        monitor.on = True
        end, message = verdict(path, models[name][1])
        monitor.on = False
        if monitor.seen:
            end, message = "the file had an effect", "; ".join(monitor.seen)
            monitor.seen.clear()
        wire.send((index, (name, kind, end, message)))
    path.unlink(missing_ok=True)


def read_good(scratch: Path) -> dict[str, bytes]:
    return {
        path.stem: path.read_bytes()
        for path in sorted(scratch.glob("[a-z]*.fairproj"))
        if not path.stem.startswith("mutant")
    }


# The run


@dataclass
class Worker:
    """A process with the file it has open and since when."""

    job: Job
    target: Callable[[Job, Connection], None]
    process: Any = None
    wire: Any = None
    index: int | None = None
    since: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        context = mp.get_context("spawn")
        self.wire, far = context.Pipe(duplex=False)
        self.process = context.Process(target=self.target, args=(self.job, far), daemon=True)
        self.process.start()
        far.close()
        self.index = None

    def messages(self) -> Iterator[tuple[int, Any]]:
        try:
            while self.wire.poll():
                index, end = self.wire.recv()
                self.index = index if end is None else None
                self.since = time.monotonic()
                if end is not None:
                    self.job.first = index + self.job.step
                    yield index, end
        except EOFError:
            pass


def run(n_files: int, seed: int, n_workers: int, limit: float, scratch: Path) -> dict[int, Any]:
    for name, (model, _) in good_models().items():
        model.save(scratch / f"{name}.fairproj")
    good = read_good(scratch)
    jobs = [Job(scratch, seed, at, n_files, n_workers) for at in range(n_workers)]
    return all_done(
        [Worker(job, work) for job in jobs], limit, lambda index: mutant(good, seed, index)[:2]
    )


def all_done(
    workers: list[Worker], limit: float, describe: Callable[[int], tuple[str, str]]
) -> dict[int, Any]:
    """How each file ended; ``describe`` gives the file it was made from and the damage."""
    outcomes: dict[int, Any] = {}
    for worker in workers:
        worker.start()
    while workers:
        wait([worker.wire for worker in workers], timeout=0.5)
        for worker in list(workers):
            outcomes.update(worker.messages())
            done = settle(worker, limit, describe)
            if isinstance(done, tuple):
                outcomes[done[0]] = done[1]
            if done == "finished":
                workers.remove(worker)
    return outcomes


def settle(worker: Worker, limit: float, describe: Callable[[int], tuple[str, str]]) -> Any:
    """Look after a worker: charge a death or a hang to its file and start the next."""
    hangs = worker.index is not None and time.monotonic() - worker.since > limit
    if worker.process.is_alive() and not hangs:
        return None
    if worker.index is None:  # between files: it is through, or could not start
        if worker.process.exitcode:
            raise RuntimeError(f"a worker ended with {worker.process.exitcode} before any file")
        return "finished"
    worker.process.kill()
    worker.process.join()
    end = f"hangs for {limit:g} s" if hangs else f"the process died ({worker.process.exitcode})"
    index = worker.index
    name, kind = describe(index)
    worker.job.first = index + worker.job.step
    if worker.job.first < worker.job.stop:
        worker.start()
    else:
        worker.index = None
    return index, (name, kind, end, "")


def page(outcomes: dict[int, Any], seed: int, seconds: float) -> str:
    ends = Counter(end for _, _, end, _ in outcomes.values())
    kinds = sorted({kind for _, kind, _, _ in outcomes.values()})
    bad = {end: n for end, n in ends.items() if end not in MEANING}
    sentences = {
        re.sub(r"\d+|'[^']*'|/\S+", "#", m) for _, _, end, m in outcomes.values() if end == REFUSED
    }
    head = ["| damage | files | " + " | ".join(MEANING.values()) + " | failures |"]
    rule = ["|---|--:|--:|--:|--:|--:|"]
    rows = [row(kind, [f for f in outcomes.values() if f[1] == kind]) for kind in kinds]
    lines = [
        "# Mutated model files",
        "",
        f"`python benchmarks/fuzz.py --files {len(outcomes)} --seed {seed}`, {seconds:.0f} s. "
        "A failure is a crash, a hang, another exception than ModelFileError, a message of more "
        "than one line, an ill-formed answer, or an effect that the audit hook saw. Rows are "
        "refused where a file names other columns, or where a scikit-learn learner of a skops "
        "archive has arrays that do not fit together.",
        "",
        *head,
        *rule,
        *rows,
        row("all", list(outcomes.values())),
        "",
        f"{len(sentences)} different sentences of refusal, numbers and quoted values aside.",
        *(f"- FAILURE: {end}: {n}" for end, n in bad.items()),
    ]
    return "\n".join(lines) + "\n"


def row(name: str, outcomes: list[Any]) -> str:
    ends = Counter(end for _, _, end, _ in outcomes)
    good = [ends.pop(end, 0) for end in MEANING]
    return (
        "| " + " | ".join([name, *(f"{n:,}" for n in (len(outcomes), *good, ends.total()))]) + " |"
    )


def keep(outcomes: dict[int, Any], seed: int, good: dict[str, bytes], kept: Path) -> None:
    for index, (name, kind, end, message) in sorted(outcomes.items()):
        if end not in MEANING:
            kept.mkdir(parents=True, exist_ok=True)
            path = kept / f"{seed}-{index}.fairproj"
            path.write_bytes(mutant(good, seed, index)[2])
            print(f"{path}: {name}, {kind}: {end}: {message[:300]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--limit", type=float, default=5.0, help="seconds a file may take")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairproj-fuzz-") as name:
        scratch = Path(name)
        outcomes = run(arguments.files, arguments.seed, arguments.workers, arguments.limit, scratch)
        keep(outcomes, arguments.seed, read_good(scratch), arguments.keep)
    text = page(outcomes, arguments.seed, time.monotonic() - begin)
    print(text)
    arguments.output.write_text(text, "utf-8")
    failed = [end for _, _, end, _ in outcomes.values() if end not in MEANING]
    return int(bool(failed) or len(outcomes) != arguments.files)


if __name__ == "__main__":
    sys.exit(main())
