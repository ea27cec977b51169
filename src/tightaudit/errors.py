"""The one exception a caller has to know: something handed in is not usable."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used, with the argument, its value and what was expected.

    >>> raise InputError("released", 12, "at most n=10")
    Traceback (most recent call last):
        ...
    tightaudit.errors.InputError: released=12: expected at most n=10
    """

    def __init__(self, argument: str, value: object, expected: str) -> None:
        self.argument = argument
        self.value = value
        self.expected = expected
        super().__init__(argument, value, expected)

    def __str__(self) -> str:
        return f"{self.argument}={_shown(self.value)}: expected {self.expected}"


def _shown(value: object) -> str:
    """The value on one line, short enough that the rest of the message is read too."""
    try:
        text = " ".join((value if isinstance(value, str) else repr(value)).split())
    except ValueError:  # an integer with more digits than Python is willing to print
        text = f"a {type(value).__name__} too long to print"
    return text if len(text) <= 80 else text[:77] + "..."
