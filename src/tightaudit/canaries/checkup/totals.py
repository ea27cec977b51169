"""Sums over all steps of a transcript, so that no more than one step is in memory."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from tightaudit.canaries.bank import Bank, along
from tightaudit.canaries.checkup.intervals import around, of_square, two_sided
from tightaudit.canaries.correlated import through
from tightaudit.canaries.participation import Sampled
from tightaudit.canaries.transcript import Step
from tightaudit.evidence.checkup import Check
from tightaudit.support.checks import FloatArray

_MOST_DRAWN = 50_000
"""Values that are enough to compare a shape."""
ROUNDING = 1e-6
"""Of a mean contribution, and as a share of the noise asked for: less is none."""
_CLEARLY = 4.0
"""Standard deviations from which a scale is taken for another one than was said."""
NEVER = 1e-12
"""A p-value below which something is taken to be so when other checks are made."""


@dataclass
class Totals:
    """Sums over all steps, so that no more than one step is in memory."""

    times: NDArray[np.int64]
    """For each canary, the steps in which it was sampled."""
    again: int
    """Canaries delivered more than once in a step, over all steps."""
    closest: int
    """Steps from one participation of a canary to its next, at least; all steps if none took part twice."""
    turn: NDArray[np.int64]
    """For each canary, the step of a round in which it took part first; -1 if it never did."""
    out_of_turn: int
    """Participations in other steps of a round."""
    rates: FloatArray
    """Step by step, the sampling rate that the accountant assumes."""
    sizes: NDArray[np.int64]
    contributed: FloatArray
    """For each worker, the squares of what contributions should leave, summed: 1 each for white noise."""
    lengths: FloatArray
    """For each worker, the sum of what they did leave, times what they should."""
    length_squares: float
    length_in: FloatArray
    """The same for each tensor."""
    asked: float
    """The variance asked for where contributions leave something, summed."""
    asked_left: float
    """The same, times the squares of what they should leave."""
    asked_squares: float
    """Its squares, summed."""
    squares: FloatArray
    """Step by step, the mean square of the noise, in units of what was asked for."""
    counts: NDArray[np.int64]
    """Step by step, the number of values that is the mean of."""
    products: float
    """Noise of one tensor times noise of the other."""
    sums: FloatArray
    """Step by step and tensor by tensor, the sum of the noise, over the root of the number of values."""
    means: FloatArray
    """At each entry that never carries a canary, the sum over the steps."""
    lag: float
    """Noise of one step times that of the next, at entries that never carry a canary."""
    steps: int
    drawn: FloatArray
    """Some values of the noise, for their shape."""
    ties: int
    """Pairs of equal values in the first step."""
    most_equal: tuple[float, int]
    """The value that occurs most often in it, and how often."""
    first: int
    """Values in the first step."""
    alike: FloatArray
    scale: float = 1.0
    """What all gradients are multiplied by, if that is not what was said."""

    @classmethod
    def of(cls, bank: Bank) -> "Totals":
        design, steps = bank.design, bank.steps
        never = bank.never
        found = cls(
            times=np.zeros(design.n, dtype=np.int64),
            again=0,
            closest=steps,
            turn=np.full(design.n, -1),
            out_of_turn=0,
            rates=np.zeros(steps),
            sizes=np.zeros(steps, dtype=np.int64),
            contributed=np.zeros(design.workers),
            lengths=np.zeros(design.workers),
            length_squares=0.0,
            length_in=np.zeros(design.tensors),
            asked=0.0,
            asked_left=0.0,
            asked_squares=0.0,
            squares=np.zeros(steps),
            counts=np.zeros(steps, dtype=np.int64),
            products=0.0,
            sums=np.zeros((steps, design.tensors)),
            means=np.zeros((design.tensors, int(never.sum()))),
            lag=0.0,
            steps=steps,
            drawn=np.empty(0),
            ties=0,
            most_equal=(0.0, 0),
            first=0,
            alike=np.zeros((design.workers, design.workers)),
        )
        drawn = []
        last = np.full(design.n, -1)
        cycle = design.participation.cycle if isinstance(design.participation, Sampled) else 1
        before = np.zeros_like(found.means)
        each = max(1, _MOST_DRAWN // max(1, steps))
        for number, (step, left) in enumerate(_white(bank)):
            who = step.sampled > 0
            found.times += who
            found.closest = int((number - last[who & (last >= 0)]).min(initial=found.closest))
            last[who] = number
            found.turn[who & (found.turn < 0)] = number % cycle
            found.out_of_turn += int(np.count_nonzero(who & (found.turn != number % cycle)))
            found.again += int(np.count_nonzero(step.sampled > 1))
            found.rates[number] = step.rate
            # Canaries with coins of their own say nothing about the size of a batch.
            found.sizes[number] = step.size or (0 if design.own_sampling else np.count_nonzero(step.sampled))
            inside = np.zeros(design.entries, dtype=bool)
            inside[: design.n] = left != 0
            length, left = along(step.released)[inside], left[left != 0]
            worker = np.broadcast_to(step.worker, design.n)[inside[: design.n]]
            found.contributed += np.bincount(worker, weights=left**2, minlength=design.workers)
            found.lengths += np.bincount(worker, weights=left * length, minlength=design.workers)
            found.length_squares += float(np.sum(length**2))
            found.length_in += step.released[:, inside] @ left
            found.asked += step.sigma**2 * length.size
            found.asked_left += step.sigma**2 * float(np.sum(left**2))
            found.asked_squares += step.sigma**4 * length.size
            free = step.released[:, ~inside] / step.sigma
            found.counts[number] = free.size
            found.squares[number] = np.mean(free**2)
            found.products += float(free.prod(axis=0).sum()) if design.tensors > 1 else 0.0
            found.sums[number] = free.sum(axis=1) / math.sqrt(free.shape[1])
            own = step.released[:, never] / step.sigma
            found.means += own
            found.lag += float(np.sum(own * before))
            before = own
            drawn.append(free.reshape(-1)[:: max(1, free.size // each)])
            if number == 0:
                found.first = free.size
                values, repeats = np.unique(step.released[:, ~inside], return_counts=True)
                found.ties = int(np.sum(repeats * (repeats - 1) // 2))
                found.most_equal = float(values[np.argmax(repeats)]), int(repeats.max())
            found.alike += step.alike
        found.drawn = np.concatenate(drawn)
        return found

    @property
    def participations(self) -> float:
        """Participations of canaries that contributed, as many as white noise would need to tell as much."""
        return float(self.contributed.sum())

    @property
    def length(self) -> float:
        """What a contribution is on average, in units of what it should be."""
        return float(self.lengths.sum()) / self.participations

    @property
    def noise(self) -> float:
        """The noise in units of what was asked for."""
        return math.sqrt(float(self.squares @ self.counts) / float(self.counts.sum()))

    @property
    def correlation(self) -> float:
        """Of the noise in two tensors."""
        pairs = float(self.counts.sum()) / max(1, len(self.length_in))
        return self.products / pairs / self.noise**2 if self.noise > 0 else 0.0

    @property
    def variance(self) -> float:
        """Of what comes out where contributions leave something, summed, by the noise that was seen."""
        return self.noise**2 * (1 + self.correlation) * self.asked

    @property
    def deviation(self) -> float:
        """The standard deviation of the mean contribution."""
        seen_before = self.repeated if self.repetition_p < NEVER else 1.0
        variance = self.noise**2 * (1 + self.correlation) * self.asked_left
        return max(math.sqrt(max(variance, 0.0) * seen_before) / self.participations, ROUNDING)

    @cached_property
    def repeated(self) -> float:
        """How many times the mean over the steps varies as much as it should, from entry to entry."""
        if self.noise <= ROUNDING:
            return 1.0
        around = self.means - self.means.mean(axis=1, keepdims=True)
        return float(np.sum(around**2)) / self._entries / self.steps / self.noise**2

    @property
    def _entries(self) -> int:
        """Degrees of freedom of the means."""
        return self.means.size - len(self.means)

    @cached_property
    def repetition_p(self) -> float:
        """The probability that means over the steps vary that much by chance."""
        return float(chdtrc(self._entries, self._entries * self.repeated)) if self.steps > 1 else 1.0

    @property
    def independent_values(self) -> float:
        """How many values of the noise there are, where those that were seen before do not count."""
        count = float(self.counts.sum())
        if self.repetition_p < NEVER:
            count /= self.repeated
        pairs = float(self.counts.sum()) / max(1, len(self.length_in))
        if len(self.length_in) > 1 and two_sided(self.correlation * math.sqrt(pairs)) < NEVER:
            count /= 1 + self.correlation**2
        if self.shared_p < NEVER:
            each = float(self.counts.mean()) / len(self.length_in)
            shared = min(1.0, (self.shared - 1) / max(1.0, each - 1))
            count /= 1 + shared**2 * each
        return max(1.0, count)

    @cached_property
    def shared(self) -> float:
        """How many times the sum over coordinates varies as much as that of independent noise."""
        return float(np.mean(self.sums**2)) / self.noise**2 if self.noise > ROUNDING else 1.0

    @cached_property
    def shared_p(self) -> float:
        """The probability that sums over coordinates vary that much by chance."""
        return float(chdtrc(self.sums.size, self.sums.size * self.shared))

    def succession(self) -> Check:
        """Noise of a step against that of the step before."""
        pairs = self.means.size * max(1, self.steps - 1)
        correlation = self.lag / pairs / self.noise**2
        return Check(
            "noise from step to step",
            "0",
            f"{correlation:.3g}",
            two_sided(correlation * math.sqrt(pairs)) if self.steps > 1 else 1.0,
            f"the noise of a step is correlated with that of the step before ({correlation:.2f}), so that it "
            "adds up to another size than accounted for",
            around(correlation, 1 / math.sqrt(pairs)),
        )

    def repetition(self) -> Check:
        """Noise of entries that never carry a canary, averaged over the steps."""
        return Check(
            "noise between steps",
            "1",
            f"{self.repeated:.3g}",
            self.repetition_p,
            "noise repeats from step to step: its mean varies "
            f"{self.repeated:.3g} times as much as it should",
            of_square(self.repeated, self._entries),
        )

    def in_their_own_scale(self) -> "Totals":
        """The same, where contributions and noise are both multiplied by something: it hides as much."""
        if self.participations == 0 or self.length <= 0:
            return self
        off = abs(self.length - 1) > _CLEARLY * self.deviation
        alike = abs(self.noise / self.length - 1) <= _CLEARLY * self.deviation / self.length
        if not (off and alike):
            return self
        scale = self.noise  # known more exactly than the contributions
        return replace(
            self,
            lengths=self.lengths / scale,
            length_squares=self.length_squares / scale**2,
            length_in=self.length_in / scale,
            squares=self.squares / scale**2,
            products=self.products / scale**2,
            sums=self.sums / scale,
            lag=self.lag / scale**2,
            means=self.means / scale,
            drawn=self.drawn / scale,
            scale=scale,
        )


def _white(bank: Bank) -> Iterator[tuple[Step, FloatArray]]:
    """Each step with white noise, and what contributions should leave of every canary in it."""
    if bank.strategy is None:
        for number, step in enumerate(bank.transcript):
            yield step, np.asarray((step.sampled > 0) & bank.coins(number), dtype=np.float64)
        return
    left = bank.left_by(bank.transcript.took_part() & bank.members)
    yield from zip(through(bank.transcript, bank.strategy[: bank.steps, : bank.steps]), left, strict=True)
