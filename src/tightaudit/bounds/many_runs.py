"""The classic lower bounds on ε, from many runs with one guess each."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincc, betaincinv, betaln, ndtri

from tightaudit.claims.gaussian import Gaussian
from tightaudit.numerics.beta import panel_nodes
from tightaudit.support import checks
from tightaudit.support.errors import InputError

_PRIOR = 0.5
_PANELS, _POINTS = 60, 12


@dataclass(frozen=True)
class ManyRuns:
    """Lower bounds on ε at δ by four classic methods, each at the same confidence."""

    clopper_pearson: float
    """From exact upper limits of both error rates (Nasr et al. 2021)."""
    gdp: float
    """From the same limits, if the mechanism is Gaussian (Nasr et al. 2023)."""
    gdp_mu: float
    """The μ behind `gdp`."""
    beta_posterior: float
    """Lower credible limit under Jeffreys priors on both rates (Zanella-Béguelin et al. 2023)."""
    log_katz: float
    """From the log-Katz interval for a ratio of rates, an approximation for large counts (Lu et al. 2022)."""
    delta: float
    confidence: float


def many_runs(
    *,
    false_positives: int,
    negatives: int,
    false_negatives: int,
    positives: int,
    delta: float,
    confidence: float = 0.95,
) -> ManyRuns:
    """Bounds from repeated runs: a canary absent in `negatives` of them and present in `positives`.

    The level is split evenly over the two error rates, or the two ratios.

    >>> result = many_runs(
    ...     false_positives=50, negatives=1000, false_negatives=100, positives=1000, delta=1e-5
    ... )
    >>> round(result.clopper_pearson, 3), round(result.gdp_mu, 4), round(result.gdp, 3)
    (2.599, 2.6846, 14.457)
    """
    fp, n = _counts("false_positives", false_positives, "negatives", negatives)
    fn, p = _counts("false_negatives", false_negatives, "positives", positives)
    delta = checks.probability("delta", delta)
    confidence = checks.confidence(confidence)
    level = 1 - confidence
    fpr, fnr = _upper_limit(fp, n, level / 2), _upper_limit(fn, p, level / 2)
    mu = max(0.0, float(-ndtri(fpr) - ndtri(fnr)))
    return ManyRuns(
        clopper_pearson=_epsilon(fpr, fnr, delta),
        gdp=Gaussian(mu).epsilon(delta) if mu > 0 else 0.0,
        gdp_mu=mu,
        beta_posterior=_posterior_quantile(fp, n, fn, p, delta, level),
        log_katz=max(
            0.0, _log_katz(p - fn, p, fp, n, delta, level / 2), _log_katz(n - fp, n, fn, p, delta, level / 2)
        ),
        delta=delta,
        confidence=confidence,
    )


def _counts(name: str, errors: int, total_name: str, total: int) -> tuple[int, int]:
    size = checks.count(total_name, total, minimum=1)
    count = checks.count(name, errors)
    if count > size:
        raise InputError(name, count, f"at most {total_name}={size}")
    return count, size


def _upper_limit(errors: int, total: int, level: float) -> float:
    """Clopper and Pearson's one-sided upper limit of a rate."""
    return 1.0 if errors == total else float(betaincinv(errors + 1, total - errors, 1 - level))


def _epsilon(fpr: float, fnr: float, delta: float) -> float:
    """The ε that two error rates force at δ, in either direction."""
    ratios = ((1 - delta - fpr, fnr), (1 - delta - fnr, fpr))
    return max(0.0, *(math.log(top / bottom) if top > 0 else 0.0 for top, bottom in ratios))


def _posterior_quantile(fp: int, n: int, fn: int, p: int, delta: float, level: float) -> float:
    """The `level` quantile of ε when both rates have their Jeffreys posterior, by one integral."""
    a, b = fp + _PRIOR, n - fp + _PRIOR
    edges = np.unique(betaincinv(a, b, np.concatenate([[0.0], _TAIL, 1 - _TAIL[::-1], [1.0]])))
    rate, weight = (part.ravel() for part in panel_nodes(edges[:-1], edges[1:], _POINTS))
    rate = np.clip(rate, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
    weight = weight * np.exp((a - 1) * np.log(rate) + (b - 1) * np.log1p(-rate) - betaln(a, b))

    def probability_below(epsilon: float) -> float:
        """Posterior Pr[ε(FPR, FNR) ≤ epsilon]: the FNR is above what either direction asks for."""
        least = np.maximum((1 - delta - rate) * math.exp(-epsilon), 1 - delta - math.exp(epsilon) * rate)
        tail = betaincc(fn + _PRIOR, p - fn + _PRIOR, np.clip(least, 0.0, 1.0))
        return float(np.sum(weight * tail) / np.sum(weight))

    if probability_below(0.0) >= level:
        return 0.0
    high = 1.0
    while probability_below(high) < level and high < 512:
        high *= 2
    return float(brentq(lambda epsilon: probability_below(epsilon) - level, 0.0, high, xtol=1e-12))


_TAIL = np.concatenate([np.geomspace(1e-12, 1e-2, 24), np.linspace(0.02, 0.5, 24)])


def _log_katz(x1: int, n1: int, x0: int, n0: int, delta: float, level: float) -> float:
    """Lower limit of the log-ratio of two rates; none where a count of 0 leaves it undefined."""
    rate = x1 / n1 - delta
    if rate <= 0 or x0 == 0:
        return 0.0
    spread = math.sqrt(1 / x1 - 1 / n1 + 1 / x0 - 1 / n0)
    return math.log(rate / (x0 / n0)) + float(ndtri(level)) * spread
