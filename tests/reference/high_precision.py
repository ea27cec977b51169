"""The exact p-value from first principles in 30 digits, sharing no code and no formula layout with src/.

Where the package works with the share of guesses above a cut and inverts the channel, this integrates over
the confidence score s (or the outcome y) itself:

    p = ∫ BinomCDF(u; r, E(s)/S(s)) · BetaPDF(S(s); r+1, n-r) · |S'(s)| ds  +  atoms,

with S, E straight from their definitions. Run as a script it writes the table the tests compare with.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

mp.dps = 30

Number = Any
"""An mpmath number; the package has no types."""


def binomial_cdf(u: int, r: int, rate: Number) -> Number:
    """Summed term by term: nothing clever."""
    if rate == 0:
        return mpf(1)
    term = (1 - rate) ** r
    total = term
    for k in range(u):
        term *= mpf(r - k) / (k + 1) * rate / (1 - rate)
        total += term
    return total


def beta_density(v: Number, a: int, b: int) -> Number:
    if v <= 0 or v >= 1:
        return mpf(0)
    log_norm = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return mp.exp((a - 1) * mp.log(v) + (b - 1) * mp.log1p(-v) - log_norm)


def beta_tail_edges(a: int, b: int) -> list[Number]:
    """Points in (0, 1) between which the Beta(a, b) density is easy to integrate."""
    mean = mpf(a) / (a + b)
    spread = mp.sqrt(mpf(a) * b / (a + b) ** 2 / (a + b + 1))
    points = [mean + k * spread for k in range(-14, 60, 2)]
    points += [mean * mpf(2) ** -k for k in range(1, 40, 3)] + [
        1 - (1 - mean) * mpf(2) ** -k for k in range(1, 40, 3)
    ]
    return sorted({p for p in points if 0 < p < 1})


def mix(
    n: int,
    r: int,
    u: int,
    share: Callable[[Number], Number],
    errors: Callable[[Number], Number],
    share_slope: Callable[[Number], Number],
    low: Number,
    high: Number,
) -> Number:
    """The integral over the part of the outcomes where `share` falls continuously from `low` to `high`."""
    a, b = r + 1, n - r

    def integrand(s: Number) -> Number:
        v = share(s)
        if v <= 0:
            return mpf(0)
        return binomial_cdf(u, r, errors(s) / v) * beta_density(v, a, b) * abs(share_slope(s))

    top, bottom = share(low), share(high)
    edges = [low]
    for v in reversed([p for p in beta_tail_edges(a, b) if bottom < p < top]):
        left, right = low, high
        for _ in range(60):
            middle = (left + right) / 2
            left, right = (middle, right) if share(middle) > v else (left, middle)
        edges.append((left + right) / 2)
    edges.append(high)
    edges = sorted(set(edges))
    return sum((mp.quad(integrand, [a, b], maxdegree=7) for a, b in itertools.pairwise(edges)), mpf(0))


def gaussian(n: int, r: int, u: int, mu: str) -> Number:
    m = mpf(mu)

    def share(s: Number) -> Number:
        return mp.ncdf(-(s - m**2 / 2) / m) + mp.ncdf((-s - m**2 / 2) / m)

    def slope(s: Number) -> Number:
        return (mp.npdf((s - m**2 / 2) / m) + mp.npdf((s + m**2 / 2) / m)) / m

    def errors(s: Number) -> Number:
        return mp.ncdf((-s - m**2 / 2) / m)

    if r == n:
        return binomial_cdf(u, n, mp.ncdf(-m / 2))
    return mix(n, r, u, share, errors, slope, mpf(0), m**2 / 2 + 30 * m)


def laplace(n: int, r: int, u: int, mu: str) -> Number:
    m = mpf(mu)

    def share(s: Number) -> Number:
        return 1 - mp.exp(-(m - s) / 2) / 2 + mp.exp(-(m + s) / 2) / 2

    def slope(s: Number) -> Number:
        return mp.exp(-(m - s) / 2) / 4 + mp.exp(-(m + s) / 2) / 4

    def errors(s: Number) -> Number:
        return mp.exp(-(m + s) / 2) / 2

    if r == n:
        return binomial_cdf(u, n, mp.exp(-m / 2) / 2)
    inside_atom = mp.betainc(r + 1, n - r, 0, share(m), regularized=True)
    return inside_atom * binomial_cdf(u, r, 1 / (1 + mp.exp(m))) + mix(
        n, r, u, share, errors, slope, mpf(0), m
    )


def approx_dp(n: int, r: int, u: int, epsilon: str, delta: str) -> Number:
    """Counted, not integrated: J of the n bits are revealed, the other released ones err independently."""
    rate, d = 1 / (1 + mp.exp(mpf(epsilon))), mpf(delta)
    total = mpf(0)
    for revealed in range(n + 1):
        weight = mp.binomial(n, revealed) * d**revealed * (1 - d) ** (n - revealed)
        open_guesses = max(0, r - revealed)
        total += weight * (binomial_cdf(u, open_guesses, rate) if open_guesses > u else 1)
    return total


def subsampled_gaussian(n: int, r: int, u: int, mu: str, q: str) -> Number:
    """Integrated over the outcome y: over the lower cut where both cuts exist, else over the upper one."""
    m, rate = mpf(mu), mpf(q)

    def ratio(y: Number) -> Number:
        return 1 - rate + rate * mp.exp(m * y - m**2 / 2)

    def mirror(y: Number) -> Number:
        return mp.log((1 / ratio(y) - 1 + rate) / rate) / m + m / 2

    def p_above(y: Number) -> Number:
        return mp.ncdf(-y)

    def q_above(y: Number) -> Number:
        return (1 - rate) * mp.ncdf(-y) + rate * mp.ncdf(m - y)

    def q_below(y: Number) -> Number:
        return (1 - rate) * mp.ncdf(y) + rate * mp.ncdf(y - m)

    def density(y: Number) -> Number:
        return mp.npdf(y) * (1 + ratio(y)) / 2

    def loss_slope(y: Number) -> Number:
        return rate * m * mp.exp(m * y - m**2 / 2) / ratio(y)

    def two_sided_share(low: Number) -> Number:
        high = mirror(low)
        return (p_above(high) + q_above(high) + mp.ncdf(low) + q_below(low)) / 2

    def two_sided_errors(low: Number) -> Number:
        return (p_above(mirror(low)) + q_below(low)) / 2

    def two_sided_slope(low: Number) -> Number:
        high = mirror(low)
        return density(low) + density(high) * loss_slope(low) / loss_slope(high)

    if r == n:
        return binomial_cdf(u, n, two_sided_errors(m / 2))
    # `mix` wants the share to fall along its variable, so the lower cut is run through from the right.
    total = mix(
        n,
        r,
        u,
        lambda x: two_sided_share(-x),
        lambda x: two_sided_errors(-x),
        lambda x: two_sided_slope(-x),
        -m / 2,
        mpf(20),
    )
    if rate < 1:
        edge = mp.log((2 - rate) / (1 - rate)) / m + m / 2
        total += mix(
            n, r, u, lambda y: (p_above(y) + q_above(y)) / 2, lambda y: p_above(y) / 2, density, edge, m + 20
        )
    return total


CASES: list[tuple[str, dict[str, str], int, int, int]] = [
    ("gaussian", {"mu": "1"}, 1000, 200, 15),
    ("gaussian", {"mu": "0.05"}, 300, 60, 20),
    ("gaussian", {"mu": "0.5"}, 2000, 400, 60),
    ("gaussian", {"mu": "10"}, 50, 49, 0),
    ("gaussian", {"mu": "3"}, 100, 1, 0),
    ("gaussian", {"mu": "2"}, 500, 499, 40),
    ("gaussian", {"mu": "1"}, 500, 500, 80),
    ("gaussian", {"mu": "1"}, 1000, 500, 50),
    ("gaussian", {"mu": "0.3"}, 10, 5, 0),
    ("laplace", {"mu": "0.8"}, 1000, 700, 150),
    ("laplace", {"mu": "3"}, 400, 200, 2),
    ("laplace", {"mu": "0.05"}, 60, 59, 10),
    ("laplace", {"mu": "10"}, 200, 199, 0),
    ("approx_dp", {"epsilon": "1", "delta": "0.1"}, 300, 40, 3),
    ("approx_dp", {"epsilon": "1", "delta": "0.1"}, 2000, 200, 0),
    ("approx_dp", {"epsilon": "0.05", "delta": "0.5"}, 100, 60, 1),
    ("approx_dp", {"epsilon": "4", "delta": "0.001"}, 500, 300, 0),
    ("approx_dp", {"epsilon": "1", "delta": "0"}, 200, 100, 2),
    ("subsampled_gaussian", {"mu": "0.8", "q": "0.5"}, 1000, 200, 40),
    ("subsampled_gaussian", {"mu": "10", "q": "0.5"}, 200, 60, 1),
    ("subsampled_gaussian", {"mu": "6", "q": "0.1"}, 400, 40, 3),
    ("subsampled_gaussian", {"mu": "2", "q": "0.001"}, 100, 50, 10),
    ("subsampled_gaussian", {"mu": "1", "q": "1"}, 1000, 200, 15),
    ("subsampled_gaussian", {"mu": "0.05", "q": "0.9"}, 100, 99, 30),
    ("subsampled_gaussian", {"mu": "3", "q": "0.7"}, 300, 299, 40),
]


def main(path: str) -> None:
    functions = {f.__name__: f for f in (gaussian, laplace, approx_dp, subsampled_gaussian)}
    rows = []
    for name, parameters, n, released, errors in CASES:
        value = functions[name](n, released, errors, **parameters)
        text = ",".join(f"{key}={value}" for key, value in parameters.items())
        null = f"{name.replace('_', '-')}({text})"
        rows.append(
            {"null": null, "n": n, "released": released, "errors": errors, "exact": mp.nstr(value, 17)}
        )
        print(rows[-1], file=sys.stderr, flush=True)
    Path(path).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
