"""The experiments of the paper, run from one readable plan, with its numbers beside ours.

``paper.toml`` says what is run, ``published.toml`` what the paper prints, ``readings.toml`` what it
leaves open. A plan becomes tasks (`_plan`), each task one row of a tidy file (`_run`), and from
that file alone come tables, figures and a page.
"""

from fairproj.experiments._reproduce import reproduce

__all__ = ["reproduce"]
