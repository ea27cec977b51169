"""The exceptions a caller has to know: something handed in is not usable, or work failed all the same."""

from collections.abc import Iterable


class Place(str):
    """Where in a file something stands, in the place of an argument's name.

    >>> raise InputError(Place("scores.csv, line 3"), "1,maybe", "0 or 1 in column member")
    Traceback (most recent call last):
        ...
    tightaudit.InputError: scores.csv, line 3: found 1,maybe, expected 0 or 1 in column member
    """

    __slots__ = ()


class InputError(ValueError):
    """Input that cannot be used, with the argument, its value and what was expected.

    >>> raise InputError("released", 12, "at most n=10")
    Traceback (most recent call last):
        ...
    tightaudit.InputError: released=12: expected at most n=10
    """

    __module__ = "tightaudit"  # the name users import it by

    def __init__(self, argument: str, value: object, expected: str) -> None:
        self.argument = argument
        self.value = value
        self.expected = expected
        super().__init__(argument, value, expected)

    def __str__(self) -> str:
        if isinstance(self.argument, Place):
            return f"{printable(self.argument)}: found {_shown(self.value)}, expected {self.expected}"
        return f"{self.argument}={_shown(self.value)}: expected {self.expected}"


class ComputationError(RuntimeError):
    """Work that failed for a reason outside the input, said in one line."""


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The end of a sentence that names what was probably meant; empty if nothing is near.

    >>> did_you_mean("gausian", ["gaussian", "laplace"])
    '; did you mean gaussian?'
    """
    from difflib import get_close_matches

    spelled = {name.lower(): name for name in known}
    near = get_close_matches(given.lower(), spelled, n=1)
    return f"; did you mean {spelled[near[0]]}?" if near else ""


def printable(text: str) -> str:
    r"""The text on one line and without control characters, which could move a terminal's cursor.

    >>> printable("a\x1b[2J  b")
    'a�[2J b'
    """
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in " ".join(text.split()))


def _shown(value: object) -> str:
    """The value on one line, short enough that the rest of the message is read too."""
    try:
        text = printable(value[:1000] if isinstance(value, str) else repr(value))
    except ValueError:  # an integer with more digits than Python is willing to print
        text = f"a {type(value).__name__} too long to print"
    return text if len(text) <= 80 else text[:77] + "..."
