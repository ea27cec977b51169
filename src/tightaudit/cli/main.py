"""The way in: runs a command, and ends with an exit code and, if anything went wrong, with one line."""

import sys

from tightaudit.cli.interruption import Interruption
from tightaudit.cli.streams import outlive_readers


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on standard error and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    with Interruption(until_the_end=arguments is None) as interruption:
        try:
            code = _run(given)
            interruption.refuse_more()
            interruption.raise_again()  # Typer takes it for one of several ways to end
        except BaseException as error:
            interruption.refuse_more()
            from tightaudit.cli.ending import end

            code = end(error, given, interrupted=interruption.happened)
    sys.exit(code)


def _run(given: list[str]) -> int:
    outlive_readers()
    if given == ["--version"]:
        from tightaudit import __version__

        print(f"tightaudit {__version__}")  # without putting all commands together first
        return 0
    import warnings

    from tightaudit.cli.app import app
    from tightaudit.cli.output import warn

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        code = app(args=given, prog_name="tightaudit", standalone_mode=False, obj=given)
    sys.stdout and sys.stdout.flush()  # a full disk is noticed here, where it can be said, or never
    return code if isinstance(code, int) else 0
