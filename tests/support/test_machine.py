"""What does not fit the machine is refused, with what would."""

import pytest

import tightaudit as ta
from tightaudit.simulate.calibration import Audits, calibrate


@pytest.mark.parametrize(
    ("audits", "workers", "message"),
    [
        (Audits(n=10**12, released=10), 1, r"n=1000000000000: expected at most [0-9,]+, which fit"),
        (Audits(n=10**6, runs=10**6, released=10), 1, "n=1000000: expected at most"),
        (Audits(n=100, released=10, times=10**14), 1, r"repetitions=10+: expected at most"),
        (Audits(n=100, released=10), 100_000, "workers=100000: expected at most"),
        (Audits(n=100, released=10), -2, "workers=-2"),
    ],
)
def test_absurd_sizes_are_refused_at_once(audits: Audits, workers: int, message: str) -> None:
    with pytest.raises(ta.InputError, match=message):
        calibrate("gaussian(mu=1)", audits, workers=workers)
