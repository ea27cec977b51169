"""How many to release, as people say it and as a decision."""

from __future__ import annotations

from typing import Any

import pytest

import tightaudit as ta
from tightaudit.planning.release import (
    Best,
    Count,
    Planned,
    Release,
    Setting,
    Share,
    as_release,
    candidate_counts,
)


def setting(n: int, method: Any = None) -> Setting:
    return Setting(n, method or ta.Exact(), ta.Gaussian.family(), ta.Gaussian(1.0), 0.05)


@pytest.mark.parametrize(
    ("given", "release"),
    [
        (500, Count(500)),
        ("500", Count(500)),
        (0.2, Share(0.2)),
        ("0.2", Share(0.2)),
        ("planned", Planned()),
        ("best", Best()),
        (Share(0.5), Share(0.5)),
    ],
)
def test_what_people_say(given: Any, release: Release) -> None:
    assert as_release(given) == release
    assert as_release(str(release)) == release


@pytest.mark.parametrize("given", [0, -1, 1.0, 1.5, "many", "1.5", "0", True, float("nan"), "-3", None, "5²"])
def test_what_makes_no_sense(given: Any) -> None:
    with pytest.raises(ta.InputError, match="released="):
        as_release(given)


def test_a_method_that_needs_all_guesses_gets_them_or_is_refused() -> None:
    releases: list[Release] = [Planned(), Best(), Count(100)]
    for release in releases:
        assert release.counts_for(setting(100, ta.Bits())) == (100,)
    releases = [Count(50), Share(0.5)]
    for release in releases:
        with pytest.raises(ta.InputError, match="expected all n=100 guesses for method bits"):
            release.counts_for(setting(100, ta.Bits()))
    with pytest.raises(ta.InputError, match="at most n=100"):
        Count(101).counts(setting(100))


@pytest.mark.parametrize("n", [1, 2, 9, 10, 99, 100, 12_345, 10**6])
def test_numbers_are_possible_whatever_n(n: int) -> None:
    for release in (Planned(), Best(), Share(0.3)):
        counts = release.counts(setting(n))
        assert all(1 <= count <= n for count in counts)
        assert len(counts) == 1 or release.tries_several
    assert max(candidate_counts(n)) == n
