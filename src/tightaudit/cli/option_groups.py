"""Options that belong together, as one argument of a command: a dataclass whose fields are options.

Typer wants a function with one parameter per option. `flat` makes it from a command that takes groups, and
`Command` fills in the names of claims, methods and mechanisms when help is printed, not before.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any, get_type_hints

from typer.core import TyperCommand


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command with a parameter for each option in its groups.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = 1
    ...     height: int = 2
    >>> def draw(size: Size) -> None:
    ...     print(size.width * size.height)
    >>> flat(draw)(width=3, height=4)
    12
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            kinds = get_type_hints(groups[name], include_extras=True)
            each = [(option.name, kinds[option.name], option.default) for option in fields(groups[name])]
        else:
            each = [(name, hints[name], parameter.default)]
        parameters += [
            inspect.Parameter(
                option,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=inspect.Parameter.empty if default is MISSING else default,
            )
            for option, kind, default in each
        ]

    def flattened(**given: Any) -> None:
        taken = {
            name: group(**{option.name: given.pop(option.name) for option in fields(group)})
            for name, group in groups.items()
        }
        command(**taken, **given)

    flattened.__name__, flattened.__doc__ = command.__name__, command.__doc__
    flattened.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flattened.__annotations__ = {}
    return flattened


class Command(TyperCommand):
    """A command in whose help {claims}, {formats}, {methods} and {mechanisms} stand for their names."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text:
                parameter.help = named(text)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def named(text: str) -> str:
    """A help text with names in the place of {claims} and the like."""
    return text.format_map(_Names()) if "{" in text else text


class _Names(dict[str, str]):
    def __missing__(self, kind: str) -> str:
        return ", ".join(names(kind))


def names(kind: str) -> list[str]:
    """The names there are of a kind, plug-ins included."""
    module, collection = {
        "claims": ("claims.base", "CLAIMS"),
        "formats": ("evidence.reading.files", "FORMATS"),
        "mechanisms": ("simulate.mechanisms.base", "MECHANISMS"),
        "methods": ("methods.base", "METHODS"),
    }[kind]
    return list(getattr(import_module(f"tightaudit.{module}"), collection))


def completing(kind: str) -> Callable[[str], list[str]]:
    """Completes the names of a kind in a shell."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names(kind) if name.startswith(incomplete)]

    return complete
