"""Claims made of finitely many privacy losses, whose trade-off function is made of straight pieces."""

import math
from collections.abc import Callable

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.claims.parts.detection import detection_polygon
from tightaudit.support.checks import FloatArray

MASS_TOLERANCE = 1e-9
"""How far masses may be from summing to 1 before they are taken for a mistake, not for rounding."""
_SAME_SCORE = 1e-13


class DiscretePair(Claim):
    """T(P, Q) for P and Q on finitely many points; each point is one straight piece of f.

    A piece with mass w under P and m under Q has slope -m/w and privacy loss ln(m/w). Order does not
    matter: the pieces are sorted from the steepest, as the best test takes them.
    """

    def __init__(self, p_masses: FloatArray, q_masses: FloatArray) -> None:
        used = (p_masses > 0) | (q_masses > 0)
        p_masses, q_masses = p_masses[used], q_masses[used]
        with np.errstate(divide="ignore"):
            losses = np.log(q_masses) - np.log(p_masses)
        order = np.argsort(-losses, kind="stable")
        self._p, self._q, losses = p_masses[order], q_masses[order], losses[order]
        self._losses = losses
        self._p_above = np.cumsum(self._p)
        self._q_above = np.cumsum(self._q)
        # Summed from the other end, so that f near α = 1 keeps its digits.
        self._q_below = np.append(np.cumsum(self._q[::-1])[::-1], 0.0)
        self._p_below = np.append(np.cumsum(self._p[::-1])[::-1], 0.0)

        score = np.abs(losses)
        by_score = np.argsort(-score, kind="stable")
        masses = 0.5 * (self._p + self._q)[by_score]
        errors = 0.5 * np.minimum(self._p, self._q)[by_score]
        self._scores = _without_rounding(score[by_score])
        self._top = np.append(0.0, np.cumsum(masses))
        self._top[-1] = 1.0
        self._top_errors = np.append(0.0, np.cumsum(errors))

    @property
    def top_kinks(self) -> FloatArray:
        return self._top[1:-1][self._scores[1:] != self._scores[:-1]]

    def top_error_mass(self, top: FloatArray) -> FloatArray:
        return np.interp(top, self._top, self._top_errors)

    def top_error_probability(self, top: FloatArray) -> FloatArray:
        piece = np.searchsorted(self._top, top, side="left") - 1
        scores = self._scores[np.clip(piece, 0, self._scores.size - 1)]
        return np.exp(-np.logaddexp(0.0, scores))

    @property
    def curve_kinks(self) -> FloatArray:
        finite = self._scores[np.isfinite(self._scores)]
        return np.unique(finite[finite > 0])

    @property
    def piecewise_linear(self) -> bool:
        return True

    def detection_curve(self) -> Callable[[float], float]:
        return detection_polygon(self._top, self._top_errors)

    def slope(self, alpha: FloatArray) -> FloatArray:
        wide = self._p > 0
        ends = self._p_above[wide]
        piece = np.minimum(np.searchsorted(ends, alpha, side="right"), ends.size - 1)
        return -(self._q[wide] / self._p[wide])[piece]

    def _corners(self) -> tuple[FloatArray, FloatArray]:
        """α and f(α) at the ends of the pieces, without the vertical piece that is Q's mass at L = ∞."""
        sure = int(np.count_nonzero(self._p == 0))
        alpha = np.append(0.0, self._p_above)[sure:]
        return alpha, self._q_below[sure:]

    def _f(self, alpha: FloatArray) -> FloatArray:
        return np.interp(alpha, *self._corners())

    def _inverse(self, beta: FloatArray) -> FloatArray:
        alpha, corner = self._corners()
        # Where f is 0 already, the least α is wanted: leave out the flat piece after it.
        used = np.count_nonzero(corner > 0) + 1
        return np.interp(beta, corner[:used][::-1], alpha[:used][::-1])

    def _directions(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Both directions of the pair as (gained, paid) masses of every test that could be best."""
        return (self._q_above, self._p_above), (self._p_below[:-1], self._q_below[:-1])

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return np.maximum(*self._directed_deltas(epsilon))

    def _symmetric_delta(self, epsilon: FloatArray) -> FloatArray:
        return 0.5 * np.add(*self._directed_deltas(epsilon))

    def _directed_deltas(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        factor = np.exp(np.minimum(epsilon, 709.0))
        # The best test takes the pieces whose loss exceeds ε in its direction.
        above = np.searchsorted(-self._losses, -epsilon, side="left")
        below = np.searchsorted(-self._losses, epsilon, side="right")
        gained, paid = np.append(0.0, self._q_above), np.append(0.0, self._p_above)
        forward = np.maximum(0.0, gained[above] - factor * paid[above])
        return forward, np.maximum(0.0, self._p_below[below] - factor * self._q_below[below])

    def _epsilon(self, delta: float) -> float:
        epsilon = 0.0
        for gained, paid in self._directions():
            excess = gained - delta
            # A hair above δ is rounding in the sum of masses, not an event that δ does not cover.
            if np.any((paid == 0) & (excess > 1e-15)):
                return math.inf
            useful = (excess > 0) & (paid > 0)
            if useful.any():
                epsilon = max(epsilon, float(np.max(np.log(excess[useful]) - np.log(paid[useful]))))
        return epsilon


def _without_rounding(descending: FloatArray) -> FloatArray:
    """Scores with those that only rounding tells apart, as of losses l and -l, made equal to the largest."""
    new = descending[1:] < (1 - _SAME_SCORE) * descending[:-1] - _SAME_SCORE
    first = np.append(0, np.flatnonzero(new) + 1)
    return np.repeat(descending[first], np.diff(np.append(first, descending.size)))
