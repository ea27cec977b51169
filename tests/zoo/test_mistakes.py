"""Every mistake of the zoo is named by the check-up after one short run; no control is."""

from __future__ import annotations

import pytest
from tests.zoo.mistakes import ZOO, Training, ZooMistake

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("mistake", ZOO, ids=lambda mistake: mistake.name)
def test_the_fault_is_named(mistake: ZooMistake) -> None:
    training = Training(seed=1, mode=mistake.mode)
    mistake.plant(training)
    training.run()
    checkup = training.canaries.checkup()
    if mistake.named is None:
        assert checkup.faults == ()
    else:
        found = [check.fault for check in (checkup.notes if mistake.noted else checkup.faults)]
        assert any(mistake.named in fault for fault in found), found
