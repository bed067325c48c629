"""Running commands as a user does."""

import json

from typer.testing import CliRunner

from fairproj.cli import app


def run(*arguments, code=0):
    """The result of a command, which must end with this exit code and without a traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def run_json(*arguments):
    """What a command prints with --json."""
    return json.loads(run(*arguments, "--json").stdout)
