"""The command line. No other part of the package imports typer."""

from __future__ import annotations

from fairproj.cli._app import add_command, app

__all__ = ["app"]

# In the order of the help page, each with the opening of its docstring.
add_command("demo", "Train a model on the Adult data, audit it and write a report.")
add_command("check", "Check a data file before training.")
add_command("train", "Train a model and write it to a file.")
add_command("audit", "Measure rates by group and gaps between groups.")
add_command("report", "Write a report as HTML, Markdown or JSON.")
add_command("predict", "Predict the label of each row of a file of any size.")
add_command("frontier", "Show what a smaller gap costs in accuracy.")
add_command("alternatives", "Search for less discriminatory models that are about as good.")
add_command("info", "Show what a model file holds.")
add_command("export", "Write a model for other programs, as LightGBM text, XGBoost JSON or ONNX.")
add_command("reproduce", "Run the paper's experiments.")
