"""The command line. No other part of the package imports typer."""

from __future__ import annotations

from fairproj.cli._alternatives import alternatives
from fairproj.cli._app import GroupedCommand, app
from fairproj.cli._audit import audit
from fairproj.cli._check import check
from fairproj.cli._demo import demo
from fairproj.cli._export import export
from fairproj.cli._frontier import frontier
from fairproj.cli._info import info
from fairproj.cli._predict import predict
from fairproj.cli._report import report
from fairproj.cli._reproduce import reproduce
from fairproj.cli._train import train

__all__ = ["app"]

for command in (
    *(demo, check, train, audit, report, predict, frontier, alternatives),
    *(info, export, reproduce),
):
    app.command(cls=GroupedCommand)(command)
