"""Canaries that own a coordinate of the gradient, inside an optimizer of Opacus.

    coins ──► every step: clipped sums, plus C at the coordinates of sampled canaries ──► noise ──► scores

Each canary owns one coordinate. In every step each included canary is sampled at the engine's rate by a coin
of its own, and adds the clipping norm C at its coordinate, after clipping and before the noise. The noisy sum
at the coordinates is what the mechanism releases; the score is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from opacus.optimizers import AdaClipDPOptimizer, DPOptimizer, DPOptimizerFastGradientClipping
from opacus.optimizers.ddpoptimizer import DistributedDPOptimizer
from opacus.optimizers.ddpoptimizer_fast_gradient_clipping import DistributedDPOptimizerFastGradientClipping
from opacus.optimizers.fsdpoptimizer_fast_gradient_clipping import FSDPOptimizerFastGradientClipping
from opacus.optimizers.perlayeroptimizer import DPPerLayerOptimizer
from scipy.optimize import brentq
from scipy.special import ndtr

from tightaudit import checks
from tightaudit.checks import FloatArray
from tightaudit.errors import InputError
from tightaudit.game import draw_coins
from tightaudit.run import Run
from tightaudit.tradeoffs.dpsgd import DpSgd

Parameter: TypeAlias = Any
"""A parameter on which Opacus has hung `grad_sample` and `summed_grad`."""
Insertion = Literal["after-clipping", "before-clipping"]
Score = Literal["log-likelihood-ratio", "sum", "spread"]

FORMAT = "tightaudit.white-box-canaries/1"
OVERSIZE = 10.0
"""How many clipping norms long a canary's gradient is before it is clipped."""
_COORDINATE_STREAM, _SAMPLING_STREAM = 101, 102
_UNSUPPORTED = (
    AdaClipDPOptimizer,
    DPPerLayerOptimizer,
    DistributedDPOptimizer,
    DistributedDPOptimizerFastGradientClipping,
    FSDPOptimizerFastGradientClipping,
)
_MARK = "_tightaudit_canaries"
_LEAST_NOISE = 1e-3
"""Of the noise that is said to be added: less is taken for none."""
_TOTALS = ("sums", "likelihood", "own", "squares")
"""What is added up over the steps: noisy sums, scores, the noisy sums less the batch's own, and squared."""
_WHY = (
    "every canary has its own coordinate of the gradient, its own noise there and its own sampling coins; "
    "the family because the canaries are sampled at rate q in each of the steps and the noise is Gaussian"
)


class WhiteBoxCanaries:
    """Canaries in the gradient of an optimizer that `PrivacyEngine.make_private` returned.

        canaries = WhiteBoxCanaries(optimizer, n=5000, sample_rate=loader.sample_rate)
        ...                                   # the training loop, unchanged
        report = ta.audit(canaries.run(), delta=1e-5)

    Supported: Poisson sampling, virtual steps (`BatchMemoryManager`), every optimizer that Opacus wraps, flat
    clipping, ghost clipping. Not supported, and refused: per-layer and adaptive clipping, distributed
    optimizers. The noise multiplier has to stay the same; the clipping norm may change.

    `insertion="before-clipping"` hands each canary in as one more per-example gradient, ten clipping norms
    long, so that mistakes in the clipping show too; it costs memory and a second pass of clipping, and does
    not go with ghost clipping, which has no per-example gradients.
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
        _require_supported(optimizer)
        if insertion not in get_args(Insertion):
            raise InputError("insertion", insertion, f"one of {', '.join(get_args(Insertion))}")
        if insertion == "before-clipping" and isinstance(optimizer, DPOptimizerFastGradientClipping):
            raise InputError(
                "insertion", insertion, "after-clipping: ghost clipping has no gradient per example"
            )
        self._optimizer, self._insertion = optimizer, insertion
        self._rate = checks.rate("sample_rate", sample_rate)
        self._sigma = checks.positive("noise_multiplier", optimizer.noise_multiplier, maximum=1e6)
        self._parameters = [p for p in optimizer.params if p.requires_grad]
        sizes = np.array([p.numel() for p in self._parameters])
        count = checks.count("n", n, minimum=1)
        if count > sizes.sum():
            raise InputError(
                "n", count, f"at most {sizes.sum()}, the coordinates of the model: one per canary"
            )
        coins = draw_coins(count, seed=seed)
        self._members, self._seed = coins.members, coins.seed
        self._sampling = self._stream(_SAMPLING_STREAM)
        # Sorted by coordinate, so that each parameter holds a slice of the canaries.
        chosen = self._stream(_COORDINATE_STREAM).choice(int(sizes.sum()), size=count, replace=False)
        self._coordinates = np.sort(chosen)
        self._places = self._places_in_parameters(sizes)
        self.steps = 0
        self._sums, self._likelihood = np.zeros(count), np.zeros(count)
        self._own, self._squares = np.zeros(count), np.zeros(count)
        self._noise = 0.0
        self._begin_step()
        self._attach()

    @property
    def n(self) -> int:
        """The number of canaries."""
        return int(self._members.size)

    @property
    def claim(self) -> DpSgd:
        """What the optimizer's own settings promise after the steps taken so far."""
        if self.steps == 0:
            raise InputError("steps", 0, "at least one step of training")
        return DpSgd(self._sigma, self._rate, self.steps)

    def run(self, score: Score = "log-likelihood-ratio") -> Run:
        """Scores and secret bits of the steps taken so far.

        `log-likelihood-ratio`, the best there is: Σ ln(1-q+q·e^((x-1/2)/σ²)) over the steps, x the noisy sum
        in units of C less the batch's own share, σ the noise as it shows in the x so far. `sum` is the
        plain sum of the noisy gradients. `spread` is the standard deviation of x over the steps: poor on an
        honest run, but it sees noise that repeats.
        """
        if score not in get_args(Score):
            raise InputError("score", score, f"one of {', '.join(get_args(Score))}")
        claim = self.claim
        scores = {
            "log-likelihood-ratio": self._likelihood,
            "sum": self._sums,
            "spread": np.sqrt(np.maximum(self._squares / self.steps - (self._own / self.steps) ** 2, 0)),
        }
        return Run(
            scores=scores[score],
            members=self._members,
            ids=self._coordinates,
            independent=True,
            why=_WHY,
            claim=claim,
            shape=claim.own_family(),
            threshold=0.0 if score == "log-likelihood-ratio" else None,
            seed=self._seed,
            source=f"white-box canaries, {self._insertion}",
        )

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, secret bits included: for the checkpoint of the model."""
        return {
            "format": FORMAT,
            "n": self.n,
            "seed": self._seed,
            "sample_rate": self._rate,
            "noise_multiplier": self._sigma,
            "insertion": self._insertion,
            "coordinates": torch.from_numpy(self._coordinates.copy()),
            "members": torch.from_numpy(self._members.copy()),
            "sampling": self._sampling.bit_generator.state,
            "steps": self.steps,
            "noise": self._noise,
            **{name: torch.from_numpy(getattr(self, f"_{name}").copy()) for name in _TOTALS},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint: the same bits, the same coordinates, the scores so far."""
        if state.get("format") != FORMAT:
            raise InputError("state", state.get("format"), f"a state in the format {FORMAT}")
        for name, own in (
            ("n", self.n),
            ("sample_rate", self._rate),
            ("noise_multiplier", self._sigma),
            ("insertion", self._insertion),
        ):
            if state[name] != own:
                raise InputError(f"state: {name}", state[name], f"{own}, as attached")
        self._members, self._seed = state["members"].numpy().copy(), state["seed"]
        self._coordinates = state["coordinates"].numpy().copy()
        self._places = self._places_in_parameters(np.array([p.numel() for p in self._parameters]))
        self._sampling = self._stream(_SAMPLING_STREAM)
        self._sampling.bit_generator.state = state["sampling"]
        self.steps, self._noise = state["steps"], state["noise"]
        for name in _TOTALS:
            setattr(self, f"_{name}", state[name].numpy().copy())
        self._begin_step()

    def detach(self) -> None:
        """Leave the optimizer as it was."""
        self._optimizer.add_noise, self._optimizer.clip_and_accumulate = self._originals
        del self._optimizer.__dict__[_MARK]

    def _stream(self, stream: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(stream,)))

    def _places_in_parameters(self, sizes: Any) -> list[tuple[Parameter, slice, torch.Tensor]]:
        """For each parameter the canaries in it, as a slice, and their places in it."""
        ends = np.cumsum(sizes)
        starts = ends - sizes
        bounds = np.searchsorted(self._coordinates, np.append(starts, ends[-1]))
        return [
            (
                parameter,
                slice(first, last),
                torch.from_numpy(self._coordinates[first:last] - start).to(parameter.device),
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
        if self._insertion == "before-clipping":
            self._optimizer.clip_and_accumulate = lambda: self._clip_with_canaries(clip)

    def _begin_step(self) -> None:
        self._share = np.zeros(self.n)
        self._inserted = False

    def _sampled(self) -> Any:
        """Which canaries take part in this step; a coin is spent on those that are out too."""
        return self._members & (self._sampling.random(self.n) < self._rate)

    def _noise_and_record(self, add_noise: Callable[[], None]) -> None:
        if self._optimizer.noise_multiplier != self._sigma:
            raise InputError(
                "noise_multiplier", self._optimizer.noise_multiplier, f"{self._sigma}, as in the steps before"
            )
        norm = float(self._optimizer.max_grad_norm)
        if self._insertion == "after-clipping":
            self._share = self._at_coordinates("summed_grad")
            sampled = torch.from_numpy(self._sampled())
            for parameter, canaries, places in self._places:
                here = places[sampled[canaries].to(places.device)]
                flat = parameter.summed_grad.contiguous().view(-1)
                flat[here] += norm
                parameter.summed_grad = flat.view_as(parameter.summed_grad)
        add_noise()
        released = self._at_coordinates("grad") / norm
        self._sums += released
        x = released - self._share / norm
        self._own += x
        self._squares += x**2
        self.steps += 1
        # The noise as it is, not as it is said to be: with another σ the scores of all canaries would drift
        # to one side. It is read off the transcript, so any use of it is fair.
        self._noise += (self._noise_seen(x) - self._noise) / self.steps
        log_rest = np.log1p(-self._rate) if self._rate < 1 else -np.inf
        self._likelihood += np.logaddexp(log_rest, np.log(self._rate) + (x - 0.5) / self._noise**2)
        self._begin_step()

    def _noise_seen(self, x: FloatArray) -> float:
        """The σ at which |x| has the median it has, if canaries are in and sampled as often as expected."""
        share, middle = self._rate / 2, float(np.median(np.abs(x)))

        def excess(sigma: float) -> float:
            out = 2 * ndtr(middle / sigma) - 1
            sampled = ndtr((middle - 1) / sigma) - ndtr((-middle - 1) / sigma)
            return float((1 - share) * out + share * sampled - 0.5)

        smallest, largest = _LEAST_NOISE * self._sigma, self._sigma / _LEAST_NOISE
        if excess(smallest) <= 0:
            return smallest
        return largest if excess(largest) >= 0 else float(brentq(excess, smallest, largest, rtol=1e-10))

    def _at_coordinates(self, name: str) -> FloatArray:
        values = np.empty(self.n)
        for parameter, canaries, places in self._places:
            values[canaries] = getattr(parameter, name).detach().reshape(-1)[places].double().cpu().numpy()
        return values

    def _clip_with_canaries(self, clip: Callable[[], None]) -> None:
        """Clip the batch alone, to know its share, then again with the canaries among its examples."""
        optimizer = self._optimizer
        parts = [(p, p.grad_sample, optimizer._get_flat_grad_sample(p)) for p in optimizer.params]
        before = [None if p.summed_grad is None else p.summed_grad.clone() for p, _, _ in parts]
        held = self._held(before, optimizer.params)
        for p, _, examples in parts:
            p.grad_sample = examples.clone()
        clip()
        self._share += self._at_coordinates("summed_grad") - held
        if self._inserted:
            self._restore(parts)
            return
        self._inserted = True
        chosen = np.flatnonzero(self._sampled())
        for (p, _, examples), earlier in zip(parts, before, strict=True):
            p.summed_grad = earlier
            p.grad_sample = torch.cat([examples, self._gradients(p, chosen, examples)])
        clip()
        self._restore(parts)

    def _held(self, before: list[torch.Tensor | None], parameters: list[Parameter]) -> FloatArray:
        """What earlier parts of a virtual step left at the coordinates."""
        if any(tensor is None for tensor in before):
            return np.zeros(self.n)
        values = np.empty(self.n)
        summed = {id(p): tensor for p, tensor in zip(parameters, before, strict=True)}
        for parameter, canaries, places in self._places:
            tensor = summed[id(parameter)]
            assert tensor is not None
            values[canaries] = tensor.reshape(-1)[places].double().cpu().numpy()
        return values

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


def _require_supported(optimizer: object) -> None:
    if not isinstance(optimizer, DPOptimizer):
        raise InputError("optimizer", type(optimizer).__name__, "the one that make_private returned")
    if isinstance(optimizer, _UNSUPPORTED):
        raise InputError(
            "optimizer",
            type(optimizer).__name__,
            "flat or ghost clipping on one device; not per-layer, adaptive or distributed",
        )
