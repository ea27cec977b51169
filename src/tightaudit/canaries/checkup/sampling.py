"""Checks of what comes before the gradient: steps, who is sampled, and how often."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betaincinv, chdtr, chdtrc

from tightaudit.canaries.bank import Bank
from tightaudit.canaries.checkup.intervals import SURE, between, of_square
from tightaudit.canaries.checkup.totals import Totals
from tightaudit.evidence.checkup import Check

_FEWEST = 20
"""Counts from which their variance is told from another."""


def steps_taken(bank: Bank, accounted: int) -> Iterator[Check]:
    taken = bank.steps
    hidden = taken - max((step.accounted for step in bank.transcript), default=0)
    if bank.design.first_steps is None or hidden > 0:
        written = accounted if bank.design.first_steps is None else taken - hidden
        yield Check(
            "steps",
            f"{written:,}",
            f"{taken:,}",
            0.0 if taken > written else 1.0,
            f"{taken:,} steps were taken and {written:,} accounted for",
        )
        yield Check(
            "steps that were not seen",
            "0",
            f"{max(0, written - taken):,}",
            0.0 if taken < written else 1.0,
            f"only {taken:,} of {written:,} steps were seen: the canaries came late, or were not resumed",
            harmful=False,
        )


def rate(seen: Totals) -> Check:
    draws = seen.times.size * seen.sizes.size
    sampled, rate = int(seen.times.sum()), seen.expected / seen.sizes.size
    tail, others = (1 - SURE) / 2, draws - sampled
    low = float(betaincinv(sampled, others + 1, tail)) if sampled else 0.0
    high = float(betaincinv(sampled + 1, others, 1 - tail)) if others else 1.0
    return Check(
        "sampling rate",
        f"{rate:.4g}",
        f"{sampled / draws:.4g}",
        float(bdtrc(sampled - 1, draws, rate)) if sampled else 1.0,
        f"records are sampled at the rate {sampled / draws:.4g}, not {rate:.4g}",
        between(low, high),
    )


def participation(seen: Totals, bank: Bank) -> Iterator[Check]:
    """Whether each record is sampled by itself: around the rate that was seen, right or wrong."""
    spread = int(np.ptp(seen.times))
    once = spread <= 1 and seen.times.max() > 1
    fault = "every record is used exactly once an epoch" if once else "records take part too equally often"
    yield from _spread(
        "participation, spread",
        seen.times,
        bank.steps,
        f"{fault}: batches are shuffled, not Poisson-sampled",
        "some records take part more often than others, which Poisson sampling does not explain",
    )


def batch_sizes(seen: Totals, bank: Bank) -> Iterator[Check]:
    if bank.design.own_sampling and not (bank.records and seen.sizes.all()):
        return
    yield from _spread(
        "batch size, spread",
        seen.sizes,
        bank.records or bank.n,
        "batches have a fixed size: they are shuffled or drawn in that number, not Poisson-sampled",
        "batch sizes vary more than Poisson sampling makes them: records are not sampled one by one",
    )


def _spread(name: str, counts: NDArray[Any], trials: int, too_even: str, too_uneven: str) -> Iterator[Check]:
    """Squared deviations over what they are for binomial counts, about 1."""
    rate = float(counts.mean()) / trials
    if not 0 < rate < 1 or trials < 2 or counts.size < _FEWEST:
        return
    variance = trials * rate * (1 - rate)
    ratio = float(np.mean((counts - trials * rate) ** 2)) / variance
    fourth = 3 + (1 - 6 * rate * (1 - rate)) / variance
    degrees = 2 * counts.size / (fourth - 1)
    tails = chdtr(degrees, degrees * ratio), chdtrc(degrees, degrees * ratio)
    yield Check(
        name,
        "1",
        f"{ratio:.3g}",
        min(1.0, 2 * float(min(tails))),
        too_even if ratio < 1 else too_uneven,
        of_square(ratio, degrees),
    )


def once(seen: Totals) -> Check:
    return Check(
        "records used twice in a step",
        "0",
        f"{seen.again:,}",
        0.0 if seen.again else 1.0,
        "records are used more than once in a step: by several workers, by several batches of one step, or "
        "drawn with replacement",
    )
