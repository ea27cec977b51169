"""The command line: puts the commands together and turns what goes wrong into one line and an exit code."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

import tightaudit
from tightaudit.commands.audit import audit
from tightaudit.commands.bound import bound
from tightaudit.commands.calibrate import calibrate
from tightaudit.commands.demo import demo
from tightaudit.commands.dpsgd import dpsgd
from tightaudit.commands.many_runs import many_runs
from tightaudit.commands.plan import plan
from tightaudit.commands.pvalue import pvalue
from tightaudit.commands.reproduce import reproduce
from tightaudit.errors import InputError

BAD_INPUT, FAILED = 2, 3

app = typer.Typer(
    name="tightaudit",
    help="How much does a differentially private algorithm really leak? Lower bounds on ε from one run.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        print(f"tightaudit {tightaudit.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (audit, pvalue, bound, plan, many_runs, calibrate, dpsgd, reproduce, demo):
    app.command(command.__name__.replace("_", "-"))(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters still gets the numbers
    try:
        given = sys.argv[1:] if arguments is None else arguments
        code = app(args=given, prog_name="tightaudit", standalone_mode=False, obj=given)
    except typer.TyperException as error:
        _fail(error.format_message(), BAD_INPUT)
    except InputError as error:
        _fail(str(error), BAD_INPUT)
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


def _fail(message: str, code: int) -> None:
    print(f"tightaudit: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
