"""What is relied on inside dp-accounting, which does not promise it."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

import tightaudit as ta
from tightaudit.claims.parts.accounting import sampled_gaussian_losses


def test_the_attributes_are_there() -> None:
    whole = privacy_loss_distribution.from_gaussian_mechanism(1.0, sampling_prob=0.1).self_compose(5)
    for pmf in (whole._pmf_remove, whole._pmf_add):
        dense = pmf.to_dense_pmf()
        assert isinstance(dense._lower_loss, int | np.integer)
        assert dense._probs.shape == (dense.size,)
        assert dense._discretization > 0
        assert 0 <= dense._infinity_mass < 1e-6


@pytest.mark.parametrize(("sigma", "q", "steps"), [(1.0, 0.1, 20), (0.7, 0.5, 3), (2.0, 1.0, 4)])
def test_they_mean_what_is_read_into_them(sigma: float, q: float, steps: int) -> None:
    """Masses above ε, less e^ε times the other law's, are dp-accounting's own δ(ε) in each direction."""
    whole = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=q, value_discretization_interval=1e-3
    ).self_compose(steps)
    for losses, pmf in zip(
        sampled_gaussian_losses([(sigma, q, steps)], 1e-3), (whole._pmf_remove, whole._pmf_add), strict=True
    ):
        assert np.all(np.diff(losses.losses) > 0)
        for epsilon in (0.0, 0.5, 2.0):
            above = losses.losses > epsilon
            delta = losses.masses[above].sum() - np.exp(epsilon) * losses.masses_of_other[above].sum()
            assert delta == pytest.approx(pmf.get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-13)


def test_one_step_is_the_closed_form_rounded_up() -> None:
    removed, _ = sampled_gaussian_losses([(1.0, 0.3, 1)], 1e-4)
    claim = ta.SubsampledGaussian(mu=1.0, q=0.3)
    for epsilon in (0.1, 0.5, 1.0):
        above = removed.losses > epsilon
        delta = removed.masses[above].sum() - np.exp(epsilon) * removed.masses_of_other[above].sum()
        assert claim.delta(epsilon) <= delta <= claim.delta(epsilon) * 1.001 + 1e-9
