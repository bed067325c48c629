"""``python -m fairproj`` and the ``fairproj`` command: the command line, if its extra is there."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from fairproj.cli import app
    except KeyboardInterrupt:  # so early that there is nothing to clear away
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(
            f"the command line needs {error.name}; install it with pip install 'fairproj[cli]'"
        )
    app()


if __name__ == "__main__":
    main()
