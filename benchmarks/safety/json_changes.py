"""Changes of bytes and of JSON values: damage that a model file may have anywhere."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

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
