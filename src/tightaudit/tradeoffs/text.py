"""The text form of claims and families, as the command line takes it: `gaussian(mu=1)`.

null      = name [ "(" [ parameter { "," parameter } ] ")" ]
parameter = name "=" number
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tightaudit.errors import InputError
from tightaudit.tradeoffs.base import Family, TradeOff
from tightaudit.tradeoffs.registry import TRADEOFFS

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9_-]*)"
    r"|(?P<sign>[(),=])"
    r"|(?P<other>\S))"
)


def null(text: str, *, delta: float | None = None) -> TradeOff | Family:
    """Read a claim, or a family when one parameter is left out.

    `delta` fills in the δ of `approx-dp` where the text leaves it out.

    >>> null("gaussian(mu=1)")
    Gaussian(mu=1.0)
    >>> null("subsampled-gaussian(q=0.5)").parameter
    'mu'
    >>> str(null("approx-dp", delta=1e-5))
    'approx-dp(delta=1e-05)'
    """
    if not isinstance(text, str):
        raise InputError("null", text, "text such as 'gaussian(mu=1)'")
    parser = _Parser(text)
    name, parameters = parser.read()
    claim = TRADEOFFS[name]
    for key in parameters:
        if key not in claim.parameter_names:
            names = ", ".join(claim.parameter_names) or "none"
            raise parser.error(f"a parameter of {name} ({names})", at=parser.columns[key], found=key)
    if delta is not None and "delta" in claim.parameter_names:
        parameters.setdefault("delta", delta)
    if len(parameters) == len(claim.parameter_names):
        return claim(**parameters)
    return claim.family(**parameters)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.columns: dict[str, int] = {}
        self._tokens = [
            _Token(str(match.lastgroup), match[str(match.lastgroup)], match.start(str(match.lastgroup)) + 1)
            for match in _TOKEN.finditer(text)
        ]
        self._next = 0

    def read(self) -> tuple[str, dict[str, float]]:
        name = self._take("name", "the name of a claim").text
        parameters: dict[str, float] = {}
        if self._skip("(") and not self._skip(")"):
            self._parameter(parameters)
            while self._skip(","):
                self._parameter(parameters)
            if not self._skip(")"):
                raise self.error("',' or ')'")
        if self._next < len(self._tokens):
            raise self.error("nothing more" if "(" in self.text else "'(' or nothing more")
        return name, parameters

    def _parameter(self, parameters: dict[str, float]) -> None:
        key = self._take("name", "a parameter's name")
        if key.text in parameters:
            raise self.error("each parameter once", at=key.column, found=key.text)
        if not self._skip("="):
            raise self.error(f"'=' after {key.text}")
        value = self._take("number", f"a number for {key.text}")
        number = float(value.text)
        if not math.isfinite(number):
            raise self.error(f"a finite number for {key.text}", at=value.column, found=value.text)
        parameters[key.text] = number
        self.columns[key.text] = key.column

    def _peek(self) -> _Token:
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return _Token("end", "the end", len(self.text.rstrip()) + 1)

    def _take(self, kind: str, expected: str) -> _Token:
        token = self._peek()
        if token.kind != kind:
            raise self.error(expected)
        self._next += 1
        return token

    def _skip(self, sign: str) -> bool:
        found = self._peek().kind == "sign" and self._peek().text == sign
        self._next += found
        return found

    def error(self, expected: str, *, at: int | None = None, found: str | None = None) -> InputError:
        """An error that points at a column, by default that of the next token."""
        token = self._peek()
        column = token.column if at is None else at
        shown = found if found is not None else token.text
        shown = shown if token.kind == "end" and found is None else repr(shown)
        return InputError("null", repr(self.text), f"{expected} at column {column}, found {shown}")
