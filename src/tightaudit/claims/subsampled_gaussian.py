"""One step of DP-SGD: the Gaussian mechanism on a record that takes part with probability q."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.parts.detection import detection_polygon
from tightaudit.claims.parts.sampled import SampledGaussian
from tightaudit.claims.privacy_loss import PrivacyLoss
from tightaudit.numerics.inversion import solve_decreasing
from tightaudit.support.checks import FloatArray

_SQRT_2PI = math.sqrt(2 * math.pi)
_UNDERFLOW = 40.0
_CUT_OFFSETS = np.append(np.linspace(0, 9, 9000, endpoint=False), np.linspace(9, _UNDERFLOW, 4000))
_EXP_UNDERFLOW = 750.0


@CLAIMS.register
@dataclass(frozen=True, repr=False)
class SubsampledGaussian(SampledGaussian):
    """N(0, 1) against (1-q)·N(0, 1) + q·N(μ, 1), in both directions.

    The privacy loss L(y) = ln(1-q+q·e^(μy-μ²/2)) increases with y and stays above ln(1-q), so the most
    confident guesses are all for "in".

    The two directions of the privacy curve: with Q = (1-q)P + qR and γ = e^ε,
    δ(Q|P) = q·δ_μ(ln((γ-1+q)/q)) and δ(P|Q) = c·δ_μ(ln(γq/c)), c = 1-γ(1-q). Since c ≤ q and
    γq² - (γ-1+q)·c = (γ-1)²(1-q) ≥ 0, the first is the larger at every ε ≥ 0.

    >>> round(SubsampledGaussian(mu=0.8, q=0.5).epsilon(1e-7), 4)
    3.3852
    """

    name = "subsampled-gaussian"
    example = "subsampled-gaussian(mu=1,q=0.5)"

    @classmethod
    def _without_noise(cls, q: float) -> Claim:
        if q == 1:
            return ApproxDP(0.0, 1.0)
        # Not taking part is all that protects.
        return PrivacyLoss([math.log1p(-q), math.inf], [1 - q, q])

    @property
    def top_kinks(self) -> FloatArray:
        # Not a kink but, for a large μ, as sharp as one: here guesses for "out" begin.
        return np.array([self._one_sided] if self.q < 1 else [])

    @property
    def _one_sided(self) -> float:
        """Share of guesses whose loss is too large to occur on the lower side."""
        return float(self._mixture_mass(np.asarray(self._last_high), np.asarray(np.inf)))

    def top_error_mass(self, top: FloatArray) -> FloatArray:
        return self._mass_beyond(*self._cuts(top))

    def top_error_probability(self, top: FloatArray) -> FloatArray:
        return self._error_at(self._cuts(top)[1])

    def _mass_beyond(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """How often a guess is wrong whose outcome lies below one cut or above the other."""
        guessed_out = (1 - self.q) * ndtr(low) + self.q * ndtr(low - self.mu)
        return 0.5 * (ndtr(-high) + guessed_out)

    def _error_at(self, high: FloatArray) -> FloatArray:
        """How often a guess is wrong at the upper cut."""
        exponent = self.mu * high - self.mu**2 / 2
        # 1/(1+e^L) with e^L = 1-q+q·e^exponent, divided through by e^exponent.
        fade = np.exp(-exponent)
        return fade / ((2 - self.q) * fade + self.q)

    def detection_curve(self) -> Callable[[float], float]:
        """The same polygon from cuts instead of shares, which spares solving for the cuts."""
        if self.q == 1:
            return Gaussian(self.mu).detection_curve()
        near = np.append(-_CUT_OFFSETS[::-1], _CUT_OFFSETS)
        cuts = np.unique(np.concatenate([near, self.mu + near, np.linspace(0, self.mu, 2000)]))
        last, infinite = self._last_high, np.inf
        upper = np.append(last, cuts[cuts > last])[::-1]
        lower = np.append(cuts[cuts < self.mu / 2], self.mu / 2)
        mirrored = self._mirror(lower)[0]
        one_sided = self._mixture_mass(upper, np.full_like(upper, infinite))
        below = self._mixture_mass(np.full_like(lower, -infinite), lower)
        two_sided = one_sided[-1] + below + self._mass_up_to_last(lower, mirrored)
        high = np.concatenate([upper, mirrored])
        low = np.concatenate([np.full_like(upper, -infinite), lower])
        return detection_polygon(
            np.concatenate([[0.0], one_sided, two_sided]),
            np.concatenate([[0.0], self._mass_beyond(low, high)]),
            np.concatenate([[0.0], self._error_at(high)]),
        )

    def _cuts(self, top: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The y below and above which a guess is among the share `top`: L(low) = -s and L(high) = s.

        Losses above -ln(1-q) exist only on the upper side. Beyond them everything is a function of the
        lower cut: there `high` hardly moves while `low` runs through most of the mass.
        """
        top = np.asarray(top)
        low = np.where(top < 1, -np.inf, self.mu / 2)
        high = np.where(top > 0, self.mu / 2, np.inf)
        one_sided = self._one_sided
        upper = (top > 0) & (top <= one_sided)
        if upper.any():
            high[upper] = self._upper_cut(top[upper])
        both = (top > one_sided) & (top < 1)
        if both.any():
            low[both] = self._lower_cut(top[both], one_sided)
            high[both] = self._mirror(low[both])[0]
        return low, high

    @property
    def _last_high(self) -> float:
        """The y above with the loss -ln(1-q): beyond it there is no mirror image below."""
        if self.q == 1:
            return math.inf
        return math.log((2 - self.q) / (1 - self.q)) / self.mu + self.mu / 2

    def _upper_cut(self, top: FloatArray) -> FloatArray:
        log_top = np.log(top)

        def residual(y: FloatArray) -> tuple[FloatArray, FloatArray]:
            above = self._mixture_mass(y, np.full_like(y, np.inf))
            return np.log(above) - log_top, -self._mixture_density(y) / above

        # (q/2)·Φ(μ-y) ≤ M(y, ∞) ≤ Φ(μ-y) brackets the root.
        start = self.mu - ndtri(np.minimum(2 * top / self.q, 1.0))
        start = np.maximum(start, -ndtri(np.minimum(top / (1 - self.q / 2), 1.0)))
        return solve_decreasing(residual, start, self.mu - ndtri(top), start)

    def _lower_cut(self, top: FloatArray, one_sided: float) -> FloatArray:
        log_excess, log_rest = np.log(top - one_sided), np.log1p(-top)
        from_top = top <= 0.5

        def residual(negated: FloatArray) -> tuple[FloatArray, FloatArray]:
            low = -negated
            high, high_slope = self._mirror(low)
            excess = self._mixture_mass(np.full_like(low, -np.inf), low) + self._mass_up_to_last(low, high)
            between = self._mixture_mass(low, high)
            rise = self._mixture_density(low) - self._mixture_density(high) * high_slope
            with np.errstate(divide="ignore", invalid="ignore"):
                gap = np.where(from_top, np.log(excess) - log_excess, log_rest - np.log(between))
                return gap, -rise / np.where(from_top, excess, between)

        # M(-∞, low) ≤ top bounds the root on one side; on the other, Φ(low) and e^(μ·low) have underflowed.
        most = _UNDERFLOW + _EXP_UNDERFLOW / self.mu
        least = np.maximum(-self.mu / 2, -ndtri(np.minimum(top / (1 - self.q / 2), 1.0)))
        # Around μ/2 both cuts move apart at the same rate.
        with np.errstate(divide="ignore"):
            linear = 0.5 * (1 - top) / self._mixture_density(np.asarray(self.mu / 2)) - self.mu / 2
        start = np.where(from_top, least, np.clip(linear, least, most))
        return -solve_decreasing(residual, least, np.full_like(top, most), start)

    def _mass_up_to_last(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Mass between the mirror image of `low` and the last y that has one, however close they are."""
        if self.q == 1:
            return self._mixture_mass(high, np.full_like(high, np.inf))
        fade = np.exp(self.mu * low - self.mu**2 / 2)
        stretch = np.log1p(self.q * fade / (1 - self.q)) - np.log1p(-(1 - self.q) * fade / (2 - self.q))
        gap, last = stretch / self.mu, self._last_high
        ends = self._mixture_density(last - gap) + self._mixture_density(np.full_like(gap, last))
        simpson = gap / 6 * (ends + 4 * self._mixture_density(last - gap / 2))
        return np.where(gap < 1e-3, simpson, self._mixture_mass(high, np.full_like(high, last)))

    def _mirror(self, low: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The y above with the loss -L(low), for low ≤ μ/2, and its derivative in `low`."""
        exponent = self.mu * low - self.mu**2 / 2
        shrink = np.expm1(exponent)
        scale = 1 + self.q * shrink
        # 1-q+q·e^z₊ = 1/(1-q+q·e^z), solved for z₊; q = 1 leaves z₊ = -z.
        log_ratio = np.log1p(-shrink / scale) if self.q < 1 else -exponent
        derivative = -np.exp(exponent) / (scale * (scale - shrink)) if self.q < 1 else -np.ones_like(low)
        return log_ratio / self.mu + self.mu / 2, derivative

    def _mixture_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Mass of (P+Q)/2 between two points."""
        rate = self.q / 2
        return (1 - rate) * _normal_mass(low, high) + rate * _normal_mass(low - self.mu, high - self.mu)

    def _mixture_density(self, y: FloatArray) -> FloatArray:
        rate = self.q / 2
        return ((1 - rate) * np.exp(-0.5 * y**2) + rate * np.exp(-0.5 * (y - self.mu) ** 2)) / _SQRT_2PI

    def slope(self, alpha: FloatArray) -> FloatArray:
        return -(1 - self.q) + self.q * Gaussian(self.mu).slope(alpha)

    def _f(self, alpha: FloatArray) -> FloatArray:
        return (1 - self.q) * (1 - alpha) + self.q * Gaussian(self.mu).f(alpha)

    def _inverse(self, beta: FloatArray) -> FloatArray:
        beta = np.asarray(beta)
        alpha = np.where(beta > 0, 0.0, 1.0)
        inner = (beta > 0) & (beta < 1)
        if inner.any():
            log_beta = np.log(beta[inner])

            def residual(negated_cut: FloatArray) -> tuple[FloatArray, FloatArray]:
                missed = (1 - self.q) * ndtr(-negated_cut) + self.q * ndtr(-negated_cut - self.mu)
                out = np.exp(-0.5 * negated_cut**2)
                taken = np.exp(-0.5 * (negated_cut + self.mu) ** 2)
                density = ((1 - self.q) * out + self.q * taken) / _SQRT_2PI
                return np.log(missed) - log_beta, -density / missed

            edge = -ndtri(beta[inner])
            alpha[inner] = ndtr(solve_decreasing(residual, edge - self.mu, edge, edge - self.q * self.mu))
        return alpha

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            amplified = np.where(
                epsilon < 700, np.log1p(np.expm1(np.minimum(epsilon, 700)) / self.q), epsilon - np.log(self.q)
            )
        return self.q * np.asarray(Gaussian(self.mu).delta(amplified))

    def _symmetric_delta(self, epsilon: FloatArray) -> FloatArray:
        growth = np.exp(np.minimum(epsilon, 700))
        left = 1 - growth * (1 - self.q)
        with np.errstate(divide="ignore", invalid="ignore"):
            mirrored = np.where(left > 0, np.maximum(np.log(growth * self.q / left), 0.0), np.inf)
        backward = np.where(left > 0, left * np.asarray(Gaussian(self.mu).delta(mirrored)), 0.0)
        return 0.5 * (self._delta(epsilon) + backward)

    def _epsilon(self, delta: float) -> float:
        if delta >= self.q:
            return 0.0
        unsampled = Gaussian(self.mu).epsilon(delta / self.q)
        if unsampled > 700:
            return unsampled + math.log(self.q)
        return math.log1p(self.q * math.expm1(unsampled))


def _normal_mass(low: FloatArray, high: FloatArray) -> FloatArray:
    """Φ(high) - Φ(low), taken on the side of 0 where both are small."""
    flip = low > 0
    return np.where(flip, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
