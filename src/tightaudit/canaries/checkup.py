"""A check-up: what the accountant assumes against what was seen at the bank, and which fault that points to.

Each check has an exact or nearly exact p-value; Holm's correction keeps the chance that an honest training is
faulted by any of them below the level. The auditor knows who is in and who was sampled, so the checks use
both. They say where to look; they are no statement about ε.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, chdtr, chdtrc, ndtr
from scipy.stats import kstest

from tightaudit.canaries.bank import TENSORS, Bank, along
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.support.checks import BoolArray, FloatArray

LEVEL = 0.01
_FEWEST = 20
"""Counts from which their variance is told from another."""
_MOST_DRAWN = 50_000
"""Values that are enough to compare a shape."""


@dataclass(frozen=True)
class Check:
    """One assumption of the accountant, and what was seen of it."""

    name: str
    assumed: str
    seen: str
    p_value: float
    fault: str
    """What is wrong if the p-value is small."""
    harmful: bool = True
    """Whether that costs privacy; too much noise does not."""


@dataclass(frozen=True)
class Checkup:
    """All checks of one training, in the order in which a record travels.

    >>> from tightaudit.canaries.bank import Step
    >>> bank, rng, claim = Bank.draw(500, seed=1), np.random.default_rng(1), DpSgd(1.0, 0.2, 20)
    >>> for _ in range(20):
    ...     sampled = rng.random(500) < 0.2
    ...     noise = 0.5 * rng.standard_normal((2, bank.entries))
    ...     noise[:, :500] += sampled * bank.members / 2**0.5
    ...     bank.record(Step(sampled, noise, 1.0))
    >>> [check.fault for check in Checkup.of(bank, claim).faults]
    ['the noise is 0.50 of what was asked for']
    """

    checks: tuple[Check, ...]
    level: float = LEVEL

    @classmethod
    def of(cls, bank: Bank, claim: DpSgd, *, level: float = LEVEL) -> "Checkup":
        """The check-up of what a bank has seen, against what the accountant has written down."""
        return cls(tuple(_checks(bank, claim)), level)

    @property
    def corrected(self) -> tuple[float, ...]:
        """The p-values corrected for the number of checks (Holm)."""
        order = np.argsort([check.p_value for check in self.checks], kind="stable")
        corrected, largest = [0.0] * len(self.checks), 0.0
        for rank, place in enumerate(order):
            largest = max(largest, min(1.0, (len(self.checks) - rank) * self.checks[place].p_value))
            corrected[place] = largest
        return tuple(corrected)

    @property
    def faults(self) -> tuple[Check, ...]:
        """What is wrong, and costs privacy."""
        return tuple(check for check in self._failed if check.harmful)

    @property
    def notes(self) -> tuple[Check, ...]:
        """What is not as assumed, and costs no privacy."""
        return tuple(check for check in self._failed if not check.harmful)

    @property
    def _failed(self) -> list[Check]:
        return [check for check, p in zip(self.checks, self.corrected, strict=True) if p <= self.level]

    def __str__(self) -> str:
        from tightaudit.render.terminal.checkup import checkup_view
        from tightaudit.render.terminal.tables import without_colours

        return without_colours(checkup_view(self))

    def _repr_html_(self) -> str:
        from tightaudit.render.notebook import as_html
        from tightaudit.render.terminal.checkup import checkup_view

        return as_html(checkup_view(self))


def _checks(bank: Bank, claim: DpSgd) -> Iterator[Check]:
    times = np.array([step.sampled for step in bank.transcript], dtype=np.int64)
    sampled = times > 0
    released = np.array([step.released for step in bank.transcript])
    yield _steps(bank.steps, claim.steps)
    yield _rate(sampled, claim.q)
    sizes = np.array([step.size for step in bank.transcript])
    batches = (sizes, bank.records) if bank.records else (sampled.sum(axis=1), bank.n)
    yield from _spread(sampled, batches)
    yield _once(times)
    contributed = np.zeros(released[:, 0].shape, dtype=bool)
    contributed[:, : bank.n] = sampled & bank.members
    noise = _Noise(released, contributed, claim.sigma)
    yield from noise.contribution()
    yield from noise.size()
    yield noise.repetition(np.append(~bank.members, np.ones(bank.controls, dtype=bool)))
    yield noise.between_tensors()
    yield noise.between_coordinates()
    yield noise.shape()


def _steps(taken: int, written: int) -> Check:
    return Check(
        "steps",
        f"{written:,}",
        f"{taken:,}",
        1.0 if taken <= written else 0.0,
        f"{taken:,} steps were taken and {written:,} accounted for",
    )


def _rate(sampled: BoolArray, rate: float) -> Check:
    total, seen = int(sampled.sum()), float(sampled.mean())
    return Check(
        "sampling rate",
        f"{rate:.4g}",
        f"{seen:.4g}",
        float(bdtrc(total - 1, sampled.size, rate)) if total else 1.0,
        f"records are sampled at the rate {seen:.4g}, not {rate:.4g}",
    )


def _spread(sampled: BoolArray, batches: tuple[NDArray[Any], int]) -> Iterator[Check]:
    """Whether each record is sampled by itself: counts over steps and over records vary as binomial ones do.

    Around the rate that was seen: whether it is the right one is another check.
    """
    sizes, records = batches
    for name, counts, trials, fault in (
        (
            "participation of a record",
            sampled.sum(axis=0),
            sampled.shape[0],
            "records take part equally often: batches are shuffled, not Poisson-sampled",
        ),
        ("size of a batch", sizes, records, "batches have a fixed size: they are not Poisson-sampled"),
    ):
        seen = float(counts.mean()) / trials
        if not 0 < seen < 1 or counts.size < _FEWEST:
            continue
        ratio, z = _dispersion(counts, trials, seen)
        more = f"{name}: it varies {ratio:.3g} times as much as Poisson sampling makes it"
        yield Check(
            f"{name}, spread",
            "1",
            f"{ratio:.3g}",
            min(1.0, 2 * float(ndtr(-abs(z)))),
            fault if ratio < 1 else more,
        )


def _once(times: NDArray[np.int64]) -> Check:
    again = int((times > 1).sum())
    return Check(
        "records used twice in a step",
        "0",
        f"{again:,}",
        0.0 if again else 1.0,
        "records are used more than once in a step: by several workers, or drawn with replacement",
    )


def _dispersion(counts: FloatArray, trials: int, rate: float) -> tuple[float, float]:
    """Squared deviations over their expectation, about 1, and how many standard deviations it is off."""
    variance = trials * rate * (1 - rate)
    squares = (counts - trials * rate) ** 2 / variance
    fourth = 3 + (1 - 6 * rate * (1 - rate)) / variance
    return float(squares.mean()), float((squares.mean() - 1) * math.sqrt(squares.size / (fourth - 1)))


@dataclass(frozen=True)
class _Noise:
    released: FloatArray
    """Steps × tensors × entries, in units of the clipping norm."""
    contributed: BoolArray
    """Steps × entries: where a canary is in it."""
    sigma: float

    @cached_property
    def _free(self) -> FloatArray:
        """What was released where no canary contributed: tensors × values."""
        return np.moveaxis(self.released, 1, 0)[:, ~self.contributed]

    @cached_property
    def _seen(self) -> float:
        return float(np.sqrt(np.mean(self._free**2)))

    def contribution(self) -> Iterator[Check]:
        with_canary = np.moveaxis(self.released, 1, 0)[:, self.contributed]
        if with_canary.size == 0:
            return
        length = float(along(with_canary).mean())
        deviation = self._seen / math.sqrt(with_canary.shape[1])
        z = (length - 1) / deviation
        per_tensor = abs(length - math.sqrt(TENSORS)) < min(0.1, 10 * deviation)
        why = ": clipping is per tensor" if per_tensor else ""
        yield Check(
            "contribution of a record",
            "1 C",
            f"{length:.3g} C",
            float(ndtr(-z)),
            f"contributions are {length:.3g} C{why}",
        )
        yield Check(
            "contribution, too small",
            "1 C",
            f"{length:.3g} C",
            float(ndtr(z)),
            f"contributions are {length:.3g} C: the clipping norm is not used up",
            harmful=False,
        )

    def size(self) -> Iterator[Check]:
        ratio, count = self._seen / self.sigma, self._free.size
        squares = count * ratio**2
        yield Check(
            "noise",
            f"{self.sigma:.4g}",
            f"{self._seen:.4g}",
            float(chdtr(count, squares)),
            f"the noise is {ratio:.2f} of what was asked for",
        )
        yield Check(
            "noise, too much",
            f"{self.sigma:.4g}",
            f"{self._seen:.4g}",
            float(chdtrc(count, squares)),
            f"the noise is {ratio:.2f} of what was asked for",
            harmful=False,
        )

    def repetition(self, never: BoolArray) -> Check:
        """Noise of coordinates that never carry a canary, averaged over the steps."""
        alone = self.released[:, :, never]
        steps = alone.shape[0]
        means = alone.mean(axis=0)
        squares = steps * float(np.sum(means**2)) / self._seen**2
        ratio = squares / means.size
        return Check(
            "noise between steps",
            "1",
            f"{ratio:.3g}",
            float(chdtrc(means.size, squares)) if steps > 1 else 1.0,
            f"noise repeats from step to step: its mean varies {ratio:.3g} times as much as it should",
        )

    def between_tensors(self) -> Check:
        one, other = self._free
        correlation = float(np.mean(one * other) / self._seen**2)
        return Check(
            "noise between tensors",
            "0",
            f"{correlation:.3g}",
            2 * float(ndtr(-abs(correlation) * math.sqrt(one.size))),
            f"the noise of two tensors is correlated ({correlation:.2f}): is it drawn from the same seed?",
        )

    def between_coordinates(self) -> Check:
        noise = np.where(self.contributed[:, None, :], 0.0, self.released)
        counts = np.maximum(1, (~self.contributed).sum(axis=1))[:, None]
        sums = noise.sum(axis=2) ** 2 / (counts * self._seen**2)
        return Check(
            "noise between coordinates",
            "1",
            f"{float(sums.mean()):.3g}",
            float(chdtrc(sums.size, float(sums.sum()))),
            "coordinates share noise: their sum varies more than independent noise makes it",
        )

    def shape(self) -> Check:
        values = self._free.reshape(-1)
        every = max(1, values.size // _MOST_DRAWN)
        p = float(kstest(values[::every] / self._seen, "norm").pvalue)
        return Check("shape of the noise", "Gaussian", "", p, "the noise is not Gaussian")
