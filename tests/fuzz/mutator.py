"""Hostile texts, numbers and bytes, all from one generator, so that a case can be had again."""

from __future__ import annotations

from random import Random
from typing import Any

NUMBERS = (
    "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "-0", "-0.0", "0", "1", "-1", "0.5", "1e400", "-1e400",
    "1e-400",
    "5e-324", "1.7976931348623157e308", "1e15", "1000000000000000", "1000000000000001", "9007199254740993",
    "9223372036854775808", "18446744073709551616", "1e-5", "0.9999999999999999", "1.0000000000000002", "700",
    "701",
    "5²", "½", "٣", "１２", "1_000", "1,5", "0x10", "1e", ".", "+", "-", "", " ", " 7 ", "1 2", "1j", "True",
    "None",
)  # fmt: skip
TEXTS = (
    "\x00", "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\n", "\t", "\x7f", "\u202e", "\u2028", "\u200b",
    "\ufeff", "\ud800", "\udcff", "\U0001f600", "é", "e\u0301", "ß", "İ", "[bold]", "[/bold]", "[/]",
    "[link=x]",
    "<script>", "{claims}", "{0}", "%s", "%n", "$HOME", "`", "'", '"', "\\", "--", "-", "=", "(", ")", "[",
    "]", "{",
    "}", ",", ";", ":", "null", "true", "[]", "{}",
)  # fmt: skip
_BYTES = (
    b"\x00",
    b"\xff",
    b"\x80",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\n",
    b"\r\n",
    b"\r",
    b",",
    b'"',
    b"\x1b[2J",
    b"PK\x03\x04",
)
_LONG = (100, 1_001, 5_000, 20_000)


def seldom(random: Random, chance: float) -> bool:
    """Whether something seldom happens this time."""
    return random.random() < chance


def number(random: Random) -> str:
    """A number as nobody should write it, or one at the end of what numbers can be."""
    if seldom(random, 0.05):
        return "9" * random.choice(_LONG)
    return random.choice(NUMBERS)


def text(random: Random) -> str:
    """A text with all that texts should not have in them."""
    if seldom(random, 0.05):
        return random.choice(TEXTS) * random.choice(_LONG)
    return "".join(random.choice((*TEXTS, "a", "score", " ", "1")) for _ in range(random.randint(0, 6)))


def changed_text(random: Random, whole: str) -> str:
    """The text with some of it left out, doubled, moved or replaced."""
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        start = random.randint(0, len(whole))
        end = min(len(whole), start + random.choice((0, 1, 1, 2, 8)))
        instead = random.choice(("", whole[start:end] * 2, number(random), text(random), whole[::-1][:5]))
        whole = whole[:start] + instead + whole[end:]
    return whole


def changed_bytes(random: Random, whole: bytes) -> bytes:
    """The bytes with some of them flipped, left out, doubled or replaced, or cut short."""
    content = bytearray(whole)
    for _ in range(random.choice((1, 1, 1, 2, 5, 20))):
        at = random.randint(0, max(0, len(content) - 1))
        match random.randrange(6):
            case 0 if content:
                content[at] ^= 1 << random.randrange(8)
            case 1 if content:
                content[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del content[at : at + random.choice((1, 4, 100))]
            case 3:
                content[at:at] = random.choice(_BYTES) * random.choice((1, 1, 50))
            case 4:
                content[at:at] = content[at : at + random.choice((1, 4, 100))]
            case _ if seldom(random, 0.3):
                del content[at:]
            case _:
                content[at : at + 4] = random.randbytes(4)
    return bytes(content)


def value(random: Random, depth: int = 0) -> Any:
    """A value that JSON can hold, whatever it is."""
    if depth < 3 and seldom(random, 0.3):
        several = [value(random, depth + 1) for _ in range(random.randint(0, 3))]
        return several if seldom(random, 0.5) else {text(random): each for each in several}
    plain = (
        None,
        True,
        False,
        0,
        1,
        -1,
        0.5,
        10**20,
        10**400,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "0",
        "1",
    )
    return random.choice((*plain, text(random), number(random)))


def changed_value(random: Random, whole: Any) -> Any:
    """A value of JSON with one of its parts replaced, left out or given another name."""
    if not isinstance(whole, list | dict) or not whole or seldom(random, 0.1):
        return value(random)
    if isinstance(whole, list):
        at = random.randrange(len(whole))
        return [*whole[:at], changed_value(random, whole[at]), *whole[at + 1 :]]
    key = random.choice(list(whole))
    rest = {name: each for name, each in whole.items() if name != key}
    match random.randrange(5):
        case 0:
            return rest
        case 1:
            return {**rest, changed_text(random, key): whole[key]}
        case _:
            return {**whole, key: changed_value(random, whole[key])}
