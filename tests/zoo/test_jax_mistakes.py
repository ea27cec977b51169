"""Every mistake of the zoo is named by the check-up after one short run with JAX-Privacy; no control is."""

from __future__ import annotations

import pytest
from tests.zoo.jax_mistakes import JAX_ZOO, JaxMistake

pytestmark = pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")


@pytest.mark.parametrize("mistake", JAX_ZOO, ids=lambda mistake: mistake.name)
def test_the_fault_is_named(mistake: JaxMistake) -> None:
    training = mistake.training(1)
    checkup = training.canaries.checkup(training.run())
    if mistake.named is None:
        assert checkup.faults == ()
    else:
        found = [check.fault for check in (checkup.notes if mistake.noted else checkup.faults)]
        assert any(mistake.named in fault for fault in found), found
