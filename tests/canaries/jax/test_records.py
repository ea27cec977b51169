"""Canaries in trainings with JAX-Privacy: what they contribute, what is recorded, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import dp_accounting
import jax
import jax_privacy
import numpy as np
import optax
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, dp_event
from jax import numpy as jnp
from jax_privacy import batch_selection, noise_addition
from jax_privacy.experimental.accounting import (
    amplified_bandmf_event,
    dpsgd_event,
    fixed_dpsgd_event,
    truncated_dpsgd_event,
)
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig
from jax_privacy.matrix_factorization import banded, buffered_toeplitz, dense, sensitivity, toeplitz
from tests.canaries.jax.trainings import NORM, RATE, SIGMA, STEPS, N, Training, factorized, loss

import tightaudit as ta
from tightaudit.canaries.accounted import claim_of
from tightaudit.canaries.bank import Bank, Design
from tightaudit.canaries.jax import Pattern, RecordCanaries
from tightaudit.canaries.jax.planted import Planted
from tightaudit.canaries.jax.promises import as_matrix, largest_length, promise
from tightaudit.canaries.participation import Sampled
from tightaudit.canaries.transcript import Step

pytestmark = pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")

PARAMS = {"weights": jnp.zeros((20, 2)), "bias": jnp.zeros(2)}
POISSON = batch_selection.CyclicPoissonSampling(sampling_prob=RATE, iterations=STEPS)
EVENT = dpsgd_event(SIGMA, STEPS, sampling_prob=RATE)
ARGUMENTS = {"l2_clip_norm": 0.7, "batch_argnums": (1, 2)}


def privatizer(stddev: float = 0.7, key: int = 1) -> Any:
    return noise_addition.gaussian_privatizer(stddev=stddev, prng_key=key)


def as_saved(leaf: Any) -> Any:
    key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if key else leaf)


def data(count: int) -> Any:
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((count, 20)).astype(np.float32)
    return inputs, (inputs[:, 0] > 0).astype(np.int32)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keep_batch_dim": False},
        {"rescale_to_unit_norm": True},
        {"normalize_by": 32.0},
        {"microbatch_size": 4},
        {"return_values": True, "return_grad_norms": True},
        {"dtype": jnp.float32},
        {"l2_clip_norm": 50.0},
    ],
    ids=str,
)
def test_a_canary_that_is_in_contributes_one_norm_at_its_entries(options: dict[str, Any]) -> None:
    canaries = RecordCanaries(12, seed=3)
    (inputs, targets), ids = canaries.join(data(20))
    gradients = jax_privacy.clipped_grad(canaries.loss(loss), **{**ARGUMENTS, **options})
    rows = np.array([0, 1, 2, 3, 4, 5, 6, 20, 25, 30, 31, -1])
    padding = np.zeros(12, bool)
    padding[[6, 11]] = True
    found = jax.jit(gradients)(
        canaries.plant(PARAMS), inputs[rows], targets[rows], ids=ids[rows], is_padding_example=padding
    )
    released = (found[0] if isinstance(found, tuple) and not isinstance(found, Planted) else found).bank
    members = Bank(Design.of(12, seed=3)).members
    expected = np.zeros(Design.of(12).entries)
    expected[:6] = members[:6] * gradients.l2_norm_bound / np.sqrt(2)
    for tensor in released:
        assert np.asarray(tensor) == pytest.approx(expected, rel=1e-5)


def test_the_model_learns_from_real_records_alone() -> None:
    canaries = RecordCanaries(12, seed=3)
    inputs, targets = data(20)
    (joined, labels), ids = canaries.join((inputs, targets))
    own = jax_privacy.clipped_grad(canaries.loss(loss), **ARGUMENTS)
    plain = jax_privacy.clipped_grad(loss, **ARGUMENTS)
    found = own(canaries.plant(PARAMS), joined, labels, ids=ids).model
    expected = plain(PARAMS, inputs, targets)
    for name in PARAMS:
        assert np.asarray(found[name]) == pytest.approx(np.asarray(expected[name]), rel=1e-5, abs=1e-6)


def test_values_beside_the_loss_are_handed_on() -> None:
    canaries = RecordCanaries(5, seed=3)
    (inputs, targets), ids = canaries.join(data(4))

    def with_aux(params: Any, inputs: Any, targets: Any) -> Any:
        return loss(params, inputs, targets), {"rows": inputs.sum()}

    wrapped = canaries.loss(with_aux, has_aux=True)
    gradients = jax_privacy.clipped_grad(wrapped, has_aux=True, **ARGUMENTS)
    _, aux = gradients(canaries.plant(PARAMS), inputs, targets, ids=ids)
    assert np.asarray(aux.aux["rows"]) == pytest.approx(inputs.sum(axis=1), rel=1e-4)


def test_what_is_recorded_is_what_was_released() -> None:
    """And who was in the batch, padding apart; all in the state, with no call to the host."""
    canaries = RecordCanaries(12, seed=3)
    (inputs, targets), ids = canaries.join(data(20))
    gradients = jax_privacy.clipped_grad(canaries.loss(loss), **ARGUMENTS)
    watched = canaries.watch(privatizer(), gradients=gradients, event=EVENT)
    params = canaries.plant(PARAMS)

    def step(state: Any, rows: Any) -> Any:
        padding = rows == -1
        summed = gradients(params, inputs[rows], targets[rows], ids=ids[rows], is_padding_example=padding)
        noisy, state = watched.update(summed, state, ids=ids[rows], is_padding_example=padding)
        return state, noisy.bank

    rows = np.array([[0, 5, 30, -1], [7, 8, 9, 10], [20, 21, -1, -1]])
    inputs, targets, ids = jnp.asarray(inputs), jnp.asarray(targets), jnp.asarray(ids)
    state, released = jax.lax.scan(step, watched.init(params), rows)
    assert int(state.step) == 3
    assert np.asarray(state.released)[:3] == pytest.approx(np.stack(released, axis=1), rel=1e-6)
    assert not np.asarray(state.released)[3:].any()
    assert [np.flatnonzero(row).tolist() for row in np.asarray(state.sampled)[:3]] == [
        [0, 5],
        [7, 8, 9, 10],
        [],
    ]
    assert np.asarray(state.size)[:3].tolist() == [3, 4, 2]
    primitives = str(jax.make_jaxpr(step)(watched.init(params), rows[0]))
    assert "callback" not in primitives
    bank = Bank.of(canaries.run(state).transcript or {})
    assert next(iter(bank.transcript)).released == pytest.approx(
        np.asarray(state.released)[0] / 0.7, rel=1e-6
    )


def test_inside_an_optimizer_and_from_a_checkpoint() -> None:
    """A chain hands the ids on; a state that was saved is read by canaries of the same seed only."""
    canaries = RecordCanaries(30, seed=3)
    (inputs, targets), ids = canaries.join(data(20))
    gradients = jax_privacy.clipped_grad(canaries.loss(loss), **ARGUMENTS)
    watched = canaries.watch(privatizer(), gradients=gradients, event=EVENT, batches=POISSON)
    optimizer = optax.chain(watched, optax.adam(1e-3))
    params = canaries.plant(PARAMS)
    state = optimizer.init(params)

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        summed = gradients(params, inputs, targets, ids=ids)
        updates, state = optimizer.update(summed, state, params, ids=ids)
        return optax.apply_updates(params, updates), state

    for _ in range(4):
        params, state = step(params, state)
    saved = pickle.loads(pickle.dumps(jax.tree.map(as_saved, state)))
    run = canaries.run(saved)
    assert (run.scores == canaries.run(state).scores).all()
    assert str(canaries.claim(state)) == "dp-sgd(sigma=1,q=0.2,steps=4)"
    other = RecordCanaries(30, seed=4)
    other.watch(privatizer(), gradients=gradients, event=EVENT)
    with pytest.raises(ta.InputError, match="state=one of canaries with another seed"):
        other.run(saved)
    with pytest.raises(ta.InputError, match="state=one with 0 watched privatizers"):
        canaries.run({"adam": 1})


def test_both_adapters_score_a_transcript_alike() -> None:
    """The state of the one and the bank of the other, given the same numbers."""
    training = Training(seed=2, n=300)
    state = training.run()
    found = training.canaries.run(state)
    bank = Bank(replace(Design.of(300, seed=2), tensors=2), records=900)
    for number in range(STEPS):
        released = np.asarray(state.released)[number].astype(np.float64) / NORM
        sampled = np.asarray(state.sampled)[number]
        bank.record(Step(sampled, released, sigma=SIGMA, rate=RATE, accounted=number + 1))
    expected = bank.run(((SIGMA, RATE, STEPS),), score="log-likelihood-ratio", why="a test", source="")
    assert found.scores == pytest.approx(expected.scores, rel=1e-10)
    assert (found.members == expected.members).all()
    assert found.claim == expected.claim


def test_the_first_steps_alone() -> None:
    training = Training(seed=1, n=50, real=50)
    training.canaries = RecordCanaries(50, seed=1, first_steps=5)
    state = training.run()
    assert np.asarray(state.released).shape[0] == 5
    assert int(state.step) == STEPS
    assert str(training.canaries.claim(state)) == "dp-sgd(sigma=1,q=0.2,steps=5)"
    assert not training.canaries.checkup(state).faults


def test_parameters_in_half_precision() -> None:
    training = Training(seed=1, n=300, real=300)
    training.canaries.plant({"weights": jnp.zeros(3, jnp.bfloat16)})
    assert training.canaries.plant({"w": jnp.zeros(3, jnp.bfloat16)}).bank[0].dtype == jnp.bfloat16


def test_an_execution_plan() -> None:
    """Its gradients and its noise have canaries; the claim is that of its event."""
    config = BandMFExecutionPlanConfig(
        iterations=40,
        strategy=np.array([0.9, 0.4, 0.15]),
        epsilon=None,
        delta=None,
        noise_multiplier=0.8,
        sampling_prob=0.4,
        l2_clip_norm=0.5,
        normalize_by=100.0,
        noise_seed=5,
    )
    canaries = RecordCanaries(600, seed=5)
    plan = canaries.plan(config)
    (inputs, targets), ids = canaries.join(data(600))
    params = canaries.plant(PARAMS)
    gradients = plan.clipped_grad(loss, batch_argnums=(1, 2))
    state = plan.noise_addition_transform.init(params)

    @jax.jit
    def step(params: Any, state: Any, rows: Any) -> Any:
        padding, known = rows == -1, jnp.asarray(ids)[rows]
        batch = jnp.asarray(inputs)[rows], jnp.asarray(targets)[rows]
        summed = gradients(params, *batch, ids=known, is_padding_example=padding)
        return plan.noise_addition_transform.update(summed, state, ids=known, is_padding_example=padding)

    for rows in plan.batch_selection_strategy.batch_iterator(len(ids), rng=5):
        _, state = step(params, state, batch_selection.pad_to_multiple_of(rows, 64))
    run = canaries.run(state)
    assert str(run.claim) == "dp-sgd(sigma=0.8,q=0.4,steps=14)"
    assert run.checkup is not None
    assert run.checkup.faults == run.checkup.notes == ()
    assert ta.audit(run, delta=1e-5).violated is False
    with pytest.raises(ta.InputError, match="config=DPExecutionPlan: expected a BandMFExecutionPlanConfig"):
        canaries.plan(config.plan)


@pytest.mark.parametrize("kind", ["dense", "toeplitz", "banded", "buffered", "streamed"])
def test_noise_by_every_strategy_is_white_when_it_is_seen_through_it(kind: str) -> None:
    """JAX-Privacy makes the noise, from the strategy or from its inverse as a stream."""
    steps, epochs = 40, 4
    if kind == "dense":
        with jax.enable_x64():
            strategy = np.asarray(dense.optimize(steps, epochs=epochs, max_optimizer_steps=50))
        noising: Any = np.linalg.inv(strategy)
    elif kind == "toeplitz":
        strategy = np.asarray(toeplitz.optimal_max_error_strategy_coefs(steps))
        noising = toeplitz.inverse_as_streaming_matrix(jnp.asarray(strategy))
    elif kind == "banded":
        strategy = banded.ColumnNormalizedBanded.default(steps, 5)
        noising = strategy.inverse_as_streaming_matrix()
    elif kind == "buffered":
        with jax.enable_x64():
            strategy = buffered_toeplitz.BufferedToeplitz.build([0.9, 0.3], [0.2, 0.1])
        inverse = buffered_toeplitz.BufferedToeplitz.build([0.9, 0.3], [0.2, 0.1], dtype=jnp.float32)
        noising = inverse.inverse_as_streaming_matrix()
    else:
        strategy = toeplitz.inverse_as_streaming_matrix(jnp.asarray([0.9, 0.4, 0.15]))
        noising = strategy
    training = factorized(strategy, noising, mu=2.0, epochs=epochs, steps=steps, seed=3, real=100)
    run = training.canaries.run(training.run())
    assert run.checkup is not None
    assert run.checkup.faults == run.checkup.notes == ()
    assert run.claim == ta.Gaussian(2.0)
    report = ta.audit(run, delta=1e-5)
    assert not report.violated
    assert report.epsilon is not None
    assert report.epsilon > 0.7 * ta.Gaussian(2.0).epsilon(1e-5)


def test_sensitivity_against_brute_force_and_jax_privacy() -> None:
    steps = 7
    rng = np.random.default_rng(1)
    decreasing = as_matrix(np.array([1.0, 0.7, 0.5, 0.2]), steps)
    general = np.tril(rng.random((steps, steps))) + np.eye(steps)
    for matrix, (apart, most) in product((decreasing, general), ((1, None), (2, None), (3, 2), (2, 2))):
        pattern, lengths = Pattern(apart, most), []
        for places in product([0, 1], repeat=steps):
            taken = np.flatnonzero(places)
            if len(taken) <= pattern.most(steps) and (np.diff(taken) >= apart).all():
                lengths.append(float(np.linalg.norm(matrix @ np.array(places))))
        found = largest_length(matrix, pattern, in_turns=False)
        if matrix is decreasing:
            assert found == pytest.approx(max(lengths), rel=1e-6)
        else:
            assert max(lengths) <= found + 1e-6
    matrix = np.asarray(toeplitz.materialize_lower_triangular(jnp.asarray([1.0, 0.5, 0.3, 0.1, 0.1, 0.05])))
    own = largest_length(matrix, Pattern(3), in_turns=True)
    with jax.enable_x64():
        expected = sensitivity.fixed_epoch_sensitivity(jnp.asarray(matrix), epochs=2)
    assert own == pytest.approx(expected, rel=1e-6)


CYCLIC = batch_selection.CyclicPoissonSampling(sampling_prob=0.4, iterations=40, cycle_length=4)
FIXED = batch_selection.FixedBatchSampling(batch_size=20, iterations=50)


@pytest.mark.parametrize(
    ("event", "batches", "strategy", "claim", "participation"),
    [
        (EVENT, None, None, "dp-sgd(sigma=1,q=0.2,steps=60)", Sampled()),
        (EVENT, POISSON, None, "dp-sgd(sigma=1,q=0.2,steps=60)", Sampled()),
        (
            amplified_bandmf_event(2.0, 40, num_bands=4, sampling_prob=0.4),
            CYCLIC,
            [1.0, 0.5, 0.2, 0.1],
            "dp-sgd(sigma=2,q=0.4,steps=10)",
            Sampled(4),
        ),
        (
            fixed_dpsgd_event(1.0, 50, dataset_size=100, batch_size=20),
            FIXED,
            None,
            "dp-sgd(sigma=2,q=0.2,steps=50)",
            Sampled(fixed_size=True),
        ),
        (GaussianDpEvent(0.5), CYCLIC, [1.0, 0.5], "gaussian(mu=2)", Pattern(4)),
        (
            GaussianDpEvent(0.5),
            batch_selection.BallsInBinsSampling(iterations=40, cycle_length=5),
            [1.0, 0.5],
            "gaussian(mu=2)",
            Pattern(5),
        ),
        (
            GaussianDpEvent(0.5),
            batch_selection.BMinSepSampling(sampling_prob=0.5, iterations=40, min_sep=6),
            [1.0, 0.5],
            "gaussian(mu=2)",
            Pattern(6),
        ),
        (GaussianDpEvent(0.5), FIXED, [1.0, 0.5], "gaussian(mu=2)", Pattern(1)),
        (GaussianDpEvent(0.5), Pattern(3, 2), np.eye(9), "gaussian(mu=2)", Pattern(3, 2)),
        (dp_event.SelfComposedDpEvent(GaussianDpEvent(4.0), 16), None, None, "gaussian(mu=1)", Pattern()),
        (
            dp_event.ComposedDpEvent(
                [dpsgd_event(1.0, 5, sampling_prob=0.2), dpsgd_event(2.0, 5, sampling_prob=0.2)]
            ),
            None,
            None,
            "dp-sgd-schedule(factor=1,sigma=[1,2],q=[0.2,0.2],steps=[5,5])",
            Sampled(),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_what_is_promised(event: Any, batches: Any, strategy: Any, claim: str, participation: Any) -> None:
    made = promise(event, batches=batches, strategy=None if strategy is None else np.array(strategy))
    assert made.participation == participation
    bank = Bank(replace(Design.of(10, seed=1), participation=participation), strategy=made.strategy)
    cycle = getattr(participation, "cycle", 1)
    for number in range(made.steps):
        bank.record(
            Step(
                np.ones(10),
                np.ones((2, bank.design.entries)),
                sigma=made.sigmas[number],
                rate=made.rates[number],
                accounted=number // cycle + 1,
            )
        )
    assert str(bank.claim(made.accounted)) == claim


def test_the_relation_says_what_noise_is_made_for() -> None:
    made = promise(EVENT, relation=NeighboringRelation.REPLACE_ONE)
    assert made.sigmas[0] == 2 * SIGMA
    composed = promise(dp_event.SelfComposedDpEvent(GaussianDpEvent(4.0), 16)).accounted
    assert claim_of(composed, 4) == ta.Gaussian(0.5)
    assert promise(EVENT, relation=NeighboringRelation.REPLACE_SPECIAL).sigmas[0] == SIGMA


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"event": 3}, "event=int: expected a Gaussian event"),
        ({"event": dp_accounting.LaplaceDpEvent(1.0)}, "event=LaplaceDpEvent"),
        (
            {
                "event": truncated_dpsgd_event(
                    1.0, 5, sampling_prob=0.1, num_examples=100, truncated_batch_size=20
                )
            },
            "no claim here says what truncated batches promise",
        ),
        (
            {"event": fixed_dpsgd_event(1.0, 5, dataset_size=9, batch_size=2, replace=True)},
            "drawn with replacement, a record can count several times",
        ),
        ({"event": GaussianDpEvent(0.0)}, "event: noise_multiplier=0.0"),
        ({"event": EVENT, "batches": FIXED}, "batches=FixedBatchSampling: expected CyclicPoissonSampling"),
        (
            {"event": EVENT, "batches": replace(POISSON, truncated_batch_size=30)},
            "batches=truncated ones",
        ),
        ({"event": EVENT, "strategy": np.eye(60)}, "batches=None: expected the CyclicPoissonSampling"),
        (
            {"event": dpsgd_event(1.0, 40, sampling_prob=0.4), "batches": CYCLIC},
            "event=one of 40 steps: expected 10 composed steps",
        ),
        (
            {
                "event": GaussianDpEvent(1.0),
                "batches": replace(CYCLIC, truncated_batch_size=3),
                "strategy": np.eye(40),
            },
            "batches=truncated ones",
        ),
        (
            {"event": dpsgd_event(1.0, 10, sampling_prob=0.4), "batches": CYCLIC, "strategy": np.ones(6)},
            "strategy=one with 6 bands: expected at most 4 bands",
        ),
        (
            {"event": GaussianDpEvent(1.0), "batches": CYCLIC, "strategy": np.eye(10)},
            "steps=40: expected at most 10, as the strategy is made for",
        ),
        (
            {"event": GaussianDpEvent(1.0), "batches": Pattern(3), "strategy": [1.0, 0.5]},
            "steps=None: expected the number of steps",
        ),
        (
            {"event": dp_event.SelfComposedDpEvent(GaussianDpEvent(1.0), 9), "strategy": np.eye(9)},
            "event=9 composed ones: expected one Gaussian event",
        ),
        (
            {"event": GaussianDpEvent(1.0), "batches": replace(FIXED, replace=True), "strategy": np.eye(50)},
            "batches=drawn with replacement",
        ),
        (
            {
                "event": GaussianDpEvent(1.0),
                "batches": batch_selection.UserSelectionStrategy(POISSON),
                "strategy": np.eye(9),
            },
            "batches=UserSelectionStrategy",
        ),
        (
            {"event": dp_event.ComposedDpEvent([EVENT, GaussianDpEvent(1.0)])},
            "event=one with and without sampling",
        ),
    ],
)
def test_what_is_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(ta.InputError, match=message):
        promise(named.pop("event"), **named)


def test_bad_input() -> None:
    canaries = RecordCanaries(10, seed=1)
    gradients = jax_privacy.clipped_grad(canaries.loss(loss), **ARGUMENTS)
    with pytest.raises(ta.InputError, match="privatizer=function: expected a privatizer"):
        canaries.watch(loss, gradients=gradients, event=EVENT)
    with pytest.raises(ta.InputError, match="gradients=function: expected what jax_privacy"):
        canaries.watch(privatizer(), gradients=loss, event=EVENT)
    endless = jax_privacy.clipped_grad(loss, l2_clip_norm=np.inf)
    with pytest.raises(ta.InputError, match="l2_clip_norm=inf"):
        canaries.watch(privatizer(), gradients=endless, event=EVENT)
    with pytest.raises(ta.InputError, match="privatizer=None: expected canaries"):
        canaries.run({})
    watched = canaries.watch(privatizer(), gradients=gradients, event=EVENT)
    with pytest.raises(ta.InputError, match="params=a dict without the bank: expected the tree"):
        watched.init(PARAMS)
    planted = canaries.plant(PARAMS)
    with pytest.raises(ta.InputError, match="params=a bank of other shapes"):
        watched.init(RecordCanaries(5000).plant(PARAMS))
    state = watched.init(planted)
    with pytest.raises(ta.InputError, match="gradients=a dict without the bank"):
        watched.update(PARAMS, state, ids=np.zeros(3, int))
    with pytest.raises(ta.InputError, match="ids=None: expected the ids of the batch: privatizer"):
        watched.update(planted, state)
    (inputs, targets), _ = canaries.join(data(3))
    with pytest.raises(ta.InputError, match="ids=None: expected the ids of the batch: gradients"):
        gradients(planted, inputs, targets)
    with pytest.raises(ta.InputError, match="params=a tree without parameters"):
        canaries.plant({})
    with pytest.raises(ta.InputError, match=r"data=arrays with \[2, 3\] records"):
        canaries.join((np.zeros(2), np.zeros(3)))
    with pytest.raises(ta.InputError, match=r"data=arrays with \[0\] records"):
        canaries.join(np.zeros((0, 3)))
    with pytest.raises(ta.InputError, match="steps=0"):
        canaries.run(state)


def test_more_steps_than_the_strategy_has() -> None:
    training = factorized(np.eye(20), np.eye(20), steps=20, epochs=4, n=50, real=50)
    training.draw = lambda count: batch_selection.CyclicPoissonSampling(
        sampling_prob=1, iterations=21, cycle_length=5
    ).batch_iterator(count, rng=1)
    state = training.run()
    with pytest.raises(ta.InputError, match="steps=21: expected at most 20, as the strategy is made for"):
        training.canaries.run(state)
    assert training.canaries.n == 50
    assert N == 600


def test_looks_before_the_end() -> None:
    training = Training(seed=1, n=200, real=200)
    said: list[str] = []
    looking = training.canaries.looks(at=(20, 60), delta=1e-5, say=said.append)
    training.after_step = training.canaries.look
    training.run()
    assert [look.step for look in looking.taken] == [20, 60]
    assert said[0].startswith("look 1 of 2, after 20 steps: ε ≥ ")
    with pytest.raises(ta.InputError, match=r"looks=None: expected canaries\.looks"):
        RecordCanaries(5).look({})
