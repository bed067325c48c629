"""Mutants of good model files, each made from a seed and a number."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

import msgspec

from safety.archive_changes import change_archive
from safety.json_changes import change_json, damaged
from safety.lightgbm_changes import change_text

KINDS: dict[str, Callable[[Any, random.Random], None]] = {
    "bytes": change_json,  # not called; `mutant` damages the bytes themselves
    "json": change_json,
    "lightgbm text": change_text,
}


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
