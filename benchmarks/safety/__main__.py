"""Mutated files, kills, full disks: ``python benchmarks/safety`` (``--help`` for more).

Counts are kept in benchmarks/results/safety and add up over runs; a run that was stopped goes on.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path[0] = str(Path(__file__).parents[1])  # the folder that holds this package
    sys.exit(import_module("safety.cli").main())
