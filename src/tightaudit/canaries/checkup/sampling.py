"""Checks of what comes before the gradient: steps, who is sampled, and how often."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, betaincinv, chdtr, chdtrc

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


def rate(seen: Totals) -> Iterator[Check]:
    """How often canaries are sampled."""
    draws = seen.times.size * seen.rates.size
    sampled, assumed = int(seen.times.sum()), float(seen.rates.mean())
    tail, others = (1 - SURE) / 2, draws - sampled
    low = float(betaincinv(sampled, others + 1, tail)) if sampled else 0.0
    high = float(betaincinv(sampled + 1, others, 1 - tail)) if others else 1.0
    shown = (f"{assumed:.4g}", f"{sampled / draws:.4g}")
    fault = f"records are sampled at the rate {shown[1]}, not {shown[0]}"
    interval = between(low, high)
    above = float(bdtrc(sampled - 1, draws, assumed)) if sampled else 1.0
    below = float(bdtr(sampled, draws, assumed)) if assumed < 1 or others else 1.0
    yield Check("sampling rate", *shown, above, fault, interval)
    if sampled == 0:
        fault = "no canary was ever sampled: the loader does not deliver them, so nothing is tested"
    yield Check("sampling rate, too low", *shown, below, fault, interval, harmful=sampled == 0)


def participation(seen: Totals) -> Iterator[Check]:
    """Whether each record is sampled by itself: around the rate that was seen, right or wrong."""
    spread = int(np.ptp(seen.times))
    exactly = spread <= 1 and seen.times.max() > 1
    fault = "every record is used exactly once an epoch" if exactly else "records take part too equally often"
    yield from _spread(
        "participation, spread",
        seen.times,
        seen.rates[None, :],
        1,
        f"{fault}: batches are shuffled, not Poisson-sampled",
        "some records take part more often than others, which Poisson sampling does not explain",
    )


def batch_sizes(seen: Totals, bank: Bank) -> Iterator[Check]:
    """How many records are in a batch, and how much that varies."""
    if bank.design.own_sampling and not (bank.records and seen.sizes.all()):
        return
    records = bank.records or bank.n
    if bank.records and not bank.design.own_sampling:
        total, assumed = int(seen.sizes.sum()), float(seen.rates.mean())
        yield Check(
            "batch size",
            f"{records * assumed:.4g}",
            f"{seen.sizes.mean():.4g}",
            float(bdtrc(total - 1, records * seen.sizes.size, assumed)) if total else 1.0,
            f"batches have {seen.sizes.mean():.4g} records on average, not {records * assumed:.4g}: records "
            "are sampled more often than accounted for",
        )
    yield from _spread(
        "batch size, spread",
        seen.sizes,
        seen.rates[:, None],
        records,
        "batches have a fixed size: they are shuffled or drawn in that number, not Poisson-sampled",
        "batch sizes vary more than Poisson sampling makes them: records are not sampled one by one",
    )


def _spread(
    name: str, counts: NDArray[Any], rates: NDArray[Any], times: int, too_even: str, too_uneven: str
) -> Iterator[Check]:
    """Squared deviations over what they are for sums of independent coins: about 1.

    A row of `rates` has the coins of a count, each of them flipped so many `times`; one row may serve all.
    """
    if counts.size < _FEWEST or times * rates.shape[1] < 2 or not counts.any():
        return
    # Around the rate that was seen: that it is another one than accounted for is for other checks to tell.
    rates = rates * (counts.mean() / (times * rates.sum(axis=1)).mean())
    if rates.max() >= 1:
        return
    single = rates * (1 - rates)
    variance = times * single.sum(axis=1)
    ratio = float(np.mean((counts - times * rates.sum(axis=1)) ** 2 / variance))
    fourth = 3 + float(np.mean(times * (single * (1 - 6 * single)).sum(axis=1) / variance**2))
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
