"""Canaries that are records of an Opacus training: a thin adapter around the bank.

The data set gets a slot per canary, the model a bank of parameters that only canaries use. Sampling,
gradients per example, clipping, accumulation, noise and scaling are the training's own.
"""

import math
import operator
from collections.abc import Callable, Sized
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
_ROWS = 64
"""Rows of a tensor of the bank, so that it can be spread over workers."""
_LONG = 1e6
"""Large enough that the gradient of a canary is longer than any clipping norm."""
_LONG_ENOUGH = 0.99
"""Clipping norms that a canary's gradient has to be long."""
_CONSTANT = 0.5
"""What a model says of a canary: hardly ever the target itself, where some losses are flat."""


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
        model = self._banked
        model.forget()
        model.optimizer = self._optimizer
        self._instead("zero_grad", self._clear)
        self._undo.append(lambda: setattr(model, "optimizer", None))

    def _clear(self, zero_grad: Callable[..., None], *given: Any) -> None:
        self._banked.cleared = True
        zero_grad(*given)

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
        # Gradients point uphill or downhill by the sign of the loss's slope. Entries that carry nothing are
        # turned with the others: noise that repeats from step to step would else hide behind its sign.
        directions = np.sign(summed(model.directions))
        common = np.sign(directions.sum()) or 1.0
        released *= common
        released[:, : self.n] *= np.where(directions == -common, -1.0, 1.0)
        sigma, rate, accounted = self._accounted()
        return Step(
            summed(sampled),
            released,
            sigma=sigma * (norm / unit),
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
        # As precise as the model itself: noise in too low a precision is then seen.
        dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
        self._columns = math.ceil(bank.design.entries / _ROWS)
        self.first, self.second = (
            nn.Linear(self._columns, _ROWS, bias=False, dtype=dtype) for _ in range(TENSORS)
        )
        self._bank = bank
        self._delivered: list[torch.Tensor] = []
        self.directions = np.zeros(bank.n)
        """For each canary that contributed since the last step, the sign of the loss's slope."""
        self.optimizer: DPOptimizer | None = None
        """The optimizer that is watched."""
        self.cleared = False
        """Whether gradients were cleared since the last forward pass."""

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
        self._note(ids)
        bank, canary = self._bank, ids >= 0
        contributes = torch.zeros_like(canary)
        if bank.active:
            coins = torch.from_numpy(bank.coins(bank.steps)).to(ids.device)
            contributes = canary & coins[ids.clamp(min=0)]
        with torch.autocast(outputs.device.type, enabled=False):  # slopes this steep overflow half precision
            place = torch.where(contributes, ids, 0)
            column = torch.zeros(len(ids), self._columns, dtype=self.first.weight.dtype, device=ids.device)
            column[contributes, place[contributes] % self._columns] = 1
            rows = self.first(column) + self.second(column)
            entry = rows.gather(1, (place // self._columns)[:, None]).reshape(-1)
            pull = (entry - entry.detach()) * _LONG
        if pull.requires_grad:
            pull.register_hook(lambda slope: self._see_slope(ids[contributes], slope[contributes], len(ids)))
        shape = (-1, *(1 for _ in outputs.shape[1:]))
        kept = torch.where(canary.reshape(shape), torch.full_like(outputs, _CONSTANT), outputs)
        return kept + pull.to(outputs.dtype).reshape(shape) * _weights_of(outputs)

    def _note(self, ids: torch.Tensor) -> None:
        """Remember who was delivered; what came before gradients were cleared is of no consequence."""
        if self.optimizer is None:
            return
        if self.cleared and not self.optimizer._is_last_step_skipped:
            self.forget()
        self.cleared = False
        self._delivered.append(ids.detach().cpu())

    def delivered(self) -> tuple[int, NDArray[Any]]:
        """How many records were delivered since the last step, and how often each slot was among them."""
        ids = torch.cat(self._delivered).numpy() if self._delivered else np.empty(0, dtype=np.int64)
        return ids.size, np.bincount(ids[ids >= 0], minlength=self._bank.n)

    def forget(self) -> None:
        """Begin the next step."""
        self._delivered.clear()
        self.directions[:] = 0

    def _see_slope(self, ids: torch.Tensor, slope: torch.Tensor, size: int) -> None:
        found = slope.detach().double().cpu().numpy()
        self.directions[ids.cpu().numpy()] = np.sign(found)
        if self.optimizer is None or not found.size:
            return
        mean = self.optimizer.loss_reduction == "mean"
        length = _LONG * math.sqrt(TENSORS) * float(np.abs(found).min()) * (size if mean else 1)
        if length < _LONG_ENOUGH * float(self.optimizer.max_grad_norm):
            expected = (
                "one that slopes at the canaries, which are copies of the first record with constant "
                "outputs: put another record first"
            )
            raise InputError("loss", f"one so flat that a gradient is {length:.3g} long", expected)


def _weights_of(outputs: torch.Tensor) -> torch.Tensor:
    """A direction in the outputs of a record, along which the slopes of no usual loss cancel."""
    direction = torch.ones((), dtype=outputs.dtype, device=outputs.device)
    for place, size in enumerate(outputs.shape[1:], start=1):
        if size > 1:
            drawn = torch.randn(size, generator=torch.Generator().manual_seed(place))
            shape = [1] * outputs.ndim
            shape[place] = size
            direction = direction * drawn.to(outputs.device, outputs.dtype).reshape(shape)
    return direction


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
