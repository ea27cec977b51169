"""What the accountant assumes, checked against what the canaries saw, one assumption after the other.

The auditor knows who was sampled, who contributed and what came out. Each check has an exact or nearly exact
p-value if all is well. Noise is measured in units of what was asked for in its step, so that a schedule does
not matter.
"""

from tightaudit.canaries.accounted import Accounted, total
from tightaudit.canaries.bank import Bank
from tightaudit.canaries.checkup.causes import told
from tightaudit.canaries.checkup.noise import NoiseChecks
from tightaudit.canaries.checkup.sampling import sampling_checks, steps_taken
from tightaudit.canaries.checkup.totals import Totals
from tightaudit.evidence.checkup import LEVEL, Checkup


def check_up(bank: Bank, accounted: Accounted, *, level: float = LEVEL) -> Checkup:
    """The check-up of what a bank has seen, against what the accountant has written down.

    >>> import numpy as np
    >>> from tightaudit.canaries.bank import Design
    >>> from tightaudit.canaries.transcript import Step
    >>> bank, rng = Bank(Design.of(500, seed=1)), np.random.default_rng(1)
    >>> for step in range(20):
    ...     sampled = rng.random(500) < 0.2
    ...     noise = 0.5 * rng.standard_normal((2, bank.design.entries))
    ...     noise[:, :500] += sampled * bank.members / 2**0.5
    ...     bank.record(Step(sampled, noise, sigma=1.0, rate=0.2, accounted=step + 1))
    >>> [check.fault for check in check_up(bank, ((1.0, 0.2, 20),)).faults]
    ['the noise is 0.496 of what was asked for']
    """
    seen = Totals.of(bank)
    checks = [*steps_taken(bank, total(accounted)), *sampling_checks(seen, bank)]
    checks += NoiseChecks(seen.in_their_own_scale(), bank).checks()
    return Checkup(tuple(told(checks, level)), level)
