"""The list of commands; each is imported when it is called."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tightaudit import __version__
from tightaudit.cli.option_groups import Command, flat
from tightaudit.support.errors import InputError, did_you_mean

COMMANDS = {
    "audit": "How much did one run leak? From a file of scores to a table of bounds.",
    "pvalue": "How likely are so few errors if a claim holds?",
    "bound": "A lower bound on ε from counts.",
    "plan": "How many canaries does an audit need?",
    "many-runs": "The classic bounds, from many runs with one guess each.",
    "calibrate": "How often is a method wrong about a mechanism of known privacy?",
    "dpsgd": "The paper's DP-SGD experiment, at any size.",
    "reproduce": "The figures of the paper.",
    "demo": "Train a small network with canaries, and audit it.",
}
"""Each has a file of its name in this folder, with a function of its name."""


class Commands(TyperGroup):
    """The commands, put together one at a time."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        alone = typer.Typer(
            add_completion=False,
            pretty_exceptions_enable=False,
            rich_markup_mode="rich",
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        function = getattr(import_module(f"tightaudit.cli.{name}"), name)
        alone.command(cmd_name, cls=Command)(flat(function))
        return typer.main.get_command(alone)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise InputError(
                "command", args[0], f"one of {', '.join(COMMANDS)}{did_you_mean(args[0], COMMANDS)}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=Commands,
    name="tightaudit",
    help="How much does a differentially private algorithm really leak? Lower bounds on ε from one run.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the list of commands is plain text, for which rich need not be imported
    context_settings={"help_option_names": ["-h", "--help"]},
)


def options_of(arguments: list[str]) -> list[str]:
    """The options of the command that a command line names.

    >>> "--delta" in options_of(["audit", "scores.csv"])
    True
    """
    command = Commands().get_command(None, next(iter(arguments), ""))
    return [] if command is None else [name for option in command.params for name in option.opts]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        print(f"tightaudit {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
