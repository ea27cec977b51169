"""Canaries inside an optimizer of Opacus: a thin adapter around canaries that own a coordinate each.

One optimizer object is patched in two places: `add_noise`, around which canaries are inserted and what came
out is recorded, and `clip_and_accumulate`, for canaries that are inserted before clipping. What Opacus does
not promise is used here and nowhere else: the optimizer's `_get_flat_grad_sample`, and the mark `_processed`
on gradients. The version range in pyproject.toml and tests/canaries/test_opacus.py hold it to that.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from tightaudit.canaries.coordinates import CoordinateCanaries, require_same
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.evidence.run import Run
from tightaudit.support.checks import FloatArray
from tightaudit.support.errors import InputError
from tightaudit.support.extras import needs

with needs("torch", "canaries in Opacus"):
    import torch
    from opacus import optimizers
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping

Parameter: TypeAlias = Any
"""A parameter on which Opacus has hung `grad_sample` and `summed_grad`."""
Insertion = Literal["after-clipping", "before-clipping"]

OVERSIZE = 10.0
"""How many clipping norms long a canary's gradient is before it is clipped."""
_UNSUPPORTED = (
    *(optimizers.AdaClipDPOptimizer, optimizers.DPPerLayerOptimizer, optimizers.DistributedDPOptimizer),
    *(optimizers.DistributedDPOptimizerFastGradientClipping, optimizers.FSDPOptimizerFastGradientClipping),
)
_MARK = "_tightaudit_canaries"
_MANY_STEPS, _SPREAD = 20, 2.0
"""Steps, and standard deviation of a batch's size, from which half of the batches are not alike by chance."""
_SUMMED = attrgetter("summed_grad")


class WhiteBoxCanaries:
    """Canaries in the gradient of an optimizer that `PrivacyEngine.make_private` returned.

        canaries = WhiteBoxCanaries(optimizer, n=5000, sample_rate=loader.sample_rate)
        ...                                   # the training loop, unchanged
        report = ta.audit(canaries.run(), delta=1e-5)

    Supported: Poisson sampling, virtual steps (`BatchMemoryManager`), every optimizer that Opacus wraps, flat
    clipping, ghost clipping. Not supported, and refused: per-layer and adaptive clipping, distributed
    optimizers. The noise multiplier must stay the same; the clipping norm may change.

    `insertion="before-clipping"` adds each canary as one more per-example gradient, ten clipping norms long,
    so that mistakes in the clipping show too. It costs memory and a second pass of clipping, and does not
    work with ghost clipping, which has no per-example gradients.
    """

    def __init__(
        self,
        optimizer: DPOptimizer,
        *,
        n: int,
        sample_rate: float,
        seed: int | None = None,
        insertion: Insertion = "after-clipping",
    ) -> None:
        expected = "flat or ghost clipping on one device; not per-layer, adaptive or distributed"
        require_optimizer(optimizer, _UNSUPPORTED, expected)
        if insertion not in get_args(Insertion):
            raise InputError("insertion", insertion, f"one of {', '.join(get_args(Insertion))}")
        if insertion == "before-clipping" and isinstance(optimizer, DPOptimizerFastGradientClipping):
            raise InputError(
                "insertion", insertion, "after-clipping: ghost clipping has no gradient per example"
            )
        self._optimizer, self._insertion = optimizer, insertion
        self._parameters = [p for p in optimizer.params if p.requires_grad]
        self._core = CoordinateCanaries(
            n,
            coordinates=sum(p.numel() for p in self._parameters),
            sample_rate=sample_rate,
            noise_multiplier=optimizer.noise_multiplier,
            seed=seed,
        )
        self._places = self._places_in_parameters()
        self._batches: list[int] = []
        self._begin_step()
        self._attach()

    @property
    def n(self) -> int:
        """The number of canaries."""
        return self._core.n

    @property
    def steps(self) -> int:
        """The steps taken so far."""
        return self._core.steps

    @property
    def claim(self) -> DpSgd:
        """What the optimizer's own settings promise after the steps taken so far."""
        return self._core.claim

    def run(self, score: str = "log-likelihood-ratio") -> Run:
        """Scores and secret bits of the steps taken so far.

        `log-likelihood-ratio` is the best possible score, `sum` the plain sum of the noisy gradients, and
        `spread` their standard deviation over the steps, which detects noise that repeats.
        """
        remark = _shuffled(self._batches, self._core.rate)
        if remark is not None:
            warnings.warn(remark, stacklevel=2)
        found = self._core.run(score, source=f"white-box canaries, {self._insertion}")
        return found if remark is None else replace(found, remarks=(remark,))

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to resume from here, secret bits included: for the checkpoint of the model."""
        return with_tensors({"insertion": self._insertion, **self._core.state()})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint: the same bits, the same coordinates, the scores so far."""
        plain = with_arrays(state)
        require_same(plain, {"insertion": self._insertion})
        self._core.load(plain)
        self._places = self._places_in_parameters()
        self._begin_step()

    def detach(self) -> None:
        """Leave the optimizer as it was."""
        self._optimizer.add_noise, self._optimizer.clip_and_accumulate = self._originals
        del self._optimizer.__dict__[_MARK]

    def _places_in_parameters(self) -> list[tuple[Parameter, slice, torch.Tensor]]:
        """For each parameter the canaries in it, as a slice, and their places in it."""
        sizes = np.array([p.numel() for p in self._parameters])
        ends = np.cumsum(sizes)
        starts, coordinates = ends - sizes, self._core.coordinates
        bounds = np.searchsorted(coordinates, np.append(starts, ends[-1]))
        return [
            (
                parameter,
                slice(first, last),
                torch.from_numpy(coordinates[first:last] - start).to(parameter.device),
            )
            for parameter, start, first, last in zip(
                self._parameters, starts, bounds[:-1], bounds[1:], strict=True
            )
            if last > first
        ]

    def _attach(self) -> None:
        if _MARK in self._optimizer.__dict__:
            raise InputError("optimizer", "one with canaries in it", "one without; detach them first")
        self._optimizer.__dict__[_MARK] = self
        add_noise, clip = self._optimizer.add_noise, self._optimizer.clip_and_accumulate
        self._originals = add_noise, clip
        self._optimizer.add_noise = lambda: self._noise_and_record(add_noise)
        before = self._insertion == "before-clipping"
        inner = (lambda: self._clip_with_canaries(clip)) if before else clip
        self._optimizer.clip_and_accumulate = lambda: self._count_and_clip(inner)

    def _begin_step(self) -> None:
        self._share = np.zeros(self._core.n)
        self._inserted = False
        self._examples = 0

    def _count_and_clip(self, clip: Callable[[], None]) -> None:
        # Ghost clipping keeps no gradient per example, so that there is nothing to count.
        if not isinstance(self._optimizer, DPOptimizerFastGradientClipping):
            self._examples += len(self._optimizer._get_flat_grad_sample(self._parameters[0]))
        clip()

    def _noise_and_record(self, add_noise: Callable[[], None]) -> None:
        sigma = self._core.sigma
        if self._optimizer.noise_multiplier != sigma:
            when = "in the steps before" if self._core.steps else "when the canaries were attached"
            raise InputError("noise_multiplier", self._optimizer.noise_multiplier, f"{sigma}, as {when}")
        norm = float(self._optimizer.max_grad_norm)
        if self._insertion == "after-clipping":
            self._share = self._at_coordinates(_SUMMED)
            sampled = torch.from_numpy(self._core.sampled())
            for parameter, canaries, places in self._places:
                here = places[sampled[canaries].to(places.device)]
                flat = parameter.summed_grad.contiguous().view(-1)
                flat[here] += norm
                parameter.summed_grad = flat.view_as(parameter.summed_grad)
        add_noise()
        self._batches.append(self._examples)
        self._core.record(self._at_coordinates(attrgetter("grad")) / norm, share=self._share / norm)
        self._begin_step()

    def _at_coordinates(self, tensor_of: Callable[[Parameter], torch.Tensor]) -> FloatArray:
        values = np.empty(self._core.n)
        for parameter, canaries, places in self._places:
            values[canaries] = tensor_of(parameter).detach().reshape(-1)[places].double().cpu().numpy()
        return values

    def _clip_with_canaries(self, clip: Callable[[], None]) -> None:
        """Clip the batch alone, to know its share, then again with the canaries among its examples."""
        optimizer = self._optimizer
        parts = [(p, p.grad_sample, optimizer._get_flat_grad_sample(p)) for p in optimizer.params]
        before = [None if p.summed_grad is None else p.summed_grad.clone() for p, _, _ in parts]
        # What earlier parts of a virtual step left at the coordinates.
        held = 0.0 if any(tensor is None for tensor in before) else self._at_coordinates(_SUMMED)
        for p, _, examples in parts:
            p.grad_sample = examples.clone()
        clip()
        self._share += self._at_coordinates(_SUMMED) - held
        if self._inserted:
            self._restore(parts)
            return
        self._inserted = True
        chosen = np.flatnonzero(self._core.sampled())
        for (p, _, examples), earlier in zip(parts, before, strict=True):
            p.summed_grad = earlier
            p.grad_sample = torch.cat([examples, self._gradients(p, chosen, examples)])
        clip()
        self._restore(parts)

    def _gradients(self, parameter: Parameter, chosen: Any, like: torch.Tensor) -> torch.Tensor:
        """The canaries' gradients at one parameter, a row each: zero but at their coordinates."""
        rows = torch.zeros((chosen.size, *like.shape[1:]), dtype=like.dtype, device=like.device)
        for own, canaries, places in self._places:
            if own is parameter:
                inside = (chosen >= canaries.start) & (chosen < canaries.stop)
                row = torch.from_numpy(np.flatnonzero(inside)).to(like.device)
                column = places[torch.from_numpy(chosen[inside] - canaries.start).to(places.device)]
                rows.view(chosen.size, -1)[row, column] = OVERSIZE * float(self._optimizer.max_grad_norm)
        return rows

    @staticmethod
    def _restore(parts: list[tuple[Parameter, Any, torch.Tensor]]) -> None:
        """Leave the batch's own gradients where Opacus looks for them afterwards."""
        for p, original, _ in parts:
            p.grad_sample = original
            for tensor in original if isinstance(original, list) else [original]:
                tensor._processed = True


def _shuffled(batches: list[int], rate: float) -> str | None:
    """A warning if batch sizes are too equal for every example to have been sampled independently."""
    if len(batches) < _MANY_STEPS:
        return None
    ((size, alike),) = Counter(batches).most_common(1)
    if alike <= len(batches) / 2 or size * (1 - rate) < _SPREAD**2:
        return None
    return (
        f"{alike} of {len(batches)} batches have exactly {size} examples, so they seem to be shuffled. The "
        f"claim and the canaries assume that every example is sampled independently at rate {rate:g} "
        "(poisson_sampling=True in Opacus): the audit says nothing about the sampling that was actually done."
    )


def require_optimizer(optimizer: object, refused: tuple[type, ...], expected: str) -> None:
    """Refuse what is no optimizer of Opacus, and those of its kinds that canaries do not go with."""
    if not isinstance(optimizer, DPOptimizer):
        raise InputError("optimizer", type(optimizer).__name__, "the one that make_private returned")
    if isinstance(optimizer, refused):
        raise InputError("optimizer", type(optimizer).__name__, expected)


def with_tensors(state: dict[str, Any]) -> dict[str, Any]:
    """A state as a checkpoint of PyTorch takes it."""
    return {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in state.items()
    }


def with_arrays(state: dict[str, Any]) -> dict[str, Any]:
    """The same state as the cores take it."""
    return {
        name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in state.items()
    }
