"""Networks to audit: layers that Opacus can give a gradient per example, so no batch normalisation."""

from collections.abc import Callable

import torch
from torch import nn

from tightaudit.support.errors import InputError


def network(name: str, shape: tuple[int, ...], classes: int) -> nn.Module:
    """A network by name, for images of a shape.

    >>> sum(p.numel() for p in network("small", (1, 8, 8), 10).parameters())
    13706
    """
    makers: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {"small": _small, "resnet14": _resnet14}
    if name not in makers:
        raise InputError("model", name, f"one of {', '.join(makers)}")
    return makers[name](shape, classes)


def _small(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Two convolutions and two linear layers."""
    return nn.Sequential(
        nn.Conv2d(shape[0], 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


class _Residual(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.through = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
            nn.GroupNorm(8, after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.GroupNorm(8, after),
        )
        self.around: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.around = nn.Conv2d(before, after, 1, stride=stride, bias=False)
        self.last = nn.ReLU()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.last(self.through(images) + self.around(images))


def _resnet14(shape: tuple[int, ...], classes: int) -> nn.Module:
    """He et al.'s network for CIFAR with two residual blocks at each of three widths: 14 layers."""
    widths = ((16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1))
    return nn.Sequential(
        nn.Conv2d(shape[0], 16, 3, padding=1, bias=False),
        nn.GroupNorm(8, 16),
        nn.ReLU(),
        *(_Residual(*width) for width in widths),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )
