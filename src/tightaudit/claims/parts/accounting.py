"""The one place that looks inside dp-accounting: its privacy loss distributions as plain arrays.

dp-accounting composes and rounds, but has no public way to its masses. What is read here without being
promised: the two directions of a distribution, and the lowest loss, the step, the masses and the mass at
infinity of each. The version range in pyproject.toml and tests/claims/parts/test_accounting.py hold it
to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tightaudit.support.checks import FloatArray
from tightaudit.support.extras import needs

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf

Stretch: TypeAlias = tuple[float, float, int]
"""Steps that are alike: their noise multiplier, their sampling rate, and how many there are."""


@dataclass(frozen=True)
class Losses:
    """Losses above 0 in one direction, their masses under the law they are losses of, and under the other."""

    losses: FloatArray
    masses: FloatArray
    masses_of_other: FloatArray


def sampled_gaussian_losses(stretches: Sequence[Stretch], interval: float) -> tuple[Losses, Losses]:
    """Losses of the composed subsampled Gaussian, rounded up on a grid: of being removed, of being added."""
    with needs("accounting", "dp-sgd"):
        from dp_accounting.pld import privacy_loss_distribution
    whole = reduce(
        lambda one, next_one: one.compose(next_one),
        (
            privacy_loss_distribution.from_gaussian_mechanism(
                sigma, sampling_prob=q, value_discretization_interval=interval
            ).self_compose(steps)
            for sigma, q, steps in stretches
        ),
    )
    return _above_zero(whole._pmf_remove), _above_zero(whole._pmf_add)


def _above_zero(pmf: PLDPmf) -> Losses:
    dense = pmf.to_dense_pmf()
    first = max(0, 1 - dense._lower_loss)
    masses = np.maximum(dense._probs[first:], 0.0)
    losses = dense._discretization * np.arange(dense._lower_loss + first, dense._lower_loss + dense.size)
    losses, masses = np.append(losses, np.inf), np.append(masses, dense._infinity_mass)
    return Losses(losses, masses, masses * np.exp(-losses))
