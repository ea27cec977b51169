"""Checks of what comes before the gradient: steps, who is sampled, and how often."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, betaincinv, chdtr, chdtrc

from tightaudit.canaries.bank import Bank
from tightaudit.canaries.checkup.intervals import SURE, between, of_square
from tightaudit.canaries.checkup.totals import Totals
from tightaudit.canaries.participation import Pattern, Sampled
from tightaudit.evidence.checkup import Check

_FEWEST = 20
"""Counts from which their variance is told from another."""
_HARDLY = 1e-3
"""Canaries expected never to be sampled below which those that were not are taken to be left out."""


def steps_taken(bank: Bank, accounted: int) -> Iterator[Check]:
    taken, participation = bank.steps + bank.unseen, bank.design.participation
    if isinstance(participation, Sampled):
        taken = -(-taken // participation.cycle)  # one step per round is a record's turn
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


def sampling_checks(seen: Totals, bank: Bank) -> Iterator[Check]:
    """Who takes part when, as far as the accountant relies on it."""
    participation = bank.design.participation
    if isinstance(participation, Pattern):
        yield from _pattern(seen, participation)
        yield _once(seen)
        return
    if not bank.design.own_sampling:
        if participation.cycle > 1:
            yield _turns(seen, participation.cycle)
        yield from _rate(seen, participation.cycle)
        yield from _participation(seen, participation.cycle)
        yield _once(seen)
    if participation.fixed_size:
        yield from _fixed_size(seen, bank)
    elif participation.cycle == 1:
        yield from _batch_sizes(seen, bank)


def _pattern(seen: Totals, pattern: Pattern) -> Iterator[Check]:
    """Where participations are known, all that counts is how close they are and how many."""
    closest, most = seen.closest, int(seen.times.max())
    yield Check(
        "steps between participations",
        f"{pattern.min_sep} or more",
        f"{closest:,}",
        1.0 if closest >= min(pattern.min_sep, seen.steps) else 0.0,
        f"a record took part again after {closest} step{'s' if closest > 1 else ''}, not after "
        f"{pattern.min_sep} or more: its contributions add up to more than accounted for",
    )
    allowed = pattern.most(seen.steps)
    yield Check(
        "participations of a record",
        f"at most {allowed:,}",
        f"{most:,}",
        1.0 if most <= allowed else 0.0,
        f"a record took part {most} times, {allowed} are accounted for",
    )
    yield Check(
        "canaries that took part",
        "some",
        f"{np.count_nonzero(seen.times):,}",
        1.0 if most else 0.0,
        "no canary ever took part: the batches do not have them, so nothing is tested",
    )


def _turns(seen: Totals, cycle: int) -> Check:
    return Check(
        "participations out of turn",
        "0",
        f"{seen.out_of_turn:,}",
        0.0 if seen.out_of_turn else 1.0,
        f"records take part more often than in one of {cycle} steps: batches are not taken from {cycle} "
        "groups in turn, as accounted for",
    )


def _rounds(seen: Totals, cycle: int) -> NDArray[np.int64]:
    """For each canary, how often it is its turn; 0 for one that is in no group.

    A sampler that splits records into groups of the same size leaves out the rest.
    """
    turn = np.where(seen.turn < 0, 0, seen.turn)
    rounds = -(-(seen.steps - turn) // cycle)
    hardly = seen.times.size * (1 - float(seen.rates.mean())) ** (seen.steps // cycle) < _HARDLY
    return np.where((seen.turn < 0) & (cycle > 1) & hardly, 0, rounds)


def _rate(seen: Totals, cycle: int) -> Iterator[Check]:
    """How often canaries are sampled when it is their turn."""
    draws = int(_rounds(seen, cycle).sum())
    if not draws:
        draws = seen.times.size * seen.steps
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


def _participation(seen: Totals, cycle: int) -> Iterator[Check]:
    """Whether each record is sampled by itself: around the rate that was seen, right or wrong."""
    spread = int(np.ptp(seen.times))
    exactly = spread <= 1 and seen.times.max() > 1
    fault = "every record is used exactly once an epoch" if exactly else "records take part too equally often"
    rounds, counts = _rounds(seen, cycle), seen.times
    yield from _spread(
        "participation, spread",
        counts if cycle == 1 else counts[rounds > 0],
        seen.rates[None, :] if cycle == 1 else np.array([[seen.rates.mean()]]),
        1 if cycle == 1 else rounds[rounds > 0],
        f"{fault}: batches are shuffled, not Poisson-sampled",
        "some records take part more often than others, which Poisson sampling does not explain",
    )


def _fixed_size(seen: Totals, bank: Bank) -> Iterator[Check]:
    """Whether batches of one size have that size."""
    if not bank.records:
        return
    assumed = round(float(seen.rates.mean()) * bank.records)
    largest = int(seen.sizes.max())
    yield Check(
        "batch size",
        f"{assumed:,}",
        f"{largest:,}",
        1.0 if largest <= assumed else 0.0,
        f"a batch has {largest:,} records, {assumed:,} are accounted for",
    )


def _batch_sizes(seen: Totals, bank: Bank) -> Iterator[Check]:
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
    name: str,
    counts: NDArray[Any],
    rates: NDArray[Any],
    times: int | NDArray[np.int64],
    too_even: str,
    too_uneven: str,
) -> Iterator[Check]:
    """Squared deviations over what they are for sums of independent coins: about 1.

    A row of `rates` has the coins of a count, each of them flipped so many `times`; one row may serve all.
    """
    if counts.size < _FEWEST or np.max(times) * rates.shape[1] < 2 or not counts.any():
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


def _once(seen: Totals) -> Check:
    return Check(
        "records used twice in a step",
        "0",
        f"{seen.again:,}",
        0.0 if seen.again else 1.0,
        "records are used more than once in a step: by several workers, by several batches of one step, or "
        "drawn with replacement",
    )
