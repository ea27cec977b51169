"""Mistakes that people make in DP-SGD, planted in real Opacus trainings, and what only looks like one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tightaudit.canaries.records import RecordCanaries

SIGMA, NORM, N, REAL, RATE, EPOCHS = 1.0, 1.0, 600, 600, 0.2, 12


class Training:
    """A small model with canaries among its records; mistakes are planted before it runs."""

    def __init__(self, seed: int = 0) -> None:
        torch.manual_seed(seed)
        inputs = torch.randn(REAL, 20)
        self.canaries = RecordCanaries(N, seed=seed)
        self.data = self.canaries.join(TensorDataset(inputs, (inputs[:, 0] > 0).long()))
        model = self.canaries.wrap(nn.Sequential(nn.Linear(20, 10), nn.ReLU(), nn.Linear(10, 2)))
        self.engine, self.criterion = PrivacyEngine(), nn.CrossEntropyLoss()
        self.size = round(RATE * len(self.data))  # type: ignore[arg-type]
        self.model, self.optimizer, self.loader = self.engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
            data_loader=DataLoader(self.data, batch_size=self.size),
            noise_multiplier=SIGMA,
            max_grad_norm=NORM,
        )
        self.canaries.attach(self.engine, self.optimizer)

    def run(self) -> None:
        """Train for 60 steps."""
        for _ in range(EPOCHS):
            for inputs, targets, ids in self.loader:
                self.optimizer.zero_grad()
                self.criterion(self.model(inputs, ids), targets).backward()
                self.optimizer.step()

    @property
    def parameters(self) -> list[Any]:
        """The parameters, with what Opacus hangs on them."""
        return [p for p in self.optimizer.params if p.requires_grad]


@dataclass(frozen=True)
class Mistake:
    """What is planted, where it was seen, and the words that name it; None if nothing is to be named."""

    name: str
    source: str
    plant: Callable[[Training], None]
    named: str | None


def _scaled_noise(factor: float) -> Callable[[Training], None]:
    def plant(training: Training) -> None:
        optimizer = training.optimizer

        def add_noise() -> None:
            optimizer.noise_multiplier = factor * SIGMA
            DPOptimizer.add_noise(optimizer)
            optimizer.noise_multiplier = SIGMA

        optimizer.add_noise = add_noise

    return plant


def _with_noise(draw: Callable[[Any, int], torch.Tensor]) -> Callable[[Training], None]:
    """Noise of the training's own making, one tensor per parameter."""

    def plant(training: Training) -> None:
        def add_noise() -> None:
            for place, p in enumerate(training.parameters):
                noise = SIGMA * NORM * draw(p, place)
                p.grad = (p.summed_grad + noise.reshape(p.shape)).view_as(p)

        training.optimizer.add_noise = add_noise

    return plant


def _seeded(seed: Callable[[Any, int], int]) -> Callable[[Training], None]:
    return _with_noise(
        lambda p, place: torch.randn(p.numel(), generator=torch.Generator().manual_seed(seed(p, place)))
    )


def _same_by_shape(training: Training) -> None:
    """One key a step, and tensors of one shape get the same numbers from it."""
    drawn: dict[int, torch.Tensor] = {}

    def draw(p: Any, place: int) -> torch.Tensor:
        if place == 0:
            drawn.clear()
        return drawn.setdefault(p.numel(), torch.randn(p.numel()))

    _with_noise(draw)(training)


def _summed(rule: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Training], None]:
    """Another way to clip: from gradients per example, all parameters side by side, to their sum."""

    def plant(training: Training) -> None:
        def clip_and_accumulate() -> None:
            parts = [training.optimizer._get_flat_grad_sample(p) for p in training.parameters]
            flat = torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)
            sizes = [p.numel() for p in training.parameters]
            for p, piece in zip(training.parameters, torch.split(rule(flat), sizes), strict=True):
                p.summed_grad = piece.reshape(p.shape)
                for tensor in p.grad_sample if isinstance(p.grad_sample, list) else [p.grad_sample]:
                    tensor._processed = True

        training.optimizer.clip_and_accumulate = clip_and_accumulate

    return plant


def _clipped(flat: torch.Tensor) -> torch.Tensor:
    return flat * (NORM / flat.norm(dim=1, keepdim=True).clamp(min=NORM))


def _per_tensor(training: Training) -> None:
    sizes = [p.numel() for p in training.parameters]

    def summed(flat: torch.Tensor) -> torch.Tensor:
        return torch.cat([_clipped(part).sum(0) for part in torch.split(flat, sizes, dim=1)])

    _summed(summed)(training)


def _batch_clipped(flat: torch.Tensor) -> torch.Tensor:
    total = flat.mean(0)
    return len(flat) * total * min(1.0, NORM / float(total.norm()))


def _loader(**options: Any) -> Callable[[Training], None]:
    def plant(training: Training) -> None:
        training.loader = DataLoader(training.data, batch_size=training.size, **options)

    return plant


class _Batches:
    """Batches of indices that a function draws, five an epoch."""

    def __init__(self, draw: Callable[[int], torch.Tensor]) -> None:
        self._draw = draw

    def __iter__(self) -> Any:
        return (self._draw(step).tolist() for step in range(round(1 / RATE)))

    def __len__(self) -> int:
        return round(1 / RATE)


def _batches(draw: Callable[[int, int], torch.Tensor]) -> Callable[[Training], None]:
    def plant(training: Training) -> None:
        count = len(training.data)  # type: ignore[arg-type]
        training.loader = DataLoader(
            training.data, batch_sampler=_Batches(lambda _: draw(count, training.size))
        )

    return plant


def _unaccounted(training: Training) -> None:
    """Every other step is hidden from the accountant."""
    hook, calls = training.optimizer.step_hook, [0]

    def sometimes(optimizer: Any) -> None:
        calls[0] += 1
        if calls[0] % 2:
            hook(optimizer)

    training.optimizer.attach_step_hook(sometimes)


def _binomial_subset(count: int, _: int) -> torch.Tensor:
    size = int((torch.rand(count) < RATE).sum())
    return torch.randperm(count)[:size]


ZOO = (
    Mistake("none", "", lambda _: None, None),
    Mistake(
        "noise for a mean added to a sum: sensitivity wrong by the batch size",
        "Tramèr et al., arXiv 2202.12219",
        _scaled_noise(1 / 240),
        "the noise is 0.00 of what was asked for",
    ),
    Mistake("noise divided by four accumulation steps", "", _scaled_noise(0.25), "the noise is 0.25 of"),
    Mistake("five percent too little noise", "", _scaled_noise(0.95), "the noise is 0.95 of"),
    Mistake(
        "the norm ignored when clipping",
        "Opacus, pull request 664",
        _summed(lambda f: f.sum(0)),
        "contributions are",
    ),
    Mistake("clipping per tensor", "Fed-BioMed, issue 1443", _per_tensor, "clipping is per tensor"),
    Mistake(
        "clipping the batch's gradient", "APPFL, issue 349", _summed(_batch_clipped), "contributions are"
    ),
    Mistake(
        "an unclipped mean mixed in",
        "",
        _summed(lambda flat: _clipped(flat).sum(0) + flat.mean(0)),
        "contributions are",
    ),
    Mistake(
        "the same noise in every step", "", _seeded(lambda _, place: place), "noise repeats from step to step"
    ),
    Mistake(
        "the same noise for tensors of one shape",
        "JAX, pull request 3646",
        _same_by_shape,
        "the noise of two tensors is correlated",
    ),
    Mistake(
        "one noise value for a whole tensor",
        "",
        _with_noise(lambda p, _: torch.randn(1).expand(p.numel())),
        "coordinates share noise",
    ),
    Mistake(
        "uniform noise of the same size",
        "",
        _with_noise(lambda p, _: 12**0.5 * (torch.rand(p.numel()) - 0.5)),
        "the noise is not Gaussian",
    ),
    Mistake("shuffled epochs", "JAX-Privacy's example", _loader(shuffle=True), "batches are shuffled"),
    Mistake("shuffled once, then in a fixed order", "", _loader(shuffle=False), "batches are shuffled"),
    Mistake(
        "the last, incomplete batch dropped",
        "",
        _loader(shuffle=True, drop_last=True),
        "batches are shuffled",
    ),
    Mistake(
        "sampling with replacement",
        "",
        _batches(lambda count, size: torch.randint(count, (size,))),
        "records are used more than once in a step",
    ),
    Mistake(
        "batches of a fixed size without replacement",
        "",
        _batches(lambda count, size: torch.randperm(count)[:size]),
        "batches have a fixed size",
    ),
    Mistake(
        "a rate a quarter above the one accounted for",
        "",
        _batches(lambda count, _: torch.nonzero(torch.rand(count) < 1.25 * RATE).flatten()),
        "records are sampled at the rate",
    ),
    Mistake("more steps than accounted for", "", _unaccounted, "60 steps were taken and 30 accounted for"),
    Mistake("control: ten percent too much noise", "JAX-Privacy, issue 383", _scaled_noise(1.1), None),
    Mistake(
        "control: a uniform subset of binomial size, which is Poisson sampling",
        "",
        _batches(_binomial_subset),
        None,
    ),
    Mistake(
        "control: a rate below the one accounted for",
        "",
        _batches(lambda count, _: torch.nonzero(torch.rand(count) < 0.8 * RATE).flatten()),
        None,
    ),
)
