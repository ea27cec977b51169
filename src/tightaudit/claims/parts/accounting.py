"""The one place that looks inside dp-accounting: its privacy loss distributions as plain arrays.

dp-accounting composes and rounds, but has no public way to its masses. What is read here without being
promised: the two directions of a distribution, and of each the lowest loss, the step, the masses, the mass at
infinity and the way it was rounded. The version range in pyproject.toml and
tests/claims/parts/test_accounting.py hold it to that.
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
    from dp_accounting.pld.pld_pmf import DensePLDPmf

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
    steps_alike = [
        privacy_loss_distribution.from_gaussian_mechanism(
            sigma, sampling_prob=q, value_discretization_interval=interval
        )
        for sigma, q, _ in stretches
    ]
    counts = [steps for _, _, steps in stretches]
    # Few masses kept sparse would be composed one step after another.
    removing = [step._pmf_remove.to_dense_pmf() for step in steps_alike]
    # Without sampling both ways are alike.
    adding = [
        removed if q == 1 else _the_other_way(removed, step._pmf_add._infinity_mass)
        for removed, step, (_, q, _) in zip(removing, steps_alike, stretches, strict=True)
    ]
    return _above_zero(_whole(removing, counts)), _above_zero(_whole(adding, counts))


def _the_other_way(removed: DensePLDPmf, infinity_mass: float) -> DensePLDPmf:
    """The same pair of laws with their roles exchanged.

    dp-accounting takes differences of a curve near 1 for it, and on fine grids their rounding adds up to
    masses that are not there. A pair that is never more private one way is not the other way either.
    """
    losses = removed._discretization * np.arange(removed._lower_loss, removed._lower_loss + removed.size)
    return type(removed)(
        removed._discretization,
        1 - removed._lower_loss - removed.size,
        (removed._probs * np.exp(-losses))[::-1],
        infinity_mass,
        removed._pessimistic_estimate,
    )


def _whole(each: Sequence[DensePLDPmf], counts: Sequence[int]) -> DensePLDPmf:
    # Moments of hardly any noise overflow, and those that do not are enough to cut a tail.
    with np.errstate(over="ignore"):
        composed = [step.self_compose(count) for step, count in zip(each, counts, strict=True)]
        return reduce(lambda one, next_one: one.compose(next_one), composed)


def _above_zero(dense: DensePLDPmf) -> Losses:
    first = max(0, 1 - dense._lower_loss)
    masses = np.maximum(dense._probs[first:], 0.0)
    losses = dense._discretization * np.arange(dense._lower_loss + first, dense._lower_loss + dense.size)
    losses, masses = np.append(losses, np.inf), np.append(masses, dense._infinity_mass)
    return Losses(losses, masses, masses * np.exp(-losses))
