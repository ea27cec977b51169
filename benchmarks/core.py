"""What the core costs, in stable sorts of 10⁶ doubles, by CPU time in this process (`cpu.py`).

Run with `make bench`.
"""

from __future__ import annotations

import platform
import sys
import tracemalloc
from collections.abc import Callable
from statistics import median

import numpy as np
import scipy
from cpu import TRIES, against, command_seconds, in_sorts

import tightaudit as ta
from tightaudit.simulate.mechanisms.base import as_mechanism


def peak_megabytes(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def bound(family: ta.Family, n: int, method: str) -> Callable[[], object]:
    """A full bound at r = n/5, from as many errors as the member at 1 makes on average."""
    released = n // 5
    errors = round(ta.expected_errors(family.member(1.0), n=n, released=released))
    evidence = ta.Evidence(n, released, errors)
    return lambda: ta.lower_bound(evidence, family, delta=1e-5, method=method)


def weighted_bound(text: str, family: ta.Family) -> Callable[[], object]:
    """A full bound from 10⁶ errors in rank order."""
    evidence = as_mechanism(text).play(10**6, 10**6, np.random.default_rng(1), runs=1)[0]
    return lambda: ta.lower_bound(evidence, family, delta=1e-5, method="rank-weighted")


def print_row(method: str, family: ta.Family, work: Callable[[], object], limit: float | None) -> None:
    sorts, peak = in_sorts(work), peak_megabytes(work)
    print(f"{method:17} {family!s:28} {sorts:7.3f} {against(limit):>6} {peak:8.1f}", flush=True)


def import_ratio() -> float:
    def start(code: str) -> float:
        return command_seconds([sys.executable, "-c", code])

    bare = median(start("pass") for _ in range(TRIES))
    return median(
        (start("import tightaudit") - bare) / (start("import numpy, scipy.stats") - bare)
        for _ in range(TRIES)
    )


def main() -> None:
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"tightaudit {ta.__version__}"
    )
    rows = [
        ("exact", ta.Gaussian.family(), 0.4),
        ("exact", ta.SubsampledGaussian.family(q=0.5), 1.0),
        ("exact", ta.Laplace.family(), None),
        ("exact", ta.ApproxDP.family(delta=1e-5), None),
        ("order-statistics", ta.Gaussian.family(), 10.0),
        ("steinke", ta.ApproxDP.family(delta=1e-5), 2.0),
        ("fdp-recursion", ta.Gaussian.family(), 5.0),
    ]
    print(
        "\nfull bound at n=10⁶, r=2·10⁵\n"
        f"{'method':17} {'family':28} {'sorts':>7} {'limit':>6} {'peak MB':>8}"
    )
    for method, family, limit in rows:
        work = bound(family, 10**6, method)
        print_row(method, family, work, limit)
    for text, family, limit in (
        ("gaussian(mu=1)", ta.Gaussian.family(), 2.5),
        ("laplace(mu=0.8)", ta.Laplace.family(), 6.0),
        ("subsampled-gaussian(mu=1,q=0.5)", ta.SubsampledGaussian.family(q=0.5), 6.0),
    ):
        print_row("rank-weighted", family, weighted_bound(text, family), limit)
    evidence, claim = ta.Evidence(5000, 1000, 60), ta.Gaussian(1.0)
    once = in_sorts(lambda: ta.p_value(evidence, claim, method="any-dependence"))
    search = in_sorts(bound(ta.Gaussian.family(), 5000, "any-dependence"))
    print("\nany-dependence at n=5000, r=1000")
    print(f"p-value {once:.1f} sorts (limit 4), full bound {search:.1f} (limit 12)")
    small = ta.Evidence(20_000, 4000, 50)
    once = in_sorts(lambda: ta.p_value(small, claim, method="any-dependence"), tries=3)
    search = in_sorts(bound(ta.Gaussian.family(), 20_000, "any-dependence"), tries=3)
    print("any-dependence at n=20000, r=4000, where p is small and at a usual bound")
    print(f"p-value {once:.1f} sorts (limit 30), full bound {search:.1f} (limit 60)")
    plan = in_sorts(lambda: ta.plan(claim, delta=1e-5), tries=3)
    print(f"\nplan of the four rows for gaussian(mu=1): {plan:.1f} sorts (limit 30)")
    print("\nexact Gaussian bound as n grows, r = n/5")
    for exponent in range(4, 10):
        print(f"n=10^{exponent}  {in_sorts(bound(ta.Gaussian.family(), 10**exponent, 'exact')):.3f} sorts")
    print(f"\nimport tightaudit: {import_ratio():.2f} of importing numpy and scipy.stats (limit 2)")


if __name__ == "__main__":
    main()
