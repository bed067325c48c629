"""Running commands as a user does."""

import json
import re
import subprocess
import sys

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


def run_main(*arguments):
    """Code that runs a command as ``python -m fairproj`` does, and goes on after its end."""
    arguments = [str(argument) for argument in arguments]
    return (
        f"import sys\nsys.argv = ['fairproj', *{arguments}]\nfrom fairproj.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )


def run_new(code):
    """What this code prints in a new interpreter, and the modules that are imported then."""
    code = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *printed, names = done.stdout.splitlines()
    return "\n".join(printed), set(names.split())


def with_fixed_spaces(content):
    """The content as a page shows it, which breaks no line between a number and its sign."""
    text = json.dumps(content, ensure_ascii=False)
    return json.loads(re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text))
