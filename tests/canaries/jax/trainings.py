"""A small training with JAX-Privacy and canaries among its records, of which every part can be replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import dp_accounting
import jax
import jax_privacy
import numpy as np
import optax
from jax import numpy as jnp
from jax_privacy import batch_selection, noise_addition
from jax_privacy.experimental.accounting import dpsgd_event
from jax_privacy.matrix_factorization import buffered_toeplitz, dense, toeplitz

from tightaudit.canaries.jax import RecordCanaries
from tightaudit.canaries.jax.promises import as_matrix, largest_length
from tightaudit.canaries.participation import Pattern

SIGMA, NORM, N, REAL, RATE, STEPS = 1.0, 1.0, 600, 600, 0.2, 60
PADDED = 64


def loss(params: Any, inputs: Any, targets: Any) -> Any:
    """Of a logistic regression, on average over the records given."""
    logits = inputs @ params["weights"] + params["bias"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


@dataclass
class Training:
    """DP-SGD with Poisson sampling; fields are replaced to get another training, or a mistake in it."""

    seed: int = 0
    n: int = N
    real: int = REAL
    event: Any = None
    batches: Any = None
    """What the canaries are told of."""
    strategy: Any = None
    relation: Any = None
    draw: Callable[[int], Iterator[Any]] | None = None
    """The batches that are trained with, if not those."""
    stddev: float = SIGMA * NORM
    noising: Any = None
    """The matrix that noise is made by, if it is correlated."""
    privatizer: Any = None
    between: Callable[[Any], Any] = field(default=lambda gradients: gradients)
    """What happens to gradients between clipping and noise."""
    again: bool = False
    """Whether the privatizer begins anew in each step."""
    options: dict[str, Any] = field(default_factory=dict)
    """For `clipped_grad`."""
    after_step: Callable[[Any], object] = field(default=lambda _: None)
    """What is told of the state after each step."""

    def __post_init__(self) -> None:
        if self.batches is None:
            self.batches = batch_selection.CyclicPoissonSampling(sampling_prob=RATE, iterations=STEPS)
        if self.event is None:
            self.event = dpsgd_event(SIGMA, STEPS, sampling_prob=RATE)
        self.canaries = RecordCanaries(self.n, seed=self.seed)

    def run(self) -> Any:
        """Train, and return the privatizer's last state."""
        rng = np.random.default_rng(self.seed)
        inputs = rng.standard_normal((self.real, 20)).astype(np.float32)
        data, ids = self.canaries.join((inputs, (inputs[:, 0] > 0).astype(np.int32)))
        params: Any = self.canaries.plant({"weights": jnp.zeros((20, 2)), "bias": jnp.zeros(2)})
        options = {"l2_clip_norm": NORM, "batch_argnums": (1, 2), **self.options}
        gradients = jax_privacy.clipped_grad(self.canaries.loss(loss), **options)
        if self.privatizer is None:
            made = noise_addition.gaussian_privatizer
            if self.noising is not None:
                made = noise_addition.matrix_factorization_privatizer
            given = () if self.noising is None else (self.noising,)
            self.privatizer = made(*given, stddev=self.stddev, prng_key=self.seed)
        privatizer = self.canaries.watch(
            self.privatizer,
            gradients=gradients,
            event=self.event,
            batches=self.batches,
            strategy=self.strategy,
            relation=self.relation,
        )
        state = privatizer.init(params)
        inner = state.inner

        # A state that is handed over need not be copied in every step.
        @partial(jax.jit, donate_argnums=() if self.again else (1,))
        def step(params: Any, state: Any, batch: Any, ids: Any, padding: Any) -> Any:
            summed = gradients(params, *batch, ids=ids, is_padding_example=padding)
            noisy, state = privatizer.update(self.between(summed), state, ids=ids, is_padding_example=padding)
            return jax.tree.map(lambda p, g: p - 0.001 * g, params, noisy), state

        draw = self.draw or (lambda count: self.batches.batch_iterator(count, rng=self.seed + 1000))
        for indices in draw(len(ids)):
            padded = batch_selection.pad_to_multiple_of(np.asarray(indices), PADDED)
            batch = jax.tree.map(lambda leaf, rows=padded: leaf[rows], data)
            params, state = step(params, state, batch, ids[padded], padded == -1)
            self.after_step(state)
            if self.again:
                state = state._replace(inner=inner)
        self.params = params
        return state


def factorized(
    strategy: Any, noising: Any, *, mu: float = 1.0, epochs: int = 5, steps: int = STEPS, **named: Any
) -> Training:
    """Noise made by a matrix, records in turns, all steps together one Gaussian mechanism."""
    cycle = steps // epochs
    batches = batch_selection.CyclicPoissonSampling(sampling_prob=1, iterations=steps, cycle_length=cycle)
    length = largest_length(as_matrix(strategy, steps), Pattern(cycle), in_turns=True)
    given = {
        "event": dp_accounting.GaussianDpEvent(1 / mu),
        "batches": batches,
        "strategy": strategy,
        "noising": noising,
        "stddev": NORM * length / mu,
        **named,
    }
    return Training(**given)


@cache
def strategy_of(name: str, steps: int, epochs: int) -> tuple[Any, Any]:
    """A matrix that JAX-Privacy works out for records in turns, and what it makes noise by."""
    with jax.enable_x64():
        if name == "dense":
            matrix = np.asarray(dense.optimize(steps, epochs=epochs))
            return matrix, np.linalg.inv(matrix).astype(np.float32)
        if name == "buffered":
            made = buffered_toeplitz.optimize(n=steps, min_sep=steps // epochs, max_participations=epochs)
            buffers = np.asarray(made.buf_decay), np.asarray(made.output_scale)
    if name == "buffered":
        single = buffered_toeplitz.BufferedToeplitz.build(*buffers, dtype=jnp.float32)
        return as_matrix(made, steps), single.inverse_as_streaming_matrix()
    if name == "banded":
        coefficients = toeplitz.optimize_banded_toeplitz(n=steps, bands=steps // epochs)
    else:
        coefficients = toeplitz.optimal_max_error_strategy_coefs(steps)
    return as_matrix(coefficients, steps), toeplitz.inverse_as_streaming_matrix(coefficients)
