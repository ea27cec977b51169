"""Every mistake of the zoo is named by the check-up after one short run; no control is."""

from __future__ import annotations

import pytest
from tests.zoo.mistakes import ZOO, Mistake, Training

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("mistake", ZOO, ids=lambda mistake: mistake.name)
def test_the_fault_is_named(mistake: Mistake) -> None:
    training = Training(seed=1)
    mistake.plant(training)
    training.run()
    faults = [check.fault for check in training.canaries.checkup().faults]
    if mistake.named is None:
        assert faults == []
    else:
        assert any(mistake.named in fault for fault in faults), faults
