"""Audits of real mechanisms by calls on two neighbouring inputs: `pytest examples`. A file to copy.

Whatever a mechanism returns will do: a number, an index, a word, a flag. Each test says which leak it must be
able to catch, so that a pass means something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tightaudit.testing import PrivacyViolationError, assert_private_pair

diffprivlib = pytest.importorskip("diffprivlib.mechanisms", reason="needs diffprivlib")
opendp = pytest.importorskip("opendp.prelude", reason="needs opendp")

CALLS, CLAIM, MUST_CATCH = 8000, "approx-dp(epsilon=1,delta=0)", 2.5
Mechanism = Callable[[Any, np.random.Generator], Any]


def of_diffprivlib(name: str, **settings: Any) -> Callable[[float], Mechanism]:
    """A mechanism of diffprivlib by the ε that it is given; its noise comes from our generator."""

    def with_epsilon(epsilon: float) -> Mechanism:
        made = getattr(diffprivlib, name)

        def mechanism(value: Any, rng: np.random.Generator) -> Any:
            return made(epsilon=epsilon, random_state=int(rng.integers(2**31)), **settings).randomise(value)

        return mechanism

    return with_epsilon


def selection(epsilon: float) -> Mechanism:
    """The exponential mechanism: the index of a good candidate."""

    def mechanism(utilities: Any, rng: np.random.Generator) -> Any:
        made = diffprivlib.Exponential(
            epsilon=epsilon,
            sensitivity=1.0,
            utility=list(utilities),
            random_state=int(rng.integers(2**31)),
        )
        return made.randomise()

    return mechanism


def opendp_laplace(epsilon: float) -> Mechanism:
    opendp.enable_features("contrib")
    space = opendp.atom_domain(T=float, nan=False), opendp.absolute_distance(T=float)
    measurement = opendp.m.make_laplace(*space, scale=1 / epsilon)
    return lambda value, _: measurement(value)


def opendp_randomized_response(epsilon: float) -> Mechanism:
    opendp.enable_features("contrib")
    measurement = opendp.m.make_randomized_response_bool(prob=float(np.exp(epsilon) / (1 + np.exp(epsilon))))
    return lambda value, _: measurement(value)


def opendp_noisy_max(epsilon: float) -> Mechanism:
    opendp.enable_features("contrib")
    space = (
        opendp.vector_domain(opendp.atom_domain(T=float, nan=False)),
        opendp.linf_distance(T=float),
    )
    measurement = opendp.m.make_noisy_max(*space, opendp.max_divergence(), scale=2 / epsilon)
    return lambda values, _: measurement(list(values))


TABLE = (14, 6, 5, 9, 2, 4)
"""Records by two attributes, of two and of three values."""
NEIGHBOUR = (14, 6, 5, 9, 2, 5)


def synthetic_table(scale: float) -> Mechanism:
    """Synthetic records from one noisy table of counts, by mbi (private-pgm)."""
    mbi = pytest.importorskip("mbi", reason="needs mbi")
    domain = mbi.Domain(["first", "second"], [2, 3])

    def mechanism(counts: Any, rng: np.random.Generator) -> Any:
        noisy = np.asarray(counts) + rng.laplace(scale=scale, size=len(counts))
        measured = [mbi.LinearMeasurement(noisy, ("first", "second"), stddev=scale)]
        model = mbi.estimation.MirrorDescent().estimate(
            domain, measured, known_total=float(sum(TABLE)), iters=100
        )
        return model.synthetic_data(rows=sum(TABLE)).datavector().astype(float)

    return mechanism


MECHANISMS = {
    "Laplace, diffprivlib": (of_diffprivlib("Laplace", sensitivity=1.0), 0.0, 1.0),
    "geometric, diffprivlib": (of_diffprivlib("Geometric", sensitivity=1), 3, 4),
    "binary, diffprivlib": (of_diffprivlib("Binary", value0="no", value1="yes"), "no", "yes"),
    "folded Laplace, diffprivlib": (
        of_diffprivlib("LaplaceFolded", sensitivity=1.0, lower=0.0, upper=2.0),
        0.0,
        1.0,
    ),
    "staircase, diffprivlib": (of_diffprivlib("Staircase", sensitivity=1.0), 0.0, 1.0),
    "selection, diffprivlib": (selection, (1.0, 1.0, 1.0), (2.0, 0.0, 0.0)),
    "Laplace, OpenDP": (opendp_laplace, 0.0, 1.0),
    "randomized response, OpenDP": (opendp_randomized_response, False, True),
    "noisy max, OpenDP": (opendp_noisy_max, (1.0, 1.0, 1.0), (2.0, 0.0, 0.0)),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_keeps_its_epsilon(name: str) -> None:
    make, first, second = MECHANISMS[name]
    assert_private_pair(make(1.0), first, second, CLAIM, calls=CALLS, must_catch=MUST_CATCH, seed=1)


@pytest.mark.parametrize("name", MECHANISMS)
def test_three_times_the_epsilon_is_caught(name: str) -> None:
    make, first, second = MECHANISMS[name]
    with pytest.raises(PrivacyViolationError, match="leaks more than"):
        assert_private_pair(make(3.0), first, second, CLAIM, calls=CALLS, seed=1)


@pytest.mark.filterwarnings("ignore")
def test_synthetic_data() -> None:
    """Noise that is right for proportions is too little for counts."""
    assert_private_pair(synthetic_table(1.0), TABLE, NEIGHBOUR, CLAIM, calls=2000, must_catch=6.0, seed=1)
    with pytest.raises(PrivacyViolationError, match="leaks more than"):
        assert_private_pair(synthetic_table(1.0 / sum(TABLE)), TABLE, NEIGHBOUR, CLAIM, calls=2000, seed=1)
