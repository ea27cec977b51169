"""What both kinds of canaries share in a training with Opacus: attaching, recording each step, the claim.

A step is recorded when the wrapped optimizer is about to take it: behind clipping, noise, scaling and the
reduction over workers. What Opacus does not promise is used in this folder and nowhere else: the hook that
tells the accountant of a step, the methods `pre_step`, `add_noise` and `clip_and_accumulate` of one
optimizer object, `_get_flat_grad_sample`, `max_grad_norms` of per-layer clipping, and the mark `_processed`
on gradients. The version range in pyproject.toml and tests/canaries/opacus hold it to that.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.optimizers import AdaClipDPOptimizer, DPOptimizer, FSDPOptimizerFastGradientClipping
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping

from tightaudit.canaries.accounted import History, as_history, total
from tightaudit.canaries.bank import Bank, Coin, Design
from tightaudit.canaries.checkup import check_up
from tightaudit.canaries.looked_at import LookedAt
from tightaudit.canaries.opacus.workers import common_seed, gathered, rank, workers
from tightaudit.canaries.transcript import Step
from tightaudit.claims.base import Claim
from tightaudit.claims.parts.composed import LARGEST_SIGMA
from tightaudit.evidence.checkup import Checkup
from tightaudit.evidence.run import Run
from tightaudit.support import checks
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

_MARK = "_tightaudit_canaries"
_SUPPORTED = "flat, ghost or per-layer clipping; not adaptive clipping"


class _Rehearsal:
    """An optimizer as it is after the first batch, for a hook that tells the accountant of a step."""

    accumulated_iterations = 1

    def __init__(self, optimizer: DPOptimizer) -> None:
        self._optimizer = optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)


@dataclass(frozen=True)
class Accountant:
    """What the engine's accountant is told of the optimizer's steps."""

    engine: PrivacyEngine
    rate: float
    """The sampling rate of one batch."""

    @classmethod
    def of(cls, engine: object, optimizer: object) -> "Accountant":
        """The accountant of an optimizer, after a rehearsal: which rate will it be told?"""
        if not isinstance(engine, PrivacyEngine):
            raise InputError("engine", type(engine).__name__, "the PrivacyEngine that made the optimizer")
        if not isinstance(optimizer, DPOptimizer):
            raise InputError("optimizer", type(optimizer).__name__, "the one that make_private returned")
        if isinstance(engine, PrivacyEngineAdaptiveClipping):
            raise InputError("engine", type(engine).__name__, _SUPPORTED)
        if isinstance(optimizer, AdaClipDPOptimizer):
            raise InputError("optimizer", type(optimizer).__name__, _SUPPORTED)
        checks.positive("noise_multiplier", optimizer.noise_multiplier, maximum=LARGEST_SIGMA)
        kept = list(engine.accountant.history)
        try:
            if optimizer.step_hook is not None:
                optimizer.step_hook(_Rehearsal(optimizer))
            written = list(engine.accountant.history)
        finally:
            engine.accountant.history = kept
        if written == kept:
            expected = "one whose steps are accounted for by this engine, as make_private returned it"
            raise InputError("optimizer", "not known to the engine's accountant", expected)
        return cls(engine, float(written[-1][1]))

    @property
    def history(self) -> History:
        """Noise multiplier, sampling rate and number of steps, stretch by stretch."""
        return as_history(self.engine.accountant.history)

    @property
    def steps(self) -> int:
        """The steps written down so far."""
        return total(tuple(self.engine.accountant.history))


class OpacusCanaries(LookedAt, ABC):
    """Canaries in a training with Opacus. The claim is what the engine's accountant has written down."""

    source: ClassVar[str]
    """How the canaries are called in a report."""

    def __init__(
        self, n: int, *, seed: int | None, coin: Coin, first_steps: int | None, tensors: int, own: bool
    ) -> None:
        design = Design.of(n, seed=seed, coin=coin, first_steps=first_steps)
        design = replace(design, seed=common_seed(seed, design.seed), tensors=tensors, own_sampling=own)
        self.bank = Bank(replace(design, workers=workers()))
        self._accountant: Accountant | None = None
        self._undo: list[Callable[[], None]] = []

    @property
    def n(self) -> int:
        """The number of canaries."""
        return self.bank.n

    @property
    def _last_step(self) -> int | None:
        return self.bank.design.first_steps

    @property
    def steps(self) -> int:
        """The steps seen so far."""
        return self.bank.steps

    def attach(self, engine: PrivacyEngine, optimizer: DPOptimizer) -> None:
        """Watch the optimizer that `make_private` returned, from its first step on.

        In a training that goes on from a checkpoint, load the canaries' state before.
        """
        accountant = Accountant.of(engine, optimizer)
        if getattr(optimizer, _MARK, None) is not None:
            raise InputError("optimizer", "one with canaries in it", "one without; detach them first")
        if self._undo:
            raise InputError("canaries", "attached already", "canaries that are not; detach them first")
        if workers() != self.bank.design.workers:
            expected = f"{workers()}, as now: make the canaries after init_process_group"
            raise InputError("workers", self.bank.design.workers, expected)
        if accountant.steps and not self.bank.steps:
            expected = (
                "one whose training has not begun; for one that goes on from a checkpoint, load the "
                "canaries' state first"
            )
            raise InputError("engine", f"one with {accountant.steps} steps in its history", expected)
        self._require_fit(optimizer)
        self._accountant, self._optimizer = accountant, optimizer
        self._local: FloatArray | None = None
        self._prepare()
        hook = optimizer.original_optimizer.register_step_pre_hook(lambda *_: self._before_step())
        self._undo.append(hook.remove)
        self._undo.append(lambda: setattr(optimizer, _MARK, None))
        setattr(optimizer, _MARK, self)
        # With FSDP each worker adds noise to a part of the gradient by itself: there is nothing to compare.
        if workers() > 1 and not isinstance(optimizer, FSDPOptimizerFastGradientClipping):
            self._instead("pre_step", self._noticing)

    def detach(self) -> None:
        """Leave the optimizer as it was."""
        while self._undo:
            self._undo.pop()()

    @property
    def claim(self) -> Claim:
        """What the accountant has written down so far promises to what the coins are flipped for."""
        return self.bank.claim(self._attached.history)

    def run(self, score: str = "log-likelihood-ratio") -> Run:
        """Scores and secret bits of the steps so far, with the check-up and the transcript.

        `log-likelihood-ratio` is the best possible score, `sum` the plain sum of the noisy gradients, and
        `spread` their standard deviation over the steps.
        """
        run = self.bank.run(self._attached.history, score=score, why=self._why, source=self.source)
        return replace(run, checkup=self.checkup())

    def checkup(self) -> Checkup:
        """What the accountant assumes against what was seen, one check after the other."""
        return check_up(self.bank, self._attached.history)

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, secret bits included: for the checkpoint of the model."""
        state = {
            name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            for name, value in self.bank.state().items()
        }
        looked = self._looked if self._looking is None else self._looking.state()
        return {**state, "looks": looked} if looked else state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint: the same coins, the steps so far."""
        self.bank.load(
            {
                name: value.numpy() if isinstance(value, torch.Tensor) else value
                for name, value in state.items()
            }
        )
        self._looked = state.get("looks", "")
        if self._looking is not None and self._looked:
            self._looking.load(self._looked)

    @property
    @abstractmethod
    def _why(self) -> str:
        """Why outcomes are independent, and the curve is in the family."""

    @abstractmethod
    def _require_fit(self, optimizer: DPOptimizer) -> None:
        """Refuse an optimizer that these canaries do not go with, before anything is changed."""

    @abstractmethod
    def _prepare(self) -> None:
        """Do what has to be done once, when the optimizer is known to fit."""

    @abstractmethod
    def _step(self, scale: float) -> Step:
        """What this step released; a gradient times `scale` is the noisy sum over the batch."""

    @abstractmethod
    def _at_controls(self) -> FloatArray:
        """The noise that this worker added by itself, at the control entries."""

    @abstractmethod
    def _after_step(self) -> None:
        """Do what has to be done when a step was seen, or was not to be."""

    @property
    def _attached(self) -> Accountant:
        if self._accountant is None:
            raise InputError("engine", None, "canaries.attach(engine, optimizer) before training")
        return self._accountant

    def _instead(self, name: str, method: Callable[..., Any]) -> None:
        """Replace a method of the optimizer by one that is given the original."""
        optimizer, own = self._optimizer, vars(self._optimizer).get(name)
        original = getattr(optimizer, name)
        setattr(optimizer, name, lambda *given, **named: method(original, *given, **named))
        self._undo.append(lambda: delattr(optimizer, name) if own is None else setattr(optimizer, name, own))

    def _noticing(self, pre_step: Callable[..., Any], *given: Any) -> Any:
        """Keep what this worker has added by itself, before workers' gradients are put together."""
        ready = pre_step(*given)
        self._local = self._at_controls() if ready and self.bank.active else None
        return ready

    def _before_step(self) -> None:
        active = self.bank.active
        if active:
            step = self._step(batch_scale(self._optimizer))
            if self._local is not None:
                every = gathered(self._local)
                step = replace(step, alike=every @ every.T)
            self.bank.record(step)
        self._after_step()
        if active and self._looking is not None and self._looking.due(self.bank.steps):
            self._looking.take(self.bank.steps, self.run(), aloud=rank() == 0)

    def _accounted(self) -> tuple[float, float, int]:
        """Noise multiplier and rate that were written down for this step, and the steps so far."""
        accountant = self._attached
        if not accountant.steps:
            return float(self._optimizer.noise_multiplier), accountant.rate, 0
        sigma, rate, _ = accountant.history[-1]
        return sigma, rate, accountant.steps


def batch_scale(optimizer: DPOptimizer) -> float:
    """What a gradient has to be multiplied by to be the sum over the batch again."""
    if optimizer.loss_reduction != "mean":
        return 1.0
    # Each worker expects its own part of a batch, and the workers' gradients are averaged.
    return float(optimizer.expected_batch_size * optimizer.accumulated_iterations) * workers()
