"""Hostile input: some cases of every target; `make fuzz` runs many more."""

from __future__ import annotations

import pytest
from tests.fuzz.judging import Violation
from tests.fuzz.targets import TARGETS

from tightaudit.evidence.reading import files
from tightaudit.support.errors import InputError, Place

_FEW = {"processes": 2, "trainings": 2}
_USUAL = 15


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_input_is_read_or_refused(name: str) -> None:
    for seed in range(_FEW.get(name, _USUAL)):
        TARGETS[name].try_case(seed)


def test_a_case_is_the_same_each_time() -> None:
    for seed in range(5):
        assert TARGETS["read csv"].try_case(seed) == TARGETS["read csv"].try_case(seed)


def test_a_reader_that_crashes_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def crashing(*_: object) -> None:
        raise KeyError("score")

    monkeypatch.setitem(files.FORMATS, "csv", crashing)
    with pytest.raises(Violation, match="KeyError"):
        TARGETS["read csv"].try_case(0)


def test_a_message_shows_no_control_characters_of_what_was_expected() -> None:
    said = str(InputError(Place("a\x1b.csv"), "x", "a column \x1b[2J\nor none"))
    assert said.isprintable()
    assert str(InputError("claim\x1b", "x", "a \x07 sign")).isprintable()
