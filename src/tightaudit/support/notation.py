"""The text form of claims, families and mechanisms, as people write it: `gaussian(mu=1)`.

call     = name [ "(" [ argument { "," argument } ] ")" ]
argument = name "=" ( number | list | call )
list     = "[" number { "," number } "]"
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tightaudit.support.errors import InputError

Value: TypeAlias = float | tuple[float, ...]
"""One number, or several in a list."""

LONGEST_TEXT = 10_000
_DEEPEST = 20
_SHOWN = 40

# Blanks are not part of any token: matched before one, those at the end would be tried from each of them.
_TOKEN = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9_-]*)"
    r"|(?P<sign>[(),=\[\]])"
    r"|(?P<other>\S)"
)


@dataclass(frozen=True)
class Argument:
    """One value in a call, and where it stands."""

    value: Value | Call
    key_column: int
    column: int


@dataclass(frozen=True)
class Call:
    """A name with its arguments, remembering the text it was read from."""

    source: Source
    name: str
    arguments: dict[str, Argument]

    def __str__(self) -> str:
        return self.name

    def require_known(self, known: tuple[str, ...]) -> None:
        """Raise at the first argument whose name is not known."""
        for key, argument in self.arguments.items():
            if key not in known:
                expected = f"a parameter of {self.name} ({', '.join(known) or 'none'})"
                raise self.source.error(expected, argument.key_column, repr(key))

    def numbers(self, known: tuple[str, ...], lists: tuple[str, ...] = ()) -> dict[str, Value]:
        """The arguments by name, if each is known and a number, or a list of them where that may be."""
        self.require_known(known)
        values: dict[str, Value] = {}
        for key, argument in self.arguments.items():
            if isinstance(argument.value, Call):
                raise self.source.error(f"a number for {key}", argument.column, repr(argument.value.name))
            if isinstance(argument.value, tuple) and key not in lists:
                raise self.source.error(f"one number for {key}", argument.column, "a list")
            values[key] = argument.value
        return values


@dataclass(frozen=True)
class Source:
    """A text, and what it was given as."""

    label: str
    text: str

    def error(self, expected: str, column: int, found: str) -> InputError:
        """An error that points at a column of the text."""
        return InputError(self.label, repr(self.text), f"{expected} at column {column}, found {found}")


def parse(label: str, text: object) -> Call:
    """Read one call; `label` names the argument in errors.

    >>> call = parse("claim", "gaussian(mu=1)")
    >>> call.name, call.numbers(("mu",))
    ('gaussian', {'mu': 1.0})
    """
    if not isinstance(text, str):
        raise InputError(label, text, "text such as 'gaussian(mu=1)'")
    if len(text) > LONGEST_TEXT:
        shown = f"{text[:_SHOWN]!r} and {len(text) - _SHOWN:,} characters more"
        raise InputError(label, shown, f"a text of at most {LONGEST_TEXT:,} characters")
    return _Parser(Source(label, text)).read()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


class _Parser:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = [
            _Token(str(match.lastgroup), match[str(match.lastgroup)], match.start(str(match.lastgroup)) + 1)
            for match in _TOKEN.finditer(source.text)
        ]
        self._next = 0
        self._depth = 0

    def read(self) -> Call:
        call = self._call("a name such as gaussian")
        if self._next < len(self._tokens):
            raise self._error("nothing more" if call.arguments else "'(' or nothing more")
        return call

    def _call(self, expected: str) -> Call:
        if self._depth == _DEEPEST:
            raise self._error(f"at most {_DEEPEST} names inside each other")
        self._depth += 1
        name = self._take("name", expected).text
        arguments: dict[str, Argument] = {}
        if self._skip("(") and not self._skip(")"):
            self._argument(arguments)
            while self._skip(","):
                self._argument(arguments)
            if not self._skip(")"):
                raise self._error("',' or ')'")
        self._depth -= 1
        return Call(self._source, name, arguments)

    def _argument(self, arguments: dict[str, Argument]) -> None:
        key = self._take("name", "a parameter's name")
        if key.text in arguments:
            raise self._source.error("each parameter once", key.column, repr(key.text))
        if not self._skip("="):
            raise self._error(f"'=' after {key.text}")
        token = self._peek()
        value: Value | Call
        if token.kind == "name":
            value = self._call(f"a value for {key.text}")
        elif self._skip("["):
            numbers = [self._number(key.text)]
            while self._skip(","):
                numbers.append(self._number(key.text))
            if not self._skip("]"):
                raise self._error("',' or ']'")
            value = tuple(numbers)
        else:
            value = self._number(key.text)
        arguments[key.text] = Argument(value, key.column, token.column)

    def _number(self, key: str) -> float:
        token = self._take("number", f"a number for {key}")
        value = float(token.text)
        if not math.isfinite(value):
            raise self._source.error(f"a finite number for {key}", token.column, repr(token.text))
        return value

    def _peek(self) -> _Token:
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return _Token("end", "the end", len(self._source.text.rstrip()) + 1)

    def _take(self, kind: str, expected: str) -> _Token:
        token = self._peek()
        if token.kind != kind:
            raise self._error(expected)
        self._next += 1
        return token

    def _skip(self, sign: str) -> bool:
        found = self._peek().kind == "sign" and self._peek().text == sign
        self._next += found
        return found

    def _error(self, expected: str) -> InputError:
        token = self._peek()
        return self._source.error(
            expected, token.column, token.text if token.kind == "end" else repr(token.text)
        )


def text_form(name: str, parameters: Mapping[str, Value]) -> str:
    """A claim or family as people write it.

    >>> text_form("approx-dp", {"epsilon": 1.0, "delta": 1e-5})
    'approx-dp(epsilon=1,delta=1e-05)'
    """
    inside = ",".join(f"{key}={shortest(value)}" for key, value in parameters.items())
    return f"{name}({inside})" if inside else name


def shortest(value: Value) -> str:
    """The fewest digits that give the number, or each of a list, again; a list of one is that number.

    >>> shortest(2.0), shortest(1.99996), shortest((1.0, 0.5)), shortest((3.0,))
    ('2', '1.99996', '[1,0.5]', '3')
    """
    if isinstance(value, tuple):
        inside = ",".join(shortest(number) for number in value)
        return inside if len(value) == 1 else f"[{inside}]"
    return repr(float(value)).removesuffix(".0")
