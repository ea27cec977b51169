"""Canaries that are records of an Opacus training: a thin adapter around the bank.

The data set gets a slot per canary, the model a bank of parameters that only canaries use. Sampling,
gradients per example, clipping, accumulation, noise and scaling are the training's own; what comes out at the
bank is recorded when the wrapped optimizer is about to step.
"""

import operator
from collections.abc import Sized
from dataclasses import replace
from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from tightaudit.canaries.bank import TENSORS, Bank, Step
from tightaudit.canaries.checkup import Checkup
from tightaudit.canaries.opacus import require_optimizer, with_arrays, with_tensors
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.evidence.run import Run
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError
from tightaudit.support.extras import needs

with needs("torch", "canaries in Opacus"):
    import torch
    from opacus import PrivacyEngine, optimizers
    from opacus.optimizers import DPOptimizer
    from torch import nn
    from torch.utils.data import Dataset

_REAL = -1
"""The id of a record that is no canary."""
_LONG = 1e4
"""Large enough that the gradient of a canary is longer than any clipping norm."""
_UNSUPPORTED = (
    optimizers.AdaClipDPOptimizer,
    optimizers.DPPerLayerOptimizer,
    optimizers.FSDPOptimizerFastGradientClipping,
)


class RecordCanaries:
    """Canaries that travel through loader, gradients, clipping and noise like every other record.

        canaries = RecordCanaries(n=5000)
        train_set = canaries.join(train_set)         # records come with an id at the end
        model = canaries.wrap(model)                 # model(inputs, ids)
        model, optimizer, loader = engine.make_private(module=model, ...)
        canaries.attach(engine, optimizer)
        ...                                          # for inputs, targets, ids in loader: model(inputs, ids)
        report = ta.audit(canaries.run(), delta=1e-5, claim_epsilon=8.0)
        print(canaries.checkup())

    The claim comes from the accountant's history. Supported: grad-sample modes hooks, functorch and ghost,
    virtual steps, every optimizer that Opacus wraps, flat clipping, several processes (`DPDDP` around the
    wrapped model, the same seed in each). Refused: per-layer and adaptive clipping, FSDP, a noise or a rate
    that changes.
    """

    def __init__(self, n: int, *, seed: int | None = None) -> None:
        self.bank = Bank.draw(n, seed=seed)
        self._model: Banked | None = None
        self._engine: PrivacyEngine | None = None

    @property
    def n(self) -> int:
        """The number of canaries."""
        return self.bank.n

    def join(self, dataset: Dataset[Any]) -> Dataset[Any]:
        """The data set with a slot per canary; every record comes with an id at its end, -1 if it is real."""
        joined = _Slots(dataset, self.n)
        self.bank.records = len(joined)
        return joined

    def wrap(self, model: nn.Module) -> "Banked":
        """The model with the bank; it takes the ids after the model's own inputs."""
        self._model = Banked(model, self.bank)
        return self._model

    def attach(self, engine: PrivacyEngine, optimizer: DPOptimizer) -> None:
        """Record what each step of the optimizer releases at the bank; to be called before the first step."""
        if self._model is None:
            raise InputError("model", None, "canaries.wrap(model), handed to make_private")
        expected = "flat or ghost clipping; not per-layer or adaptive, nor FSDP"
        require_optimizer(optimizer, _UNSUPPORTED, expected)
        held = {id(parameter) for parameter in optimizer.params}
        if not all(id(weight) in held for weight in self._model.weights):
            expected = "one made of the parameters of the wrapped model, the bank's included"
            raise InputError("optimizer", "without the bank", expected)
        if engine.accountant.history:
            raise InputError("engine", "with steps in its history", "one whose training has not begun")
        self._engine = engine
        optimizer.original_optimizer.register_step_pre_hook(lambda *_: self._record(optimizer))

    @property
    def claim(self) -> DpSgd:
        """What the accountant has written down so far: noise, rate and number of steps."""
        if self._engine is None:
            raise InputError("engine", None, "canaries.attach(engine, optimizer) before training")
        history = self._engine.accountant.history
        if len(history) != 1:
            found = f"{len(history)} stretches of steps"
            raise InputError("history", found, "one: the noise and the rate have to stay the same")
        sigma, rate, steps = history[0]
        return DpSgd(float(sigma), float(rate), int(steps))

    def run(self) -> Run:
        """Scores and secret bits of the steps taken so far, with the faults that the check-up found."""
        faults = self.checkup().faults
        return replace(self.bank.run(self.claim), remarks=tuple(f"Check-up: {c.fault}." for c in faults))

    def checkup(self) -> Checkup:
        """What the accountant assumes against what was seen, one check after the other."""
        return Checkup.of(self.bank, self.claim)

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, secret bits included: for the checkpoint of the model."""
        return with_tensors(self.bank.state())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint: the same coins, the steps so far."""
        self.bank.load(with_arrays(state))

    def _record(self, optimizer: DPOptimizer) -> None:
        assert self._model is not None
        scale = 1.0
        if optimizer.loss_reduction == "mean":
            # Each worker expects its own part of a batch, and the workers' gradients are averaged.
            scale = float(optimizer.expected_batch_size * optimizer.accumulated_iterations) * _workers()
        norm = float(optimizer.max_grad_norm)
        released = [
            weight.grad.detach().reshape(-1)[: self.bank.entries].double().cpu().numpy() * (scale / norm)
            for weight in self._model.weights
            if weight.grad is not None
        ]
        if len(released) < TENSORS:
            raise InputError("optimizer", "no gradient at the bank", "a step after a backward pass")
        size, sampled = self._model.delivered()
        sampled, size = _summed(sampled), int(_summed(np.array([size]))[0])
        # Gradients point downhill or uphill by the sign of the loss's slope, the same for all canaries.
        direction = float(np.sign(_summed(np.array([self._model.direction]))[0])) or 1.0
        self.bank.record(
            Step(sampled, direction * np.stack(released), float(optimizer.noise_multiplier), size)
        )


def _workers() -> int:
    ready = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if ready else 1


def _summed(values: NDArray[Any]) -> FloatArray:
    """The sum over all workers."""
    total = torch.from_numpy(values.astype(np.float64))
    if _workers() > 1:
        torch.distributed.all_reduce(total)
    return np.asarray(total.numpy())


class Banked(nn.Module):
    """A model with a bank: real records go through it as before, canaries pull at their entries alone."""

    def __init__(self, model: nn.Module, bank: Bank) -> None:
        super().__init__()
        self.model = model
        self.first, self.second = (
            nn.Embedding(bank.entries + 1, 1, padding_idx=bank.entries) for _ in range(TENSORS)
        )
        self._bank = bank
        self._delivered: list[torch.Tensor] = []
        self.direction = 0.0

    @property
    def weights(self) -> list[torch.Tensor]:
        """The bank's tensors."""
        return [self.first.weight, self.second.weight]

    def forward(self, *inputs: Any) -> torch.Tensor:
        """The model's outputs; for canaries a constant, with a slope in their own entries of the bank."""
        *own, ids = inputs
        outputs = self.model(*own)
        if not isinstance(ids, torch.Tensor) or ids.shape != outputs.shape[:1]:
            raise InputError("ids", ids, "the ids that the data set gives, one per record")
        if not (self.training and torch.is_grad_enabled()):
            return cast("torch.Tensor", outputs)
        self._delivered.append(ids.detach().cpu())
        members = torch.from_numpy(self._bank.members).to(ids.device)
        canary = ids >= 0
        contributes = canary & members[ids.clamp(min=0)]
        rows = torch.where(contributes, ids, torch.full_like(ids, self._bank.entries))
        entry = (self.first(rows) + self.second(rows)).reshape(-1)
        pull = (entry - entry.detach()) * _LONG * contributes
        if pull.requires_grad:
            pull.register_hook(lambda slope: self._see_direction(slope[contributes]))
        shape = (-1, *(1 for _ in outputs.shape[1:]))
        kept = torch.where(canary.reshape(shape), torch.zeros_like(outputs), outputs)
        if outputs.ndim == 1:
            return kept + pull
        # One output of several: the slopes of all of them may cancel.
        first = torch.zeros(outputs.shape[-1], dtype=outputs.dtype, device=outputs.device)
        first[0] = 1
        return cast("torch.Tensor", kept + pull.to(outputs.dtype).reshape(shape) * first)

    def delivered(self) -> tuple[int, NDArray[Any]]:
        """How many records were delivered since the last step, and how often each slot was among them."""
        ids = torch.cat(self._delivered).numpy() if self._delivered else np.empty(0, dtype=np.int64)
        self._delivered.clear()
        return ids.size, np.bincount(ids[ids >= 0], minlength=self._bank.n)

    def _see_direction(self, slope: torch.Tensor) -> None:
        if slope.numel():
            self.direction = float(torch.sign(slope.sum()))


class _Slots(Dataset[Any]):
    def __init__(self, dataset: Dataset[Any], n: int) -> None:
        self._dataset, self._n = dataset, n
        self._real = len(cast("Sized", dataset))
        if self._real == 0:
            raise InputError("dataset", "an empty one", "one with a record that canaries can look like")

    def __len__(self) -> int:
        return self._real + self._n

    def __getitem__(self, index: SupportsIndex) -> tuple[Any, ...]:
        place = operator.index(index)  # a distributed sampler of Opacus gives tensors
        if not 0 <= place < len(self):
            raise IndexError(place)
        real = place < self._real
        record = self._dataset[place if real else 0]
        parts = record if isinstance(record, tuple | list) else (record,)
        return (*parts, _REAL if real else place - self._real)
