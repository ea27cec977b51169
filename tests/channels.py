"""Channels drawn by their definition: a confidence quantile, then an error at the rate that goes with it."""

from __future__ import annotations

import numpy as np

import tightaudit as ta
from tightaudit.support.checks import FloatArray

_POINTS = np.unique(np.concatenate([np.geomspace(1e-12, 0.01, 4000), np.linspace(0.01, 1, 40_000)]))
_ASIDE = 1e-13


def error_rates(claim: ta.Claim, tops: FloatArray) -> FloatArray:
    """p(1-top) for millions of guesses: between points so dense that a simulation cannot tell.

    Inverting a channel at every one of them would be most of a test's time.
    """
    kinks = claim.top_kinks if claim.top_kinks.size < 100 else np.empty(0)
    points = np.union1d(_POINTS, np.concatenate([kinks * (1 - _ASIDE), kinks, kinks * (1 + _ASIDE)]))
    points = points[(points > 0) & (points <= 1)]
    return np.interp(tops, points, claim.top_error_probability(points))
