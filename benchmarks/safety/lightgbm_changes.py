"""Changes of the text that LightGBM would read."""

from __future__ import annotations

import random
import re
from typing import Any

from safety.json_changes import change_json

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
