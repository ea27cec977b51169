"""How a command ends that did not come to its end: the line and the exit code of every exception."""

import os
import sys
from contextlib import suppress

from tightaudit.cli.streams import say
from tightaudit.support.errors import ComputationError, InputError, printable

BAD_INPUT, FAILED, INTERRUPTED = 2, 3, 130
SHOW_TRACEBACK = "TIGHTAUDIT_TRACEBACK"
_LONGEST_LINE = 600
_OPTIONS = {
    ("many-runs", "false_positives"): "fp",
    ("many-runs", "false_negatives"): "fn",
    ("calibrate", "times"): "repetitions",
    ("calibrate", "at"): "look",
}
"""Arguments of a command's work whose options have shorter or other names."""


def end(error: BaseException, given: list[str], *, interrupted: bool = False) -> int:
    """Say in one line what went wrong with a command line; the exit code for it."""
    if os.environ.get(SHOW_TRACEBACK):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    if interrupted or isinstance(error, KeyboardInterrupt):
        line, code = "interrupted", INTERRUPTED
    else:
        line, code = _line_and_code(error, given)
    with suppress(OSError):  # nobody reads it, and the code says what there is to say
        say(printable(f"tightaudit: {line}", longest=_LONGEST_LINE))
    return code


def _line_and_code(error: BaseException, given: list[str]) -> tuple[str, int]:
    import typer

    match error:
        case typer.TyperException():
            return _missing(error) or error.format_message(), BAD_INPUT
        case InputError():
            return _in_options(error, given), BAD_INPUT
        case RecursionError():
            return "the input is nested too deeply", BAD_INPUT
        case MemoryError():
            return "the input does not fit into memory", BAD_INPUT
        case ComputationError():
            return str(error), FAILED
        case ArithmeticError():
            return f"the computation failed: {error}", FAILED
        case OSError():
            return f"the output could not be written: {error}", FAILED
        case SystemExit() if isinstance(error.__context__, OSError):  # what Typer makes of a closed pipe
            return _line_and_code(error.__context__, given)
        case typer.Abort():
            return "stopped", FAILED
        case _:
            what = f"{type(error).__name__}: {error}"
            return f"this should not have happened, {SHOW_TRACEBACK}=1 shows where: {what}", FAILED


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

    name = _OPTIONS.get((next(iter(given), ""), error.argument), error.argument)
    option = f"--{name.replace('_', '-')}"
    if error.value is None and option in options_of(given):
        return f"give {option}: {error.expected}"
    return str(error) if name == error.argument else str(InputError(name, error.value, error.expected))
