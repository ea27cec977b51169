"""The way in: runs a command and turns what goes wrong into one line and an exit code."""

import io
import sys
import warnings
from typing import Any

from tightaudit import __version__
from tightaudit.support.errors import InputError

BAD_INPUT, FAILED = 2, 3


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters still gets the numbers
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        print(f"tightaudit {__version__}")  # without putting all commands together first
        sys.exit(0)
    import typer

    from tightaudit.cli.app import app

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _one_line
            code = app(args=given, prog_name="tightaudit", standalone_mode=False, obj=given)
    except typer.TyperException as error:
        _fail(_missing(error) or error.format_message(), BAD_INPUT)
    except InputError as error:
        _fail(_in_options(error, given), BAD_INPUT)
    except RecursionError:
        _fail("the input is nested too deeply", BAD_INPUT)
    except MemoryError:
        _fail("the input does not fit into memory", BAD_INPUT)
    except ArithmeticError as error:
        _fail(f"the computation failed: {error}", FAILED)
    except OSError as error:
        _fail(f"the output could not be written: {error}", FAILED)
    except typer.Abort:
        _fail("stopped", FAILED)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _missing(error: Exception) -> str | None:
    """What to give, where a required option was left out, in the words of its help."""
    option = getattr(error, "param", None)
    if type(error).__name__ != "MissingParameter" or option is None or not getattr(option, "help", None):
        return None
    from tightaudit.cli.option_groups import named

    return f"give {option.opts[0]}: {named(option.help)}"


def _in_options(error: InputError, given: list[str]) -> str:
    """The error as who types options reads it: what was left out is an option to give."""
    from tightaudit.cli.app import options_of

    option = f"--{error.argument.replace('_', '-')}"
    if error.value is None and option in options_of(given):
        return f"give {option}: {error.expected}"
    return str(error)


def _one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as people should see it, without the line of code it came from."""
    print(f"tightaudit: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _fail(message: str, code: int) -> None:
    print(f"tightaudit: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
