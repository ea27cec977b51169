"""The least false-positive rate at each true-positive rate, from a channel known at many points."""

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from tightaudit.support.checks import FloatArray

DENSE_TOPS = np.concatenate(
    [
        [0.0],
        np.geomspace(1e-300, 1e-12, 4000, endpoint=False),
        np.geomspace(1e-12, 0.5, 16_000, endpoint=False),
        1 - np.geomspace(1e-12, 0.5, 8000)[::-1],
        [1.0],
    ]
)
"""Shares of the most confident guesses at which a smooth channel is looked at."""


def detection_polygon(
    tops: FloatArray, error_mass: FloatArray, error_probability: FloatArray | None = None
) -> Callable[[float], float]:
    """A detection curve from a channel: guesses among a share `top` are called positives.

    That makes the false positives A(1-top) and the true ones top - A(1-top); past top = 1 the curve is
    its own mirror image. With error probabilities the points are replaced by the meeting points of the
    tangents there, which lie below the curve; without, the channel is linear between them.
    """
    hits, alarms = tops - error_mass, error_mass
    if error_probability is not None:
        slopes = error_probability / (1 - error_probability)
        rise = np.diff(alarms) - slopes[:-1] * np.diff(hits)
        turn = np.diff(slopes)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(turn > 0, np.diff(hits) - rise / turn, 0.0)
        step = np.clip(step, 0.0, np.diff(hits))
        hits = np.concatenate([[0.0], hits[:-1] + step, hits[-1:]])
        alarms = np.concatenate([[0.0], alarms[:-1] + slopes[:-1] * step, alarms[-1:]])
    x = np.append(hits, 1 - alarms[::-1])
    y = np.append(alarms, 1 - hits[::-1])
    keep = np.append(np.diff(x) > 0, True)
    abscissae, ordinates = x[keep].tolist(), y[keep].tolist()

    def curve(true_positive_rate: float) -> float:
        if true_positive_rate >= abscissae[-1]:
            return ordinates[-1]
        at = bisect_right(abscissae, true_positive_rate) - 1
        share = (true_positive_rate - abscissae[at]) / (abscissae[at + 1] - abscissae[at])
        return ordinates[at] + share * (ordinates[at + 1] - ordinates[at])

    return curve
