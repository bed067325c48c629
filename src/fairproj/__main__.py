"""``python -m fairproj`` and the ``fairproj`` command."""

from __future__ import annotations

import sys


def main() -> None:
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
