"""Canaries inserted directly into the gradient of an Opacus training, each at a coordinate of its own.

    coins ──► every step: clipped sums, plus C at the coordinates of sampled canaries ──► noise ──► recorded

They are taken out again after recording, so that the model is the one without them.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from opacus.optimizers import (
    DPOptimizer,
    DPOptimizerFastGradientClipping,
    FSDPOptimizerFastGradientClipping,
)

from tightaudit.canaries.bank import Coin, most_canaries
from tightaudit.canaries.opacus.attached import OpacusCanaries, batch_scale
from tightaudit.canaries.opacus.workers import rank, summed, workers
from tightaudit.canaries.transcript import Step
from tightaudit.evidence.coins import stream
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError

Parameter: TypeAlias = Any
"""A parameter on which Opacus has hung `grad_sample` and `summed_grad`."""
Insertion = Literal["after-clipping", "before-clipping"]

OVERSIZE = 10.0
"""How many clipping norms long a canary's gradient is before it is clipped."""
_COORDINATE_STREAM = 101
_SUMMED, _GRADIENT = attrgetter("summed_grad"), attrgetter("grad")


class WhiteBoxCanaries(OpacusCanaries):
    """Canaries in the gradient of an optimizer that `PrivacyEngine.make_private` returned.

        canaries = WhiteBoxCanaries(n=5000)
        canaries.attach(engine, optimizer)
        ...                                   # the training loop, unchanged
        report = ta.audit(canaries.run(), delta=1e-5)

    The cheap way: no change to data set, model or loop. Canaries are sampled by coins of their own, so they
    test the noise, and with `insertion="before-clipping"` the clipping, but neither loader nor gradients.
    They are taken out of the gradient again before the optimizer takes its step.

    Before clipping, each canary is one more per-example gradient, ten clipping norms long. That costs memory
    and a second pass of clipping, and needs flat clipping with gradients per example.

    With `coin="participation"` every canary flips a new coin in each step; `first_steps` ends the audit after
    that many steps and lets the training go on.
    """

    def __init__(
        self,
        n: int,
        *,
        seed: int | None = None,
        coin: Coin = "canary",
        first_steps: int | None = None,
        insertion: Insertion = "after-clipping",
    ) -> None:
        super().__init__(n, seed=seed, coin=coin, first_steps=first_steps, tensors=1, own=True)
        if insertion not in get_args(Insertion):
            raise InputError("insertion", insertion, f"one of {', '.join(get_args(Insertion))}")
        self._insertion = insertion
        self._begin_step()

    @property
    def source(self) -> str:  # type: ignore[override]
        """How the canaries are called in a report."""
        return f"white-box canaries, {self._insertion}"

    @property
    def _why(self) -> str:
        if self.bank.design.coin == "participation":
            return (
                "each canary has a coordinate of its own, and in each step a coin of its own and noise of "
                "its own there; the family because the noise of a step is Gaussian"
            )
        return (
            "every canary has its own coordinate of the gradient, its own noise there and its own sampling "
            "coins; the family because canaries are sampled at rate q in each step and the noise is Gaussian"
        )

    def _require_fit(self, optimizer: DPOptimizer) -> None:
        if isinstance(optimizer, FSDPOptimizerFastGradientClipping):
            expected = "one with whole gradients on every worker; with FSDP, use RecordCanaries"
            raise InputError("optimizer", type(optimizer).__name__, expected)
        if self._insertion == "before-clipping":
            if isinstance(optimizer, DPOptimizerFastGradientClipping):
                expected = "after-clipping: ghost clipping has no gradient per example"
                raise InputError("insertion", self._insertion, expected)
            if hasattr(optimizer, "max_grad_norms"):
                expected = "after-clipping: with a norm per layer, no layer has the whole of it"
                raise InputError("insertion", self._insertion, expected)
        coordinates = sum(p.numel() for p in _trained(optimizer))
        if self.bank.design.entries > coordinates:
            expected = (
                f"at most {most_canaries(coordinates)}: one of the model's {coordinates} coordinates per "
                "canary, and some for controls"
            )
            raise InputError("n", self.n, expected)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint: the same coins, the same coordinates, the steps so far."""
        super().load_state_dict(state)
        if self._undo:
            self._places = self._places_in_parameters()

    def _prepare(self) -> None:
        optimizer = self._optimizer
        self._places = self._places_in_parameters()
        # About as many as the training has: enough to tell batches of one size from sampled ones.
        self.bank.records = round(float(optimizer.expected_batch_size or 0) * workers() / self._attached.rate)
        self._instead("add_noise", self._insert_and_add_noise)
        self._instead("clip_and_accumulate", self._count_and_clip)

    def _places_in_parameters(self) -> list[tuple[Parameter, NDArray[Any], torch.Tensor]]:
        """For each parameter the entries in it, and their places in it."""
        parameters, design = _trained(self._optimizer), self.bank.design
        sizes = np.array([p.numel() for p in parameters])
        ends = np.cumsum(sizes)
        rng = stream(design.seed, _COORDINATE_STREAM)
        coordinates = rng.choice(int(ends[-1]), size=design.entries, replace=False)
        owner = np.searchsorted(ends, coordinates, side="right")
        return [
            (
                parameter,
                entries,
                torch.from_numpy(coordinates[entries] - start).to(parameter.device),
            )
            for place, (parameter, start) in enumerate(zip(parameters, ends - sizes, strict=True))
            if (entries := np.flatnonzero(owner == place)).size
        ]

    def _begin_step(self) -> None:
        self._share: FloatArray = np.zeros(self.bank.design.entries)
        self._inserted: FloatArray | None = None
        self._noised = np.zeros(self.bank.design.entries)
        self._sampled: BoolArray | None = None
        self._examples = 0

    def _after_step(self) -> None:
        self._begin_step()

    def _contributing(self) -> BoolArray:
        """For every entry, whether a canary contributes there in this step, on whichever worker."""
        step = self.bank.steps
        rate = self._attached.rate * float(self._optimizer.accumulated_iterations)
        self._rate = min(1.0, rate)
        self._sampled = self.bank.sampled(step, self._rate)
        found = np.zeros(self.bank.design.entries, dtype=bool)
        found[: self.n] = self._sampled & self.bank.coins(step)
        return found

    def _own(self, entries: BoolArray) -> BoolArray:
        """Those that this worker inserts: they take turns."""
        return np.asarray(entries & (np.arange(entries.size) % workers() == rank()))

    def _count_and_clip(self, clip: Callable[[], None]) -> None:
        # Ghost clipping keeps no gradient per example, so that there is nothing to count.
        if not isinstance(self._optimizer, DPOptimizerFastGradientClipping):
            self._examples += len(self._optimizer._get_flat_grad_sample(_trained(self._optimizer)[0]))
        if self._insertion == "before-clipping" and self.bank.active and self._inserted is None:
            self._clip_with_canaries(clip)
        else:
            clip()

    def _insert_and_add_noise(self, add_noise: Callable[[], None]) -> None:
        if self.bank.active:
            held = self._at_entries(_SUMMED)
            if self._insertion == "after-clipping":
                inserted = np.where(
                    self._own(self._contributing()), float(self._optimizer.max_grad_norm), 0.0
                )
                self._add(_SUMMED, inserted)
                self._share, self._inserted = held, inserted
            elif self._inserted is not None:
                self._share = held - self._inserted
        add_noise()
        if self.bank.active:
            self._noised = self._at_entries(_GRADIENT)

    def _add(self, tensor_of: Callable[[Parameter], torch.Tensor], values: FloatArray) -> None:
        for parameter, entries, places in self._places:
            tensor = tensor_of(parameter)
            flat = tensor.detach().reshape(-1).clone()
            flat[places] += torch.from_numpy(values[entries]).to(flat.device, flat.dtype)
            tensor.detach().copy_(flat.view_as(tensor))

    def _at_entries(self, tensor_of: Callable[[Parameter], torch.Tensor]) -> FloatArray:
        values = np.zeros(self.bank.design.entries)
        for parameter, entries, places in self._places:
            values[entries] = tensor_of(parameter).detach().reshape(-1)[places].double().cpu().numpy()
        return values

    def _clip_with_canaries(self, clip: Callable[[], None]) -> None:
        """Clip the batch alone, then again with the canaries among its examples: the difference is theirs."""
        optimizer = self._optimizer
        parts = [(p, p.grad_sample, optimizer._get_flat_grad_sample(p)) for p in optimizer.params]
        before = [None if p.summed_grad is None else p.summed_grad.clone() for p, _, _ in parts]
        for p, _, examples in parts:
            p.grad_sample = examples.clone()
        clip()
        alone = self._at_entries(_SUMMED)
        chosen = np.flatnonzero(self._own(self._contributing()))
        for (p, _, examples), earlier in zip(parts, before, strict=True):
            p.summed_grad = earlier
            p.grad_sample = torch.cat([examples, self._gradients(p, chosen, examples)])
        clip()
        self._inserted = self._at_entries(_SUMMED) - alone
        for p, original, _ in parts:
            p.grad_sample = original
            for tensor in original if isinstance(original, list) else [original]:
                tensor._processed = True

    def _gradients(self, parameter: Parameter, chosen: NDArray[Any], like: torch.Tensor) -> torch.Tensor:
        """The canaries' gradients at one parameter, a row each: zero but at their coordinates."""
        rows = torch.zeros((chosen.size, parameter.numel()), dtype=like.dtype, device=like.device)
        for own, entries, places in self._places:
            if own is parameter:
                _, row, entry = np.intersect1d(chosen, entries, assume_unique=True, return_indices=True)
                column = places[torch.from_numpy(entry).to(places.device)]
                length = OVERSIZE * float(self._optimizer.max_grad_norm)
                rows[torch.from_numpy(row).to(like.device), column] = length
        return rows.reshape(chosen.size, *like.shape[1:])

    def _step(self, scale: float) -> Step:
        if self._inserted is None or self._sampled is None:
            expected = "the methods that it had when the canaries were attached: attach them last"
            raise InputError("optimizer", "one whose add_noise or clip_and_accumulate was replaced", expected)
        norm = float(self._optimizer.max_grad_norm)
        share = summed(self._share / norm)
        # Whatever else the gradient is multiplied by on its way, the batch's share is too.
        seen, noised = self._at_entries(_GRADIENT) * scale, summed(self._noised)
        factor = float(seen @ noised / (noised @ noised))
        released = seen / norm - factor * share
        sigma, rate, accounted = self._accounted()
        if self.bank.design.coin == "canary" and not np.isclose(rate, self._rate, rtol=1e-9):
            expected = f"{self._rate:g}, as when the canaries were attached"
            raise InputError("sample_rate", rate, expected)
        # What was inserted is known, so it can be taken out again, as every worker's part of the mean.
        self._add(_GRADIENT, -factor * summed(self._inserted) / scale)
        return Step(
            self._sampled,
            released[None, :],
            sigma=sigma,
            rate=rate,
            accounted=accounted,
            size=int(summed(np.array([self._examples]))[0]),
            share=share,
            worker=np.arange(self.n) % workers() if workers() > 1 else 0,
        )

    def _at_controls(self) -> FloatArray:
        own_scale = batch_scale(self._optimizer) / workers()
        return (self._at_entries(_GRADIENT) * own_scale - self._share)[self.n :]


def _trained(optimizer: DPOptimizer) -> list[Parameter]:
    return [p for p in optimizer.params if p.requires_grad]
