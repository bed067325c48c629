"""Changes of the archive that skops wrote."""

from __future__ import annotations

import base64
import io
import json
import random
import zipfile
from typing import Any

from safety.json_changes import change_json, damaged, places


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
