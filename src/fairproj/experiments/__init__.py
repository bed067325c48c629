"""The experiments of the paper, run from one plan, with the paper's numbers beside ours.

``paper.toml`` is the plan, ``published.toml`` holds the paper's numbers, and ``readings.toml`` is
the plan of a study of what the paper leaves open. A plan consists of tasks (`_plan`), each task
becomes one row of a tidy file (`_run`), and tables, figures and a page are made from that file.
"""

from fairproj.experiments._reproduce import reproduce

__all__ = ["reproduce"]
