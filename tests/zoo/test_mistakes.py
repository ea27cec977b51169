"""Every mistake of the zoo is named by the check-up after one short run; no control is."""

from __future__ import annotations

import pytest
from tests.zoo.mistakes import ZOO, Training, ZooMistake

import tightaudit as ta
from tightaudit.paper.trainings.mistakes import same_noise_every_step

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


def test_noise_that_repeats_is_taken_out_of_the_scores() -> None:
    """It hides nothing from someone who sees several steps, whatever the sign of the loss's slope."""
    training = Training(seed=1)
    same_noise_every_step(training)
    training.run()
    report = ta.audit(training.canaries.run(), delta=1e-5)
    assert report.violated
    assert report.epsilon is not None
    assert report.epsilon > 30
