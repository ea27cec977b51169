"""Audits of real mechanisms in a test suite: `pytest examples`.

The mechanism under test gets secret bits and a random generator and returns one score per bit. Each bit goes
through its own call or its own coordinate, so outcomes are independent, and the tests say so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tightaudit.testing import PrivacyViolationError, assert_private

diffprivlib = pytest.importorskip("diffprivlib.mechanisms", reason="needs diffprivlib")
opendp = pytest.importorskip("opendp.prelude", reason="needs opendp")

CANARIES = 4000

Bits = NDArray[np.bool_]
Mechanism = Callable[[Bits, np.random.Generator], NDArray[np.float64]]


def opendp_laplace(scale: float) -> Mechanism:
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.l1_distance(T=float)
    measurement = opendp.m.make_laplace(*space, scale=scale)
    return lambda bits, _: np.array(measurement(bits.astype(float).tolist()))


def opendp_gaussian(scale: float, *, sensitivity: float = 1.0) -> Mechanism:
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.l2_distance(T=float)
    measurement = opendp.m.make_gaussian(*space, scale=scale)
    return lambda bits, _: np.array(measurement((sensitivity * bits).tolist()))


def diffprivlib_laplace(epsilon: float, *, sensitivity: float = 1.0) -> Mechanism:
    def run(bits: Bits, rng: np.random.Generator) -> NDArray[np.float64]:
        noisy = diffprivlib.Laplace(
            epsilon=epsilon, sensitivity=sensitivity, random_state=int(rng.integers(2**31))
        )
        return np.array([noisy.randomise(float(bit)) for bit in bits])

    return run


def diffprivlib_gaussian(epsilon: float, delta: float, *, sensitivity: float = 1.0) -> Mechanism:
    def run(bits: Bits, rng: np.random.Generator) -> NDArray[np.float64]:
        noisy = diffprivlib.GaussianAnalytic(
            epsilon=epsilon, delta=delta, sensitivity=sensitivity, random_state=int(rng.integers(2**31))
        )
        return np.array([noisy.randomise(float(bit)) for bit in bits])

    return run


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (opendp_laplace(scale=1.0), "laplace(mu=1)"),
        (opendp_gaussian(scale=1.0), "gaussian(mu=1)"),
        (diffprivlib_laplace(epsilon=1.0), "laplace(mu=1)"),
        (diffprivlib_gaussian(epsilon=1.0, delta=1e-5), "approx-dp(epsilon=1,delta=1e-5)"),
    ],
)
def test_real_mechanisms_keep_their_promise(mechanism: Mechanism, claim: str) -> None:
    assert_private(mechanism, claim, n=CANARIES, independent=True)


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (opendp_laplace(scale=0.5), "laplace(mu=1)"),
        (diffprivlib_laplace(epsilon=1.0, sensitivity=0.5), "laplace(mu=1)"),
    ],
)
def test_half_the_laplace_noise_is_caught(mechanism: Mechanism, claim: str) -> None:
    with pytest.raises(PrivacyViolationError, match="leaks more than laplace"):
        assert_private(mechanism, claim, n=CANARIES, independent=True)


def test_a_sensitivity_off_by_two_is_caught() -> None:
    """The noise was made for a sensitivity of 1, the data changes by 2."""
    with pytest.raises(PrivacyViolationError, match="leaks more than gaussian"):
        assert_private(
            opendp_gaussian(scale=1.0, sensitivity=2.0), "gaussian(mu=1)", n=CANARIES, independent=True
        )


def test_a_pure_claim_needs_no_belief_in_independence() -> None:
    with pytest.raises(PrivacyViolationError, match="whatever the dependence"):
        assert_private(opendp_laplace(scale=0.5), "laplace(mu=1)", n=CANARIES)
