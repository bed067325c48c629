"""The command line: parse, call, print; nothing else. The only place that imports typer."""

from __future__ import annotations

from fairproj.cli import (  # noqa: F401 - each adds its command
    _audit,
    _demo,
    _export,
    _frontier,
    _info,
    _predict,
    _report,
    _reproduce,
    _train,
)
from fairproj.cli._common import app

__all__ = ["app"]

_ORDER = ("demo", "train", "audit", "report", "predict", "frontier", "info", "export", "reproduce")
app.registered_commands.sort(
    key=lambda command: _ORDER.index(command.callback.__name__)  # type: ignore[union-attr]
)
