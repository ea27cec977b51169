"""Checks of what came out: contributions, and the noise where nothing was contributed."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtr, chdtrc, fdtrc, ndtr, pdtrc
from scipy.stats import kstest

from tightaudit.canaries.bank import Bank
from tightaudit.canaries.checkup.intervals import around, between, ends_of_square, of_square, two_sided
from tightaudit.canaries.checkup.totals import ROUNDING, Totals
from tightaudit.canaries.correlated import Whiteness, through
from tightaudit.evidence.checkup import Check

_SINGLE_PRECISION = 2.0**-22
"""The distance between numbers of single precision near 1, twice over to be on the safe side."""
_COLLISIONS = 1 / (2 * math.sqrt(math.pi))
"""∫φ²: how likely two Gaussian values are to be closer than a small distance, per distance."""
_SAME_DRAW = 2.0**-23
"""How likely two values come from the same uniform number, of which JAX has 2²³ in single precision."""
_FOLLOWS = -0.5
"""Correlation of noise with batch size below which one is taken to be divided by the other."""


@dataclass(frozen=True)
class NoiseChecks:
    """What came out where canaries contributed, and where nothing was contributed."""

    seen: Totals
    bank: Bank

    def checks(self) -> Iterator[Check]:
        if self.seen.participations:
            yield from self._scale()
            yield from self._contribution()
        yield from self._size()
        if self.seen.noise <= ROUNDING:
            return
        yield from self._step_by_step()
        yield self.seen.repetition()
        yield self.seen.succession()
        yield from self._whiteness()
        if self.bank.design.tensors > 1:
            yield self._between_tensors()
        yield from self._between_workers()
        yield self._between_coordinates()
        yield self._shape()
        if not self.bank.design.own_sampling:
            yield self._precision()

    @cached_property
    def _count(self) -> int:
        return int(self.seen.counts.sum())

    def _scale(self) -> Iterator[Check]:
        scale = self.seen.scale
        yield Check(
            "scale of gradients",
            "1",
            f"{scale:.3g}",
            1.0 if scale == 1 else 0.0,
            f"contributions and noise are both {scale:.3g} times what the settings say",
            harmful=False,
        )

    def _contribution(self) -> Iterator[Check]:
        seen, tensors = self.seen, self.bank.design.tensors
        length, deviation = seen.length, seen.deviation
        why = ""
        if tensors > 1 and abs(length - math.sqrt(tensors)) < min(0.05, 4 * deviation):
            why = ": clipping is per tensor, or leaves one out"
        z = (length - 1) / deviation
        shown, interval = f"{length:.3g} C", around(length, deviation, " C")
        fault = f"contributions are {length:.3g} C{why}"
        yield Check("contribution of a record", "1 C", shown, float(ndtr(-z)), fault, interval)
        yield Check(
            "contribution, too small",
            "1 C",
            shown,
            float(ndtr(z)),
            f"contributions are {length:.3g} C, although their gradients are longer than C: clipping is to "
            "another norm, or not record by record",
            interval,
            harmful=False,
        )
        for number, part in enumerate(seen.length_in if tensors > 1 else ()):
            mean = float(part) / seen.participations * math.sqrt(tensors)
            yield self._equal_parts(f"tensor {number + 1}", mean, length, deviation * math.sqrt(tensors - 1))
        for number, count in enumerate(seen.contributed if len(seen.contributed) > 1 else ()):
            rest = seen.participations - count
            if count and rest:
                mean = float(seen.lengths[number] / count)
                other = (float(seen.lengths.sum()) - float(seen.lengths[number])) / rest
                own = deviation * math.sqrt(seen.participations * (1 / count + 1 / rest))
                yield self._equal_parts(f"worker {number}", mean, other, own)
        if seen.variance > 0:
            ratio = (seen.length_squares - seen.participations * length**2) / seen.variance
            degrees = seen.asked**2 / seen.asked_squares  # as many alike would vary (Satterthwaite)
            yield Check(
                "contribution, spread",
                "1",
                f"{ratio:.3g}",
                # The noise that it is compared with is an estimate too, from that many values.
                float(fdtrc(degrees, self._count / tensors, ratio)),
                "what a record contributes depends on others: records are not clipped one by one",
                of_square(ratio, degrees),
            )

    def _equal_parts(self, where: str, mean: float, other: float, deviation: float) -> Check:
        return Check(
            f"contribution, {where}",
            f"{other:.3g} C",
            f"{mean:.3g} C",
            two_sided((mean - other) / deviation),
            f"contributions in {where} are {mean:.3g} C, elsewhere {other:.3g} C",
            around(mean, deviation, " C"),
        )

    def _size(self) -> Iterator[Check]:
        ratio = self.seen.noise
        count = self.seen.independent_values
        squares = count * ratio**2
        low, high = (math.sqrt(end) for end in ends_of_square(ratio**2, count))
        shown = (f"{ratio:.3g} of what was asked for", between(low, high))
        for name, p, harmful in (
            ("noise", chdtr(count, squares), True),
            ("noise, too much", chdtrc(count, squares), False),
        ):
            yield Check(name, "1", f"{ratio:.4g}", float(p), f"the noise is {shown[0]}", shown[1], harmful)

    def _step_by_step(self) -> Iterator[Check]:
        """Whether steps differ in their noise more than chance makes them."""
        seen = self.seen
        if seen.squares.size < 2:
            return
        relative = seen.squares / seen.noise**2
        statistic = float(np.sum((relative - 1) ** 2 * seen.counts / 2))
        quietest, loudest = math.sqrt(relative.min()), math.sqrt(relative.max())
        why = (
            f"the noise differs from step to step: from {quietest:.2g} to {loudest:.2g} of what it is on "
            "average"
        )
        sizes = seen.sizes.astype(np.float64)
        if sizes.std() > 0 and relative.std() > 0:
            follows = float(np.corrcoef(sizes, np.sqrt(relative))[0, 1])
            if follows < _FOLLOWS:
                why = "the noise falls as a batch grows: gradients are divided by the actual size of a batch"
        yield Check(
            "noise, step by step",
            "1",
            f"{statistic / seen.squares.size:.3g}",
            float(chdtrc(seen.squares.size - 1, statistic)),
            why,
            of_square(statistic / seen.squares.size, seen.squares.size),
            # More noise than asked for in every step costs no privacy, however it varies.
            harmful=quietest * seen.noise < 1,
        )

    def _whiteness(self) -> Iterator[Check]:
        """Whether noise seen through the strategy is white; noise that is the same in all steps is told."""
        bank = self.bank
        if bank.strategy is None or self.seen.repeated > bank.steps / 2:
            return
        white = through(bank.transcript, bank.strategy[: bank.steps, : bank.steps])
        seen = Whiteness.of(white, bank.never)
        yield Check(
            "correlation between steps",
            "1",
            f"{seen.excess:.3g}",
            seen.p_value,
            "the noise of steps is not correlated as the strategy says: it is made by another matrix, or by "
            "other rows of it",
        )

    def _between_tensors(self) -> Check:
        pairs, correlation = self._count / self.bank.design.tensors, self.seen.correlation
        return Check(
            "noise between tensors",
            "0",
            f"{correlation:.3g}",
            two_sided(correlation * math.sqrt(pairs)),
            f"the noise of two tensors is correlated ({correlation:.2f}): is it drawn from the same seed?",
            around(correlation, 1 / math.sqrt(pairs)),
        )

    def _between_workers(self) -> Iterator[Check]:
        alike = self.seen.alike
        adding = np.flatnonzero(np.diag(alike) > ROUNDING * alike.max())
        if adding.size < 2:
            return
        sizes = np.sqrt(np.diag(alike)[adding])
        correlations = alike[np.ix_(adding, adding)] / np.outer(sizes, sizes)
        off = correlations[~np.eye(adding.size, dtype=bool)]
        worst = float(off[np.argmax(np.abs(off))])
        values = self.bank.design.controls * self.bank.design.tensors * self.bank.steps
        pairs = off.size // 2
        which = "the two workers add" if adding.size == 2 and len(alike) == 2 else "workers add"
        yield Check(
            "noise between workers",
            "0",
            f"{worst:.3g}",
            min(1.0, pairs * two_sided(worst * math.sqrt(values))),
            f"{which} the same noise (correlation {worst:.2f})",
            around(worst, 1 / math.sqrt(values)),
        )

    def _between_coordinates(self) -> Check:
        return Check(
            "noise between coordinates",
            "1",
            f"{self.seen.shared:.3g}",
            self.seen.shared_p,
            "coordinates share noise: their sum varies more than independent noise makes it",
            of_square(self.seen.shared, self.seen.sums.size),
        )

    def _shape(self) -> Check:
        p = float(kstest(self.seen.drawn / self.seen.noise, "norm").pvalue)
        return Check("shape of the noise", "Gaussian", "", p, "the noise is not Gaussian")

    def _precision(self) -> Check:
        """Equal values in one step: noise of single precision has next to none."""
        first, ties = self.seen.first, self.seen.ties
        expected = first * (first - 1) / 2 * (_SAME_DRAW + _COLLISIONS * _SINGLE_PRECISION)
        return Check(
            "equal values in a step",
            f"{expected:.2g}",
            f"{ties:,}",
            float(pdtrc(ties - 1, expected)) if ties else 1.0,
            self._why_equal(),
        )

    def _why_equal(self) -> str:
        value, times = self.seen.most_equal
        first, ties = self.seen.first, self.seen.ties
        if times * (times - 1) // 2 < ties / 3:
            return f"the noise has too low a precision: {ties:,} pairs of {first:,} values are equal"
        if value == 0:
            return f"some coordinates get no noise: {times:,} of {first:,} in the first step"
        return f"the noise is cut off: {times:,} of {first:,} values are {value:.3g}"
