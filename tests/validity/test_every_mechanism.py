"""Every mechanism there is, by every method there is: a true claim is not rejected too often.

A mechanism or a method that is added is tried here by itself; `make validity` measures it closely.
"""

from __future__ import annotations

import pytest

import tightaudit as ta
from tightaudit.methods.base import METHODS
from tightaudit.simulate.mechanisms.base import MECHANISMS


@pytest.mark.parametrize("released", [20, 60])
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_no_method_rejects_too_often_where_its_assumptions_hold(name: str, released: int) -> None:
    audits = ta.Audits(n=60, released=released, times=400)
    result = ta.calibrate(MECHANISMS[name].example, audits, bounds=False, workers=1)
    assert len(result.rejections) >= 5
    for row in result.rejections:
        assumes = METHODS[row.method].assumes
        if assumes.caveat is None and (result.mechanism.independent or not assumes.independent_outcomes):
            assert not row.exceeds, row
