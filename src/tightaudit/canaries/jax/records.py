"""Canaries that travel as records through batches, gradients, clipping and noise of a JAX-Privacy training.

JAX-Privacy has no engine that knows everything: the accountant's event says what is promised, `clipped_grad`
what a record contributes. Relied on: that `clipped_grad` hands keyword arguments to the loss, record by
record, and the fields of batch selection strategies and of dp-accounting's events. The version range in
pyproject.toml and tests/canaries/jax hold it to that.
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import optax
from dp_accounting import NeighboringRelation
from jax_privacy import clipping
from jax_privacy.experimental import execution_plan
from jax_privacy.matrix_factorization import toeplitz

from tightaudit.canaries.bank import Bank, Design
from tightaudit.canaries.checkup import check_up
from tightaudit.canaries.jax.planted import TENSORS, Planted, join, loss_with_canaries, plant
from tightaudit.canaries.jax.promises import Promise, promise
from tightaudit.canaries.jax.watched import watch, watched_in
from tightaudit.canaries.looked_at import LookedAt
from tightaudit.canaries.participation import Pattern
from tightaudit.canaries.transcript import Step
from tightaudit.claims.base import Claim
from tightaudit.evidence.checkup import Checkup
from tightaudit.evidence.run import Run
from tightaudit.support.errors import InputError


class RecordCanaries(LookedAt):
    """Canaries that travel through batches, gradients, clipping and noise like every other record.

        canaries = RecordCanaries(n=5000)
        data, ids = canaries.join(data)                  # a slot per canary, in front
        params = canaries.plant(params)
        gradients = jax_privacy.clipped_grad(canaries.loss(loss), l2_clip_norm=1.0)
        privatizer = canaries.watch(privatizer, gradients=gradients, event=event)
        ...                # gradients(params, batch, ids=…), privatizer.update(…, state, ids=…)
        report = ta.audit(canaries.run(state), delta=1e-5)

    The claim is what the accountant's event promises. With correlated noise, `strategy` says how it is
    correlated and `batches` when records may take part.
    """

    source = "canaries as records, JAX-Privacy"

    def __init__(self, n: int, *, seed: int | None = None, first_steps: int | None = None) -> None:
        self._design = replace(Design.of(n, seed=seed, first_steps=first_steps), tensors=TENSORS)
        self._members = Bank(self._design).members
        self._records = 0
        self._promise: Promise | None = None
        self._unit = 1.0

    @property
    def n(self) -> int:
        """The number of canaries."""
        return self._design.n

    def join(self, data: Any) -> tuple[Any, Any]:
        """The data, arrays with records along their first axis, with a slot per canary; and all ids."""
        joined, ids = join(data, self.n)
        self._records = len(ids)
        return joined, ids

    def plant(self, params: Any) -> Planted:
        """The parameters with the bank; those of your model are its field `model`."""
        return plant(params, self._design)

    def loss(self, loss: Callable[..., Any], *, has_aux: bool = False) -> Callable[..., Any]:
        """The loss of planted parameters, first argument, that takes the records' ids as `ids`."""
        return loss_with_canaries(loss, self._design, self._members, has_aux=has_aux)

    def watch(
        self,
        privatizer: optax.GradientTransformation,
        *,
        gradients: Callable[..., Any],
        event: object,
        batches: object = None,
        strategy: Any = None,
        relation: NeighboringRelation | None = None,
        steps: int | None = None,
    ) -> optax.GradientTransformationExtraArgs:
        """The privatizer, which now keeps in its state what it releases at the bank.

        Parameters
        ----------
        privatizer
            What adds the noise.
        gradients
            What `jax_privacy.clipped_grad` returned: it says how long a record's contribution is.
        event
            The event that the accountant is given: it says what is promised.
        batches
            The batch selection strategy, or a `Pattern` of participations; needed where batches come in
            cycles and where noise is correlated.
        strategy
            The matrix C by which noise is correlated, as the accountant assumes it: an array, Toeplitz
            coefficients, a matrix of JAX-Privacy, or C⁻¹ as a StreamingMatrix.
        relation
            The accountant's neighbouring relation, if noise is made for more than one contribution.
        steps
            The number of steps, where neither event, batches nor strategy say it.
        """
        bound = getattr(gradients, "l2_norm_bound", None)
        if not isinstance(gradients, clipping.BoundedSensitivityCallable) or bound is None:
            raise InputError("gradients", type(gradients).__name__, "what jax_privacy.clipped_grad returned")
        if not 0 < float(bound) < math.inf:
            raise InputError("l2_clip_norm", float(bound), "a positive number: records are to be clipped")
        made = promise(event, batches=batches, strategy=strategy, relation=relation, steps=steps)
        watched = watch(privatizer, self._design, self._rows(made), self._fingerprint)
        self._promise, self._unit = made, float(bound)
        return watched

    def plan(self, config: execution_plan.BandMFExecutionPlanConfig) -> execution_plan.DPExecutionPlan:
        """The execution plan of a configuration, with canaries in its gradients and its noise."""
        if not isinstance(config, execution_plan.BandMFExecutionPlanConfig):
            raise InputError("config", type(config).__name__, "a BandMFExecutionPlanConfig, not yet its plan")
        plan = config.plan
        normalized = config.iterations if config.column_normalize else None

        def clipped_grad(loss: Callable[..., Any], *given: Any, **named: Any) -> Any:
            has_aux = named.get("has_aux", given[1] if len(given) > 1 else False)
            return plan.clipped_grad(self.loss(loss, has_aux=has_aux), *given, **named)

        noise = self.watch(
            plan.noise_addition_transform,
            gradients=plan.clipped_grad(lambda: None),
            event=plan.dp_event,
            batches=plan.batch_selection_strategy,
            strategy=toeplitz.inverse_as_streaming_matrix(np.asarray(config.strategy), normalized),
            relation=config.accountant.neighboring_relation,
        )
        return replace(plan, clipped_grad=clipped_grad, noise_addition_transform=noise)

    def claim(self, state: Any) -> Claim:
        """What the event promises, for the steps so far."""
        return self._bank(state).claim(self._promised.accounted)

    def run(self, state: Any, score: str = "log-likelihood-ratio") -> Run:
        """Scores and secret bits of the steps so far, with the check-up and the transcript.

        `state` is what the watched privatizer returned last, or an optimizer's state with it inside.
        """
        bank, accounted = self._bank(state), self._promised.accounted
        run = bank.run(accounted, score=score, why=self._why, source=self.source)
        return replace(run, checkup=check_up(bank, accounted))

    def checkup(self, state: Any) -> Checkup:
        """What the accountant assumes against what was seen, one check after the other."""
        return check_up(self._bank(state), self._promised.accounted)

    def look(self, state: Any) -> None:
        """Take the look that is due after this step, if one is: call it after every step."""
        if self._looking is None:
            raise InputError("looks", None, "canaries.looks(…) before training")
        step = int(np.asarray(watched_in(state, self._fingerprint).step))
        if self._looking.due(step):
            self._looking.take(step, self.run(state))

    @property
    def _last_step(self) -> int | None:
        return self._design.first_steps

    @property
    def _promised(self) -> Promise:
        if self._promise is None:
            raise InputError("privatizer", None, "canaries.watch(privatizer, …) before training")
        return self._promise

    @property
    def _fingerprint(self) -> int:
        return zlib.crc32(np.packbits(self._members).tobytes())

    @property
    def _why(self) -> str:
        made = self._promised
        own = "every canary is a record with entries of its own in the bank, with noise of their own"
        if isinstance(made.participation, Pattern):
            return (
                f"{own}; the family because the noise is Gaussian and the steps that a record is in are known"
            )
        if made.participation.fixed_size:
            return (
                f"{own}; batches of a fixed size make errors vary less than independent ones do; the family "
                "because each step samples at rate q and adds Gaussian noise"
            )
        return (
            f"{own}, and is sampled by itself; the family because each step samples at rate q and adds "
            "Gaussian noise"
        )

    def _rows(self, made: Promise) -> int:
        first_steps = self._design.first_steps
        return made.steps if first_steps is None else min(made.steps, first_steps)

    def _bank(self, state: Any) -> Bank:
        made, seen = self._promised, watched_in(state, self._fingerprint)
        taken, rows = int(np.asarray(seen.step)), self._rows(made)
        if made.strategy is not None and taken > made.steps:
            raise InputError("steps", taken, f"at most {made.steps}, as the strategy is made for")
        design = replace(self._design, participation=made.participation)
        bank = Bank(design, records=self._records, strategy=made.strategy)
        bank.unseen = max(0, taken - made.steps)
        cycle = getattr(made.participation, "cycle", 1)
        sampled, size, released = (np.asarray(part) for part in (seen.sampled, seen.size, seen.released))
        for number in range(min(taken, rows)):
            step = Step(
                sampled[number],
                released[number].astype(np.float64) / self._unit,
                sigma=made.sigmas[number],
                rate=made.rates[number],
                accounted=number // cycle + 1,
                size=int(size[number]),
            )
            bank.record(step)
        return bank
