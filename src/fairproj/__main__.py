"""``python -m fairproj`` and the ``fairproj`` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    # Threads of OpenMP that wait for one another keep a core busy by default. Beside other
    # processes, those that have work then wait for those that have none, and training crawls.
    # Read when a library that uses OpenMP is loaded, which is not before a command runs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from fairproj.cli import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pyarrow"):
            raise
        sys.exit(
            f"the command line needs {error.name}; install it with pip install 'fairproj[cli]'"
        )


if __name__ == "__main__":
    main()
