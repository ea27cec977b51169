"""What a JAX-Privacy training promises: the accountant's event, with its batches and its strategy.

| event | records take part | claim |
| --- | --- | --- |
| Poisson-sampled Gaussian, composed | sampled, in turns if the batches are cyclic | dp-sgd |
| Gaussian sampled without replacement, composed | sampled in batches of a fixed size | dp-sgd |
| Gaussian, once | in known steps, with a strategy | gaussian |
| Gaussian, composed | in known steps | gaussian |
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from dp_accounting import NeighboringRelation, dp_event as events
from jax_privacy import batch_selection, clipping
from jax_privacy.matrix_factorization import banded, buffered_toeplitz, sensitivity, streaming_matrix
from scipy.linalg import toeplitz

from tightaudit.canaries.accounted import Accounted, History, Together, as_history
from tightaudit.canaries.correlated import as_strategy
from tightaudit.canaries.participation import Participation, Pattern, Sampled
from tightaudit.claims.parts.composed import LARGEST_SIGMA
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

_EVENTS = (
    "a Gaussian event, alone, composed, Poisson-sampled or sampled without replacement, as functions of "
    "jax_privacy.accounting and jax_privacy.experimental.accounting make them"
)
_ROUNDING = 1e-7
"""Of the largest entry of a strategy: less is what inverting it has left."""


@dataclass(frozen=True)
class Promise:
    """What the accountant assumes, and so promises."""

    accounted: Accounted
    participation: Participation
    sigmas: tuple[float, ...]
    """The noise of each step, over what a record contributes."""
    rates: tuple[float, ...]
    """How often a record is sampled when it is its turn, step by step."""
    strategy: FloatArray | None = None

    @property
    def steps(self) -> int:
        """The steps that were planned."""
        return len(self.sigmas)


@dataclass(frozen=True)
class _Stretch:
    """Steps that are alike, as an event has them."""

    sigma: float
    rate: float
    steps: int
    sampled: bool
    fixed_size: bool = False


def promise(
    event: object,
    *,
    batches: object = None,
    strategy: Any = None,
    relation: NeighboringRelation | None = None,
    steps: int | None = None,
) -> Promise:
    """What is promised to a record that is there or not.

    >>> from jax_privacy.experimental.accounting import dpsgd_event
    >>> made = promise(dpsgd_event(1.1, 200, sampling_prob=0.1))
    >>> made.accounted, made.participation, made.steps
    (((1.1, 0.1, 200),), Sampled(cycle=1, fixed_size=False), 200)
    """
    stretches = list(_stretches(event, 1))
    for stretch in stretches:
        checks.positive("event: noise_multiplier", stretch.sigma, maximum=LARGEST_SIGMA)
    fixed = any(stretch.fixed_size for stretch in stretches)
    if relation is None:
        relation = NeighboringRelation.REPLACE_ONE if fixed else NeighboringRelation.ADD_OR_REMOVE_ONE
    # Canaries are there or not. Where a record may be replaced, the noise is made for twice as much.
    per_record = clipping.BoundedSensitivityCallable(lambda: None, 1.0, has_aux=False).sensitivity(relation)
    stretches = [replace(stretch, sigma=stretch.sigma * per_record) for stretch in stretches]
    sampled = {stretch.sampled for stretch in stretches}
    if len(sampled) > 1:
        raise InputError("event", "one with and without sampling", "steps that are all sampled, or none")
    if sampled == {True}:
        return _sampled(stretches, batches, strategy, fixed_size=fixed)
    return _known(stretches, batches, strategy, steps)


def _stretches(event: object, times: int) -> Any:
    match event:
        case events.SelfComposedDpEvent():
            yield from _stretches(event.event, times * event.count)
        case events.ComposedDpEvent() if times == 1:
            for part in event.events:
                yield from _stretches(part, 1)
        case events.GaussianDpEvent():
            yield _Stretch(float(event.noise_multiplier), 1.0, times, sampled=False)
        case events.PoissonSampledDpEvent(event=events.GaussianDpEvent()):
            rate, sigma = float(event.sampling_probability), float(event.event.noise_multiplier)
            yield _Stretch(sigma, rate, times, sampled=True)
        case events.SampledWithoutReplacementDpEvent(event=events.GaussianDpEvent()):
            rate = event.sample_size / event.source_dataset_size
            yield _Stretch(float(event.event.noise_multiplier), rate, times, sampled=True, fixed_size=True)
        case events.TruncatedSubsampledGaussianDpEvent():
            reason = "no claim here says what truncated batches promise"
            raise InputError("event", type(event).__name__, f"{_EVENTS}: {reason}")
        case events.SampledWithReplacementDpEvent():
            reason = "drawn with replacement, a record can count several times in a step"
            raise InputError("event", type(event).__name__, f"{_EVENTS}: {reason}")
        case _:
            raise InputError("event", type(event).__name__, _EVENTS)


def _sampled(stretches: list[_Stretch], batches: Any, strategy: Any, *, fixed_size: bool) -> Promise:
    history: History = as_history((part.sigma, part.rate, part.steps) for part in stretches)
    rounds = sum(part.steps for part in stretches)
    expected = batch_selection.FixedBatchSampling if fixed_size else batch_selection.CyclicPoissonSampling
    if batches is not None and not isinstance(batches, expected):
        asked = (
            f"{expected.__name__}, as the event says; or leave it out and let the check-up see the batches"
        )
        raise InputError("batches", type(batches).__name__, asked)
    if getattr(batches, "truncated_batch_size", None) is not None:
        raise InputError("batches", "truncated ones", "batches as they were sampled, as the event says")
    if getattr(batches, "replace", False):
        raise InputError("batches", "drawn with replacement", "replace=False, as the event says")
    cycle = getattr(batches, "cycle_length", 1)
    steps = rounds if batches is None else batches.iterations
    if rounds != -(-steps // cycle):
        asked = f"{-(-steps // cycle)} composed steps: in {steps} steps a record's turn comes every {cycle}"
        raise InputError("event", f"one of {rounds} steps", asked)
    turn = np.minimum(np.arange(steps) // cycle, rounds - 1)
    sigmas = np.repeat([part.sigma for part in stretches], [part.steps for part in stretches])[turn]
    rates = np.repeat([part.rate for part in stretches], [part.steps for part in stretches])[turn]
    matrix = None
    if strategy is not None:
        if batches is None:
            asked = "the CyclicPoissonSampling that gives each record its turn, as the event relies on it"
            raise InputError("batches", None, asked)
        matrix = as_matrix(strategy, steps)
        bands = int(max(np.subtract(*np.nonzero(matrix)))) + 1
        if bands > cycle:
            asked = f"at most {cycle} bands: records take turns every {cycle} steps, as the event relies on"
            raise InputError("strategy", f"one with {bands} bands", asked)
        sigmas = sigmas * float(np.linalg.norm(matrix, axis=0).max())
    return Promise(
        history,
        Sampled(cycle, fixed_size),
        tuple(sigmas.tolist()),
        tuple(rates.tolist()),
        matrix,
    )


def _known(stretches: list[_Stretch], batches: Any, strategy: Any, steps: int | None) -> Promise:
    counted = sum(part.steps for part in stretches)
    pattern, in_turns = _pattern(batches)
    if strategy is None:
        sigmas = np.repeat([part.sigma for part in stretches], [part.steps for part in stretches])
        together = Together(float(1 / np.sqrt(np.sum(sigmas**-2.0))), counted, tuple(sigmas.tolist()))
        return Promise(together, pattern, tuple(sigmas.tolist()), (1.0,) * counted)
    if counted > 1:
        asked = "one Gaussian event: with a strategy all steps count together"
        raise InputError("event", f"{counted} composed ones", asked)
    planned = (steps, getattr(batches, "iterations", None), getattr(strategy, "n", None))
    steps = next((each for each in planned if each is not None), None)
    if steps is None and np.ndim(strategy) == 2:
        steps = len(strategy)
    if steps is None:
        raise InputError("steps", None, "the number of steps: neither event, batches nor strategy say it")
    matrix = as_matrix(strategy, checks.count("steps", steps, minimum=1))
    sigma = stretches[0].sigma
    noise = sigma * largest_length(matrix, pattern, in_turns=in_turns)
    return Promise(Together(sigma, steps), pattern, (noise,) * steps, (1.0,) * steps, matrix)


def _pattern(batches: Any) -> tuple[Pattern, bool]:
    """The participations that batches allow, and whether they come in turns, each after `min_sep` steps."""
    match batches:
        case None:
            return Pattern(), False
        case Pattern():
            return batches, False
        case _ if getattr(batches, "truncated_batch_size", None) is not None:
            raise InputError("batches", "truncated ones", "batches as they were sampled, as the event says")
        case batch_selection.CyclicPoissonSampling() | batch_selection.BallsInBinsSampling():
            return Pattern(batches.cycle_length), True
        case batch_selection.BMinSepSampling():
            return Pattern(batches.min_sep), False
        case batch_selection.FixedBatchSampling(replace=False):
            return Pattern(), False
        case batch_selection.FixedBatchSampling():
            asked = "replace=False: drawn with replacement, a record can count several times in a step"
            raise InputError("batches", "drawn with replacement", asked)
        case _:
            asked = "a batch selection strategy of JAX-Privacy for records, or a Pattern(min_sep=…)"
            raise InputError("batches", type(batches).__name__, asked)


def as_matrix(strategy: Any, steps: int) -> FloatArray:
    """A strategy as a matrix of as many steps as there are.

    >>> as_matrix([1.0, 0.5], 3)
    array([[1. , 0. , 0. ],
           [0.5, 1. , 0. ],
           [0. , 0.5, 1. ]])
    """
    with jax.enable_x64():
        if isinstance(strategy, streaming_matrix.StreamingMatrix):
            matrix = np.linalg.inv(np.asarray(strategy.materialize(steps), dtype=np.float64))
            matrix[np.abs(matrix) < _ROUNDING * np.abs(matrix).max()] = 0
            return as_strategy(matrix)
        if isinstance(strategy, buffered_toeplitz.BufferedToeplitz):
            strategy = strategy.materialize(steps)
        elif isinstance(strategy, banded.ColumnNormalizedBanded):
            strategy = strategy.materialize()
    found = np.asarray(strategy, dtype=np.float64)
    if found.ndim == 1 and found.size:
        column = np.zeros(max(steps, found.size))
        column[: found.size] = found
        found = toeplitz(column[:steps], np.zeros(steps))
    matrix = as_strategy(found)
    if len(matrix) < steps:
        raise InputError("steps", steps, f"at most {len(matrix)}, as the strategy is made for")
    return matrix[:steps, :steps]


def largest_length(matrix: FloatArray, pattern: Pattern, *, in_turns: bool) -> float:
    """The sensitivity: how long what a record leaves can be, all of its participations together.

    >>> largest_length(np.eye(6), Pattern(min_sep=2), in_turns=True) ** 2
    2.9999999999999996
    """
    steps = len(matrix)
    gram = np.abs(matrix.T @ matrix)
    if in_turns:
        turns = [np.arange(start, steps, pattern.min_sep) for start in range(pattern.min_sep)]
        return float(np.sqrt(max(gram[np.ix_(turn, turn)].sum() for turn in turns)))
    column = matrix[:, 0]
    if (
        np.allclose(matrix, toeplitz(column, np.zeros(steps)))
        and (column >= 0).all()
        and (np.diff(column) <= 0).all()
    ):
        # The worst pattern of a decreasing Toeplitz matrix is the closest and the earliest one.
        worst = np.arange(pattern.most(steps)) * pattern.min_sep
        return float(np.sqrt(gram[np.ix_(worst, worst)].sum()))
    return float(
        sensitivity.get_min_sep_sensitivity_upper_bound_for_X(
            gram, min_sep=pattern.min_sep, max_participations=pattern.most(steps)
        )
    )
