"""One comparison with every peer: ``python benchmarks/arena`` (``--help`` for more).

Runs are kept in benchmarks/results/arena; a run that was stopped goes on from there.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # the folder that holds this package
    sys.exit(import_module("arena.cli").main())
