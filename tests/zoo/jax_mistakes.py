"""Mistakes in trainings with JAX-Privacy, with independent or correlated noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import optax
from dp_accounting import GaussianDpEvent, NeighboringRelation
from jax_privacy import batch_selection
from jax_privacy.experimental.accounting import fixed_dpsgd_event
from jax_privacy.matrix_factorization import toeplitz
from tests.canaries.jax.trainings import NORM, RATE, REAL, SIGMA, STEPS, N, Training, factorized

EPOCHS = 5
CYCLE = STEPS // EPOCHS
COEFFICIENTS = np.asarray(toeplitz.optimal_max_error_strategy_coefs(STEPS))
MATRIX = np.asarray(toeplitz.materialize_lower_triangular(COEFFICIENTS))


@dataclass(frozen=True)
class JaxMistake:
    """A training with a mistake, where it was seen, and the words that name it; None if there are none."""

    name: str
    source: str
    training: Callable[[int], Training]
    named: str | None
    noted: bool = False


def _dpsgd(**fields: Any) -> Callable[[int], Training]:
    return lambda seed: Training(seed=seed, **fields)


def _factorized(noising: Any = None, **fields: Any) -> Callable[[int], Training]:
    made = np.linalg.inv(MATRIX) if noising is None else noising
    return lambda seed: factorized(MATRIX, made, epochs=EPOCHS, seed=seed, **fields)


def _divided(gradients: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf / (RATE * (N + REAL)), gradients)


def _one_key(stddev: float) -> optax.GradientTransformation:
    """Every leaf gets its noise from the same key."""

    def update(updates: Any, key: Any, _: Any = None) -> Any:
        key, now = jax.random.split(key)
        return jax.tree.map(lambda g: g + stddev * jax.random.normal(now, g.shape), updates), key

    return optax.GradientTransformation(lambda _: jax.random.key(1), update)


def _shuffled(count: int) -> Iterator[Any]:
    rng, size = np.random.default_rng(5), round(RATE * count)
    for _ in range(round(STEPS * RATE)):
        order = rng.permutation(count)
        yield from (order[start : start + size] for start in range(0, count, size))


def _reshuffled(count: int) -> Iterator[Any]:
    """A new order in every epoch, where the accountant takes records to come every so many steps."""
    rng = np.random.default_rng(5)
    for _ in range(EPOCHS):
        yield from np.array_split(rng.permutation(count), CYCLE)


def _more_steps(count: int) -> Iterator[Any]:
    sampling = batch_selection.CyclicPoissonSampling(sampling_prob=RATE, iterations=2 * STEPS)
    return sampling.batch_iterator(count, rng=5)


_FIXED = batch_selection.FixedBatchSampling(batch_size=round(RATE * (N + REAL)), iterations=STEPS)
_SINGLE = float(np.linalg.norm(MATRIX[:, 0]))
_BANDED = np.asarray(toeplitz.materialize_lower_triangular(COEFFICIENTS[:4], STEPS))

JAX_ZOO = (
    JaxMistake("none, DP-SGD", "", _dpsgd(), None),
    JaxMistake(
        "the privatizer's state thrown away: the same key in every step",
        "",
        _dpsgd(again=True),
        "noise repeats from step to step",
    ),
    JaxMistake(
        "the same key for every leaf",
        "JAX, pull request 3646",
        _dpsgd(privatizer=_one_key(SIGMA * NORM)),
        "the noise of two tensors is correlated",
    ),
    JaxMistake(
        "noise made for the mean, added to the sum",
        "Tramèr et al., arXiv 2202.12219",
        _dpsgd(stddev=SIGMA * NORM / (RATE * (N + REAL))),
        "the noise is 0.004",
    ),
    JaxMistake(
        "gradients divided by the batch size, noise made for the sum",
        "JAX-Privacy's example jax_api_example.py",
        _dpsgd(between=_divided),
        "contributions are",
        noted=True,
    ),
    JaxMistake(
        "shuffled batches accounted for as Poisson-sampled",
        "JAX-Privacy's example jax_api_example.py",
        _dpsgd(draw=_shuffled),
        "batches are shuffled",
    ),
    JaxMistake("twice as many steps as accounted for", "", _dpsgd(draw=_more_steps), "120 steps were taken"),
    JaxMistake("none, noise by a dense matrix", "", _factorized(), None),
    JaxMistake(
        "sensitivity of one participation where there are five",
        "JAX-Privacy, pull request 238",
        _factorized(stddev=NORM * _SINGLE),
        "of what was asked for",
    ),
    JaxMistake(
        "noise from a column of the matrix, not from a row",
        "",
        _factorized(np.linalg.inv(MATRIX).T.copy()),
        "not correlated as the strategy says",
    ),
    JaxMistake(
        "noise from the rows of the matrix one step ahead",
        "",
        _factorized(np.roll(np.linalg.inv(MATRIX), -1, axis=0)),
        "not correlated as the strategy says",
    ),
    JaxMistake(
        "noise by another strategy, with four bands",
        "",
        _factorized(np.linalg.inv(_BANDED)),
        "not correlated as the strategy says",
    ),
    JaxMistake(
        "independent noise of the size that is right for correlated noise",
        "",
        _factorized(np.eye(STEPS)),
        "not correlated as the strategy says",
    ),
    JaxMistake(
        "the same key in every step, correlated noise",
        "",
        _factorized(toeplitz.inverse_as_streaming_matrix(COEFFICIENTS), again=True),
        "noise repeats from step to step",
    ),
    JaxMistake(
        "records shuffled anew in every epoch",
        "",
        _factorized(draw=_reshuffled),
        "a record took part again after",
    ),
    JaxMistake(
        "control: noise made for replacing a record",
        "JAX-Privacy's example jax_api_example.py",
        _dpsgd(stddev=2 * SIGMA * NORM),
        None,
    ),
    JaxMistake(
        "control: batches of a fixed size, accounted for as such",
        "",
        _dpsgd(
            batches=_FIXED,
            event=fixed_dpsgd_event(SIGMA, STEPS, dataset_size=N + REAL, batch_size=_FIXED.batch_size),
            stddev=2 * SIGMA * NORM,
        ),
        None,
    ),
    JaxMistake(
        "control: balls in bins, accounted for without amplification",
        "",
        lambda seed: factorized(
            MATRIX,
            np.linalg.inv(MATRIX),
            epochs=EPOCHS,
            seed=seed,
            batches=batch_selection.BallsInBinsSampling(iterations=STEPS, cycle_length=CYCLE),
        ),
        None,
    ),
    JaxMistake(
        "control: independent noise accounted for as one Gaussian mechanism",
        "",
        _dpsgd(
            event=GaussianDpEvent(1.0),
            batches=batch_selection.CyclicPoissonSampling(
                sampling_prob=1, iterations=STEPS, cycle_length=CYCLE
            ),
            strategy=np.eye(STEPS),
            stddev=NORM * EPOCHS**0.5,
            relation=NeighboringRelation.REPLACE_SPECIAL,
        ),
        None,
    ),
)
