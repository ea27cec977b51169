"""The twenty mechanisms of DP-Sniper's evaluation (Bichsel et al., S&P 2021), by published definitions.

Report-noisy-max and noisy histogram: Ding et al., Detecting Violations of Differential Privacy, CCS 2018.
Sparse vector 1 to 6: Lyu, Su, Li, Understanding the Sparse Vector Technique, VLDB 2017. Numerical sparse
vector and prefix sum: Wang et al., Proving Differential Privacy with Shadow Execution, PLDI 2019. Truncated
geometric: Balcer, Vadhan, Differential Privacy on Finite Computers, 2018. RAPPOR: Erlingsson, Pihur,
Korolova, CCS 2014.

Each takes an input, a generator and a number of calls, and returns an output per row.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tightaudit.calls.pairs import neighbouring_lists

EPSILON = 0.1
NO, ABORTED = -1000.0, -2000.0
"""What stands for FALSE and for no answer where answers are numbers."""
Vectorized = Callable[[Any, np.random.Generator, int], Any]


def laplace(data: Any, rng: np.random.Generator, size: int, *, epsilon: float = EPSILON) -> Any:
    return data[0] + rng.laplace(scale=1 / epsilon, size=(size, 1))


def truncated_geometric(data: Any, rng: np.random.Generator, size: int) -> Any:
    """A count among five, geometric noise by exact arithmetic on a finite computer."""
    most, bits = 5, math.ceil(math.log(2 / EPSILON))
    base, count = 2**bits, int(data[0])
    total = (2 * base + 1) * (base + 1) ** (most - 1)
    limits = [base ** (count - z) * (base + 1) ** (most - (count - z)) for z in range(count)]
    limits += [
        total - base ** (z - count + 1) * (base + 1) ** (most - 1 - (z - count)) for z in range(count, most)
    ]
    drawn = rng.integers(1, total, endpoint=True, size=size)
    return np.searchsorted(np.array([*limits, total]), drawn, side="left")


def noisy_histogram(data: Any, rng: np.random.Generator, size: int, *, scale: float) -> Any:
    return np.asarray(data) + rng.laplace(scale=scale, size=(size, len(data)))


def noisy_max(data: Any, rng: np.random.Generator, size: int, *, exponential: bool, value: bool) -> Any:
    draw = rng.exponential if exponential else rng.laplace
    noisy = np.asarray(data) + draw(scale=2 / EPSILON, size=(size, len(data)))
    return noisy.max(axis=1) if value else noisy.argmax(axis=1)


def sparse_vector(
    data: Any,
    rng: np.random.Generator,
    size: int,
    *,
    threshold: float,
    for_threshold: float,
    noise: float,
    answers: int | None,
    renewed: float | None = None,
    numbers: bool = False,
) -> Any:
    """Which queries are above a noisy threshold, until so many are; `renewed` draws the threshold anew."""
    queries = np.asarray(data) + (rng.laplace(scale=noise, size=(size, len(data))) if noise else 0.0)
    queries = np.broadcast_to(queries, (size, len(data)))
    limit = threshold + rng.laplace(scale=for_threshold, size=size)
    found, left = np.empty(queries.shape), np.full(size, math.inf if answers is None else float(answers))
    for place, query in enumerate(queries.T):
        above = query >= limit
        answer = np.where(above, query, NO) if numbers else above.astype(float)
        found[:, place] = np.where(left > 0, answer, ABORTED if numbers else -1.0)
        left = left - (above & (left > 0))
        if renewed is not None:
            limit = np.where(above, threshold + rng.laplace(scale=renewed, size=size), limit)
    return found


def numerical_sparse_vector(data: Any, rng: np.random.Generator, size: int) -> Any:
    limit = 1.0 + rng.laplace(scale=3 / EPSILON, size=size)
    left, found = np.full(size, 2.0), np.empty((size, len(data)))
    for place, query in enumerate(data):
        above = query + rng.laplace(scale=12 / EPSILON, size=size) >= limit
        value = np.where(above, query + rng.laplace(scale=6 / EPSILON, size=size), 0.0)
        found[:, place] = np.where(left > 0, value, NO)
        left = left - (above & (left > 0))
    return found


def rappor(data: Any, rng: np.random.Generator, size: int, *, keep: float, once: bool) -> Any:
    """Four hash functions into twenty bits, each bit replaced by a coin with probability `keep`."""
    bits = np.zeros(20, dtype=bool)
    for salt in range(4):
        bits[int.from_bytes(hashlib.sha256(f"{salt}:{data[0]}".encode()).digest()[:4]) % 20] = True
    random = rng.random((size, 20)) < keep
    permanent = np.where(random, rng.random((size, 20)) < 0.5, bits)
    if once:
        return permanent.astype(float)
    return (rng.random((size, 20)) < np.where(permanent, 0.55, 0.45)).astype(float)


def parallel(data: Any, rng: np.random.Generator, size: int, *, parts: tuple[Vectorized, ...]) -> Any:
    return np.column_stack([part(data, rng, size) for part in parts])


def prefix_sum(data: Any, rng: np.random.Generator, size: int) -> Any:
    return np.cumsum(np.asarray(data) + rng.laplace(scale=1 / EPSILON, size=(size, len(data))), axis=1)


def _svt(**named: Any) -> Vectorized:
    return partial(sparse_vector, **{"threshold": 1.0, "for_threshold": 2 / EPSILON, "answers": 1, **named})


SVT_3 = _svt(noise=2 / EPSILON, numbers=True)
SVT_4 = _svt(for_threshold=4 / EPSILON, noise=4 / (3 * EPSILON))


@dataclass(frozen=True)
class Entry:
    """A mechanism, the inputs to try, what it claims, and what DP-Sniper's paper certifies of it."""

    name: str
    mechanism: Vectorized
    pairs: list[Any]
    claimed: float
    published: float | None
    """The lower bound with logistic regression; None if it is not among those at hand."""
    wrong: bool = False


ONE = neighbouring_lists(1, everywhere=False)
FIVE, FIVE_ANY = neighbouring_lists(5, everywhere=False), neighbouring_lists(5)
TEN = neighbouring_lists(10)
HASHED = 4 * math.log((0.5125 / 0.4875) ** 2)
SUITE = (
    Entry("Laplace", laplace, ONE, 0.1, 0.097),
    Entry("truncated geometric", truncated_geometric, ONE, math.log(1 + 2**-3), 0.116),
    Entry("noisy histogram 1", partial(noisy_histogram, scale=1 / EPSILON), FIVE, 0.1, 0.098),
    Entry("noisy histogram 2", partial(noisy_histogram, scale=EPSILON), FIVE, 0.1, 4.60, wrong=True),
    Entry("report noisy max 1", partial(noisy_max, exponential=False, value=False), FIVE_ANY, 0.1, 0.092),
    Entry("report noisy max 2", partial(noisy_max, exponential=True, value=False), FIVE_ANY, 0.1, 0.098),
    Entry(
        "report noisy max 3",
        partial(noisy_max, exponential=False, value=True),
        FIVE_ANY,
        0.1,
        0.248,
        wrong=True,
    ),
    Entry(
        "report noisy max 4",
        partial(noisy_max, exponential=True, value=True),
        FIVE_ANY,
        0.1,
        0.346,
        wrong=True,
    ),
    Entry("sparse vector 1", _svt(threshold=0.5, noise=4 / EPSILON), TEN, 0.1, 0.086),
    Entry("sparse vector 2", _svt(noise=4 / EPSILON, renewed=2 / EPSILON), TEN, 0.1, 0.086),
    Entry("sparse vector 3", SVT_3, TEN, 0.1, 0.172, wrong=True),
    Entry("sparse vector 4", SVT_4, TEN, 0.1, 0.169, wrong=True),
    Entry("sparse vector 5", _svt(noise=0.0, answers=None), TEN, 0.1, 1.761, wrong=True),
    Entry("sparse vector 6", _svt(noise=2 / EPSILON, answers=None), TEN, 0.1, 0.272, wrong=True),
    Entry("numerical sparse vector", numerical_sparse_vector, TEN, 0.1, 0.034),
    Entry("RAPPOR", partial(rappor, keep=0.75, once=False), ONE, HASHED, 0.293),
    Entry("one-time RAPPOR", partial(rappor, keep=0.95, once=True), ONE, 8 * math.log(0.525 / 0.475), 0.598),
    Entry(
        "20 Laplace in parallel",
        partial(parallel, parts=(partial(laplace, epsilon=0.005),) * 20),
        ONE,
        0.1,
        None,
    ),
    Entry("sparse vector 3 and 4 in parallel", partial(parallel, parts=(SVT_3, SVT_4)), TEN, 0.2, None),
    Entry("prefix sum", prefix_sum, TEN, 1.0, 0.504),
)
