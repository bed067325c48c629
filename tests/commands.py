"""The commands, run as a user would."""

from typer.testing import CliRunner

from fairproj.cli import app


def run(*arguments, code=0):
    """What a command says; it must end with this exit code, and with no traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result
