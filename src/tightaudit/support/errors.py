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
        # What was expected may name what a file or a user called something, as an argument may.
        if isinstance(self.argument, Place):
            return printable(f"{self.argument}: found {quoted(self.value)}, expected {self.expected}")
        return printable(f"{self.argument}={quoted(self.value)}: expected {self.expected}")


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


def printable(text: str, longest: int | None = None) -> str:
    r"""The text on one line and without control characters, which could move a terminal's cursor.

    What is longer than `longest` is cut, and shows that it was.

    >>> printable("a\x1b[2J  b"), printable("a long story", longest=9)
    ('a�[2J b', 'a long...')
    """
    if longest is not None:
        text = text[: 10 * longest]  # nobody waits for what is cut off
    clean = "".join(sign if sign.isprintable() else "\ufffd" for sign in " ".join(text.split()))
    return clean if longest is None or len(clean) <= longest else clean[: longest - 3] + "..."


def quoted(value: object) -> str:
    """The value on one line, short enough that the rest of the message is read too.

    >>> quoted("as it is"), quoted([1, 2])
    ('as it is', '[1, 2]')
    """
    try:
        return printable(value if isinstance(value, str) else repr(value), longest=80)
    except ValueError:  # an integer with more digits than Python is willing to print
        return f"a {type(value).__name__} too long to print"
