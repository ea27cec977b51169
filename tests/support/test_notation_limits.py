"""Texts that nobody would write."""

from __future__ import annotations

import pytest

from tightaudit.support.errors import InputError
from tightaudit.support.notation import _TOKEN, LONGEST_TEXT, parse


def test_no_token_begins_with_blanks() -> None:
    """Else blanks at the end would be tried from each of them."""
    assert _TOKEN.match(" " * 10 + "gaussian") is None
    assert parse("claim", "gaussian ( mu = 1 )" + " " * 9_000).numbers(("mu",)) == {"mu": 1.0}


def test_long_texts_are_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match="at most 10,000 characters") as refused:
        parse("claim", "gaussian" + " " * LONGEST_TEXT)
    assert len(str(refused.value)) < 300


def test_deep_texts_are_refused() -> None:
    with pytest.raises(InputError, match="at most 20 names inside each other"):
        parse("claim", "a(b=" * 1000)
