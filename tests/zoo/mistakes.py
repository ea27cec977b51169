"""Mistakes that people make in DP-SGD, planted in real Opacus trainings, and what only looks like one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tightaudit.canaries.bank import Coin
from tightaudit.canaries.opacus import RecordCanaries
from tightaudit.paper.trainings.mistakes import (
    Session,
    clipped,
    clipped_per_tensor,
    clipping_by,
    every_other_step_unaccounted,
    loaded_by,
    noise_drawn_by,
    same_noise_every_step,
    scaled_noise,
)

SIGMA, NORM, N, REAL, RATE, EPOCHS = 1.0, 1.0, 600, 600, 0.2, 12
MICRO = 4
"""Parts of a batch, where one is accumulated."""


class Training(Session):
    """A small model with canaries among its records; mistakes are planted before it runs."""

    def __init__(self, seed: int = 0, *, coin: Coin = "canary", mode: str = "hooks") -> None:
        torch.manual_seed(seed)
        inputs = torch.randn(REAL, 20)
        canaries = RecordCanaries(N, seed=seed, coin=coin)
        records: Any = canaries.join(TensorDataset(inputs, (inputs[:, 0] > 0).long()))
        self.data = records
        model = canaries.wrap(nn.Sequential(nn.Linear(20, 10), nn.ReLU(), nn.Linear(10, 2)))
        engine, self.criterion = PrivacyEngine(), nn.CrossEntropyLoss()
        self.size = round(RATE * len(self.data))
        made = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
            data_loader=DataLoader(self.data, batch_size=self.size),
            criterion=self.criterion,
            noise_multiplier=SIGMA,
            max_grad_norm=NORM,
            grad_sample_mode=mode,
        )
        if mode == "ghost":
            private, optimizer, self.criterion, loader = made
        else:
            private, optimizer, loader = made
        super().__init__(private, optimizer, loader, engine, canaries)
        self.accumulates = False
        canaries.attach(engine, optimizer)

    def run(self) -> None:
        """Train for 60 steps."""
        for _ in range(EPOCHS):
            for inputs, targets, ids in self._batches():
                self.optimizer.zero_grad()
                self.criterion(self.model(inputs, ids=ids), targets).backward()
                self.optimizer.step()

    def _batches(self) -> Iterator[Any]:
        if not self.accumulates:
            yield from self.loader
            return
        most = self.size // MICRO
        with BatchMemoryManager(
            data_loader=self.loader, max_physical_batch_size=most, optimizer=self.optimizer
        ) as parts:
            yield from parts


Plant = Callable[[Any], None]


@dataclass(frozen=True)
class ZooMistake:
    """What is planted, where it was seen, and the words that name it; None if nothing is to be named.

    Some show only in what the check-up notes, not among its faults.
    """

    name: str
    source: str
    plant: Plant
    named: str | None
    mode: str = "hooks"
    noted: bool = False


def _ghost_without_norm(training: Training) -> None:
    """The clipping factors that ghost clipping works out are all 1."""
    module = training.model
    factors = module.get_clipping_coef
    module.get_clipping_coef = lambda: torch.ones_like(factors())


def _same_by_shape(training: Training) -> None:
    """One key a step, and tensors of one shape get the same numbers from it."""
    drawn: dict[int, torch.Tensor] = {}

    def draw(p: Any, place: int) -> torch.Tensor:
        if place == 0:
            drawn.clear()
        return drawn.setdefault(p.numel(), torch.randn(p.numel()))

    noise_drawn_by(draw)(training)


def _batch_clipped(flat: torch.Tensor, _: Session) -> torch.Tensor:
    total = flat.mean(0)
    return len(flat) * total * min(1.0, NORM / float(total.norm()))


def _pairs_clipped(flat: torch.Tensor, _: Session) -> torch.Tensor:
    """Micro-batches of two records: their mean is clipped, not each of them."""
    return torch.stack([clipped(part.mean(0)[None], NORM)[0] for part in torch.split(flat, 2)]).sum(0)


class _Batches:
    """Batches of indices that a function draws, as many as an epoch has."""

    def __init__(self, draw: Callable[[], torch.Tensor]) -> None:
        self._draw = draw

    def __iter__(self) -> Iterator[list[int]]:
        return (self._draw().tolist() for _ in range(round(1 / RATE)))

    def __len__(self) -> int:
        return round(1 / RATE)


def _batches(draw: Callable[[int, int], torch.Tensor]) -> Plant:
    def plant(training: Training) -> None:
        count = len(training.data)
        sampler = _Batches(lambda: draw(count, training.size))
        training.loader = DataLoader(training.data, batch_sampler=sampler)

    return plant


def _sampled_at(factor: float) -> Plant:
    return _batches(lambda count, _: torch.nonzero(torch.rand(count) < factor * RATE).flatten())


def _binomial_subset(count: int, _: int) -> torch.Tensor:
    size = int((torch.rand(count) < RATE).sum())
    return torch.randperm(count)[:size]


def _fixed_order(training: Training) -> None:
    """Shuffled once, then in the same order in every epoch."""
    order = torch.randperm(len(training.data)).tolist()
    training.loader = DataLoader(training.data, batch_size=training.size, sampler=order)


def _dropped(training: Training) -> None:
    """Batches that do not come out even, the last one dropped."""
    training.loader = DataLoader(training.data, batch_size=training.size - 10, shuffle=True, drop_last=True)


def _divided_by_actual_size(training: Training) -> None:
    """The mean is taken over the records that happen to be in the batch."""
    optimizer = training.optimizer

    def scale_grad() -> None:
        for p in training.parameters:
            p.grad /= max(1, len(p.grad_sample))

    optimizer.scale_grad = scale_grad


def _accumulating(plant: Plant) -> Plant:
    def both(training: Training) -> None:
        training.accumulates = True
        plant(training)

    return both


def _noise_in_every_part(size: float) -> Plant:
    """Noise is added to each micro-batch when it is accumulated, and none at the end."""

    def plant(training: Training) -> None:
        optimizer = training.optimizer
        clip = optimizer.clip_and_accumulate

        def noisy() -> None:
            clip()
            for p in training.parameters:
                p.summed_grad = p.summed_grad + size * SIGMA * NORM * torch.randn(p.shape)

        def none() -> None:
            for p in training.parameters:
                p.grad = p.summed_grad.view_as(p).clone()

        optimizer.clip_and_accumulate, optimizer.add_noise = noisy, none

    return plant


def _divided_noise(training: Training) -> None:
    scaled_noise(1 / MICRO)(training)


ZOO = (
    ZooMistake("none", "", lambda _: None, None),
    ZooMistake(
        "noise for a mean added to a sum: sensitivity wrong by the batch size",
        "Tramèr et al., arXiv 2202.12219",
        scaled_noise(1 / 240),
        "the noise is 0.004",
    ),
    ZooMistake(
        "noise divided by the accumulation steps", "", _accumulating(_divided_noise), "the noise is 0.2"
    ),
    ZooMistake(
        "noise in every micro-batch, a part of it each",
        "",
        _accumulating(_noise_in_every_part(1 / MICRO)),
        "the noise is 0.5",
    ),
    ZooMistake("five percent too little noise", "", scaled_noise(0.95), "the noise is 0.9"),
    ZooMistake(
        "ghost clipping that ignores the norm",
        "Opacus, pull request 664",
        _ghost_without_norm,
        "contributions are",
        mode="ghost",
    ),
    ZooMistake(
        "clipping per tensor",
        "Fed-BioMed, issue 1443",
        clipping_by(clipped_per_tensor),
        "clipping is per tensor",
    ),
    ZooMistake(
        "clipping the batch's gradient", "APPFL, issue 349", clipping_by(_batch_clipped), "contributions are"
    ),
    ZooMistake(
        "clipping the mean of micro-batches",
        "TensorFlow Privacy, issue 620",
        clipping_by(_pairs_clipped),
        "not record by record",
        noted=True,
    ),
    ZooMistake(
        "an unclipped mean mixed in",
        "",
        clipping_by(lambda flat, _: clipped(flat, NORM).sum(0) + flat.mean(0)),
        "contributions are",
    ),
    ZooMistake("the same noise in every step", "", same_noise_every_step, "noise repeats from step to step"),
    ZooMistake(
        "the same noise for tensors of one shape",
        "JAX, pull request 3646",
        _same_by_shape,
        "the noise of two tensors is correlated",
    ),
    ZooMistake(
        "one noise value for a whole tensor",
        "",
        noise_drawn_by(lambda p, _: torch.randn(1).expand(p.numel())),
        "coordinates share noise",
    ),
    ZooMistake(
        "uniform noise of the same size",
        "",
        noise_drawn_by(lambda p, _: 12**0.5 * (torch.rand(p.numel()) - 0.5)),
        "the noise is not Gaussian",
    ),
    ZooMistake(
        "noise in half precision",
        "",
        noise_drawn_by(lambda p, _: torch.randn(p.numel()).half().float()),
        "the noise has too low a precision",
    ),
    ZooMistake(
        "shuffled epochs",
        "JAX-Privacy's example jax_api_example.py",
        loaded_by(shuffle=True),
        "batches are shuffled",
    ),
    ZooMistake("shuffled once, then in a fixed order", "", _fixed_order, "batches are shuffled"),
    ZooMistake("the last, incomplete batch dropped", "", _dropped, "batches are shuffled"),
    ZooMistake(
        "sampling with replacement",
        "",
        _batches(lambda count, size: torch.randint(count, (size,))),
        "records are used more than once in a step",
    ),
    ZooMistake(
        "batches of a fixed size without replacement",
        "",
        _batches(lambda count, size: torch.randperm(count)[:size]),
        "batches have a fixed size",
    ),
    ZooMistake(
        "a rate a quarter above the one accounted for", "", _sampled_at(1.25), "records are sampled at"
    ),
    ZooMistake(
        "division by the actual size of the batch",
        "",
        _divided_by_actual_size,
        "gradients are divided by the actual size",
    ),
    ZooMistake(
        "more steps than accounted for",
        "",
        every_other_step_unaccounted,
        "60 steps were taken and 30 accounted for",
    ),
    ZooMistake("control: ten percent too much noise", "JAX-Privacy, issue 383", scaled_noise(1.1), None),
    ZooMistake(
        "control: all of the noise in every micro-batch",
        "Optax, issue 527",
        _accumulating(_noise_in_every_part(1.0)),
        None,
    ),
    ZooMistake("control: accumulated batches", "", _accumulating(lambda _: None), None),
    ZooMistake(
        "control: a uniform subset of binomial size, which is Poisson sampling",
        "",
        _batches(_binomial_subset),
        None,
    ),
    ZooMistake("control: a rate below the one accounted for", "", _sampled_at(0.8), None),
)
