"""Canaries that are records of an Opacus training: a thin adapter around the bank.

The data set gets a slot per canary, the model a bank of parameters that only canaries use. Sampling,
gradients per example, clipping, accumulation, noise and scaling are the training's own.
"""

import math
import operator
from collections.abc import Sized
from typing import Any, SupportsIndex, cast

import numpy as np
import torch
from numpy.typing import NDArray
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.distributed.tensor import DTensor
from torch.utils.data import Dataset

from tightaudit.canaries.bank import Bank, Coin
from tightaudit.canaries.opacus.attached import OpacusCanaries
from tightaudit.canaries.opacus.workers import rank, summed
from tightaudit.canaries.transcript import Step
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError

TENSORS = 2
"""With two, clipping each tensor by itself shows: contributions are √2 clipping norms long."""
_REAL = -1
"""The id of a record that is no canary."""
_LONG = 1e4
"""Large enough that the gradient of a canary is longer than any clipping norm."""


class RecordCanaries(OpacusCanaries):
    """Canaries that travel through loader, gradients, clipping and noise like every other record.

        canaries = RecordCanaries(n=5000)
        train_set = canaries.join(train_set)         # records come with an id at the end
        model = canaries.wrap(model)
        model, optimizer, loader = engine.make_private(module=model, ...)
        canaries.attach(engine, optimizer)
        ...                              # for inputs, targets, ids in loader: model(inputs, ids=ids)
        report = ta.audit(canaries.run(), delta=1e-5, claim_epsilon=8.0)

    With `coin="participation"` each canary flips a new coin each time it is sampled; `first_steps` ends the
    audit after that many steps and lets the training go on. The claim comes from the accountant's history.

    Supported: grad-sample modes hooks, functorch and ghost; virtual steps; flat and per-layer clipping;
    schedules of noise and clipping norm; every optimizer that Opacus wraps; several processes (`DPDDP` or
    FSDP around the wrapped model). Refused when attaching: adaptive clipping, a training that has begun.
    """

    source = "canaries as records"

    def __init__(
        self, n: int, *, seed: int | None = None, coin: Coin = "canary", first_steps: int | None = None
    ) -> None:
        super().__init__(n, seed=seed, coin=coin, first_steps=first_steps, tensors=TENSORS, own=False)
        self._model: Banked | None = None
        self._per_real = 1.0

    def join(self, dataset: Dataset[Any]) -> Dataset[Any]:
        """The data set with a slot per canary; every record comes with an id at its end, -1 if it is real."""
        joined = _Slots(dataset, self.n)
        self.bank.records = len(joined)
        self._per_real = len(joined) / (len(joined) - self.n)
        return joined

    def wrap(self, model: nn.Module) -> "Banked":
        """The model with the bank; it takes the records' ids as `ids`."""
        self._model = Banked(model, self.bank)
        return self._model

    @property
    def _why(self) -> str:
        if self.bank.design.coin == "participation":
            return (
                "each participation of a canary has a coin of its own and noise of its own, at entries of "
                "the bank that nothing else uses; the family because the noise of a step is Gaussian"
            )
        return (
            "every canary is a record with entries of its own in the bank, with noise of their own, and is "
            "sampled by itself; the family because each step samples at rate q and adds Gaussian noise"
        )

    @property
    def _banked(self) -> "Banked":
        if self._model is None:
            raise InputError("model", None, "canaries.wrap(model), handed to make_private")
        return self._model

    def _require_fit(self, optimizer: DPOptimizer) -> None:
        held = {id(parameter) for parameter in optimizer.params}
        if not all(id(weight) in held for weight in self._banked.weights):
            expected = "one made of the parameters of the wrapped model, the bank's included"
            raise InputError("optimizer", "without the bank", expected)
        norms = self._norms(optimizer)
        if len(set(norms)) > 1:
            shown = " and ".join(f"{norm:g}" for norm in norms)
            raise InputError("max_grad_norm", f"{shown} for the bank's two tensors", "the same for both")

    def _prepare(self) -> None:
        self._banked.forget()

    def _norms(self, optimizer: DPOptimizer) -> list[float]:
        """The clipping norms of the bank's tensors, where each tensor has one of its own."""
        each = getattr(optimizer, "max_grad_norms", None)
        if each is None:
            return []
        own = {id(p): float(norm) for p, norm in zip(optimizer.params, each, strict=True)}
        return [own[id(weight)] for weight in self._banked.weights]

    def _step(self, scale: float) -> Step:
        optimizer, model = self._optimizer, self._banked
        norm = float(optimizer.max_grad_norm)
        # With a norm per layer, the model's own layers have the rest of what a record may contribute.
        unit = math.hypot(*self._norms(optimizer)) or norm
        released = np.stack([self._gradient(weight) for weight in model.weights]) * (scale / unit)
        size, sampled = model.delivered()
        # Gradients point downhill or uphill by the sign of the loss's slope, the same for all canaries.
        direction = float(np.sign(summed(np.array([model.direction]))[0])) or 1.0
        sigma, rate, accounted = self._accounted()
        return Step(
            summed(sampled),
            direction * released,
            sigma=sigma * norm / unit,
            rate=rate,
            accounted=accounted,
            size=int(summed(np.array([size]))[0]),
            worker=summed(rank() * (sampled > 0)) if self.bank.design.workers > 1 else 0,
        )

    def _at_controls(self) -> FloatArray:
        return np.concatenate([self._gradient(weight)[self.n :] for weight in self._banked.weights])

    def _after_step(self) -> None:
        self._banked.forget()
        if self._optimizer.loss_reduction == "mean":
            # A mean over real records, as without canaries: else slots would lower the learning rate.
            for parameter in self._optimizer.params:
                parameter.grad *= self._per_real

    def _gradient(self, weight: torch.Tensor) -> FloatArray:
        if weight.grad is None:
            raise InputError("optimizer", "no gradient at the bank", "a step after a backward pass")
        whole = weight.grad.detach()
        if isinstance(whole, DTensor):  # with FSDP each worker has a part of it
            whole = whole.full_tensor()
        return np.asarray(whole.reshape(-1)[: self.bank.design.entries].double().cpu().numpy())


class Banked(nn.Module):
    """A model with a bank: real records go through it as before, canaries pull at their entries alone."""

    def __init__(self, model: nn.Module, bank: Bank) -> None:
        super().__init__()
        self.model = model
        self._none = bank.design.entries
        self.first, self.second = (
            nn.Embedding(self._none + 1, 1, padding_idx=self._none) for _ in range(TENSORS)
        )
        self._bank = bank
        self._delivered: list[torch.Tensor] = []
        self.direction = 0.0

    @property
    def weights(self) -> list[torch.Tensor]:
        """The bank's tensors."""
        return [self.first.weight, self.second.weight]

    def forward(self, *inputs: Any, ids: torch.Tensor | None = None, **named: Any) -> Any:
        """The model's outputs; for canaries a constant, with a slope in their own entries of the bank.

        Outputs are a tensor with a row per record, or an object that has one as its `logits`.
        """
        outputs = self.model(*inputs, **named)
        if not (self.training and torch.is_grad_enabled()):
            return outputs
        if isinstance(outputs, torch.Tensor):
            return self._with_canaries(outputs, ids)
        logits = getattr(outputs, "logits", None)
        if not isinstance(logits, torch.Tensor):
            expected = "a tensor with a row per record, or an object with such logits"
            raise InputError("model", f"one that returns a {type(outputs).__name__}", expected)
        outputs.logits = self._with_canaries(logits, ids)
        return outputs

    def _with_canaries(self, outputs: torch.Tensor, ids: torch.Tensor | None) -> torch.Tensor:
        if not isinstance(ids, torch.Tensor) or ids.shape != outputs.shape[:1]:
            found = None if ids is None else f"{type(ids).__name__} of shape {tuple(np.shape(ids))}"
            expected = f"the ids that the data set gives, {len(outputs)} here: model(inputs, ids=ids)"
            raise InputError("ids", found, expected)
        bank = self._bank
        self._delivered.append(ids.detach().cpu())
        canary = ids >= 0
        contributes = torch.zeros_like(canary)
        if bank.active:
            coins = torch.from_numpy(bank.coins(bank.steps)).to(ids.device)
            contributes = canary & coins[ids.clamp(min=0)]
        rows = torch.where(contributes, ids, torch.full_like(ids, self._none))
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
        return kept + pull.to(outputs.dtype).reshape(shape) * first

    def delivered(self) -> tuple[int, NDArray[Any]]:
        """How many records were delivered since the last step, and how often each slot was among them."""
        ids = torch.cat(self._delivered).numpy() if self._delivered else np.empty(0, dtype=np.int64)
        return ids.size, np.bincount(ids[ids >= 0], minlength=self._bank.n)

    def forget(self) -> None:
        """Begin the next step."""
        self._delivered.clear()

    def _see_direction(self, slope: torch.Tensor) -> None:
        if not slope.numel():
            return
        self.direction = float(torch.sign(slope.sum()))
        if self.direction == 0:
            expected = "one that depends on the first output of every record"
            raise InputError("loss", "flat at the canaries", expected)


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
