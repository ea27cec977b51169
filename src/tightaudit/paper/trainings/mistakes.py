"""Mistakes that people make in DP-SGD, to be planted in a training by Opacus before it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from opacus.optimizers import DPOptimizer
from torch.utils.data import DataLoader

from tightaudit.support.errors import InputError


@dataclass
class Session:
    """The parts of one training, as `make_private` returned them."""

    model: Any
    optimizer: Any
    loader: Any
    engine: Any
    canaries: Any = None

    @property
    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        held = {"model": self.model, "optimizer": self.optimizer, "accountant": self.engine.accountant}
        return held if self.canaries is None else {**held, "canaries": self.canaries}

    @property
    def parameters(self) -> list[Any]:
        """The parameters, with what Opacus hangs on them."""
        return [p for p in self.optimizer.params if p.requires_grad]


@dataclass(frozen=True)
class Mistake:
    """One mistake, and how to make it."""

    name: str
    said: str
    """What is wrong, for a sentence about the training."""
    plant: Callable[[Session], None]


def scaled_noise(factor: float) -> Callable[[Session], None]:
    """The noise that is added is this many times what the optimizer says."""

    def plant(session: Session) -> None:
        optimizer = session.optimizer
        add_noise = type(optimizer).add_noise

        def scaled() -> None:
            said = optimizer.noise_multiplier
            optimizer.noise_multiplier = said * factor
            try:
                add_noise(optimizer)
            finally:
                optimizer.noise_multiplier = said

        optimizer.add_noise = scaled

    return plant


def noise_drawn_by(draw: Callable[[Any, int], torch.Tensor]) -> Callable[[Session], None]:
    """Noise of the training's own making: a draw for each parameter and its place, of size 1."""

    def plant(session: Session) -> None:
        optimizer = session.optimizer

        def add_noise() -> None:
            size = optimizer.noise_multiplier * optimizer.max_grad_norm
            for place, p in enumerate(session.parameters):
                p.grad = (p.summed_grad + size * draw(p, place).reshape(p.shape)).view_as(p)

        optimizer.add_noise = add_noise

    return plant


def same_noise_every_step(session: Session) -> None:
    """A generator with a fixed seed is made anew in every step."""
    noise_drawn_by(lambda p, place: torch.randn(p.numel(), generator=torch.Generator().manual_seed(place)))(
        session
    )


def clipping_by(rule: Callable[[torch.Tensor, Session], torch.Tensor]) -> Callable[[Session], None]:
    """Another way to clip: from gradients per example, all parameters side by side, to their sum."""

    def plant(session: Session) -> None:
        def clip_and_accumulate() -> None:
            parts = [session.optimizer._get_flat_grad_sample(p) for p in session.parameters]
            flat = torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)
            sizes = [p.numel() for p in session.parameters]
            for p, piece in zip(session.parameters, torch.split(rule(flat, session), sizes), strict=True):
                summed = piece.reshape(p.shape)
                p.summed_grad = summed if p.summed_grad is None else p.summed_grad + summed
                for tensor in p.grad_sample if isinstance(p.grad_sample, list) else [p.grad_sample]:
                    tensor._processed = True

        session.optimizer.clip_and_accumulate = clip_and_accumulate

    return plant


def clipped(flat: torch.Tensor, norm: float) -> torch.Tensor:
    """Each row to at most this norm."""
    return flat * (norm / flat.norm(dim=1, keepdim=True).clamp(min=norm))


def clipped_per_tensor(flat: torch.Tensor, session: Session) -> torch.Tensor:
    """Each tensor of a record's gradient is clipped by itself."""
    sizes, norm = [p.numel() for p in session.parameters], session.optimizer.max_grad_norm
    return torch.cat([clipped(part, norm).sum(0) for part in torch.split(flat, sizes, dim=1)])


def loaded_by(**options: Any) -> Callable[[Session], None]:
    """An ordinary loader instead of the one that samples each record by itself."""

    def plant(session: Session) -> None:
        size = round(session.loader.sample_rate * len(session.loader.dataset))
        session.loader = DataLoader(session.loader.dataset, batch_size=size, **options)

    return plant


def every_other_step_unaccounted(session: Session) -> None:
    """Every other step is hidden from the accountant."""
    hook, calls = session.optimizer.step_hook, [0]

    def sometimes(optimizer: DPOptimizer) -> None:
        calls[0] += 1
        if calls[0] % 2:
            hook(optimizer)

    session.optimizer.attach_step_hook(sometimes)


MISTAKES = {
    mistake.name: mistake
    for mistake in (
        Mistake("less-noise", "only 90% of the noise is really added", scaled_noise(0.9)),
        Mistake("same-noise", "the noise is the same in every step", same_noise_every_step),
        Mistake(
            "per-tensor", "each tensor is clipped by itself, not each record", clipping_by(clipped_per_tensor)
        ),
        Mistake("shuffled", "batches are shuffled, not Poisson-sampled", loaded_by(shuffle=True)),
        Mistake(
            "unaccounted", "the accountant is told of every other step only", every_other_step_unaccounted
        ),
    )
}
"""Those that the demo can make."""


def as_mistake(name: str) -> Mistake:
    """A mistake by name.

    >>> as_mistake("less-noise").said
    'only 90% of the noise is really added'
    """
    if name not in MISTAKES:
        raise InputError("bug", name, f"one of {', '.join(MISTAKES)}")
    return MISTAKES[name]
