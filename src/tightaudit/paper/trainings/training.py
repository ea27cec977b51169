"""One training by DP-SGD with canaries in it, which survives being killed."""

import itertools
import math
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader

from tightaudit.canaries.opacus import WhiteBoxCanaries
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.paper.trainings.data import Images
from tightaudit.paper.trainings.networks import network
from tightaudit.support import checks
from tightaudit.support.errors import InputError
from tightaudit.support.progress import Progress
from tightaudit.support.writing import replacing

CHECKPOINT_SECONDS = float(os.environ.get("TIGHTAUDIT_CHECKPOINT_SECONDS", "20"))
CLIPPING_NORM = 1.0


@dataclass(frozen=True)
class Recipe:
    """What is trained, and how."""

    model: str = "small"
    batch_size: int = 150
    steps: int = 200
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: float = 0.5
    canaries: int = 5000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, minimum in (("batch_size", 1), ("steps", 1), ("canaries", 0)):
            object.__setattr__(self, name, checks.count(name, getattr(self, name), minimum=minimum))
        object.__setattr__(self, "seed", checks.seed(self.seed))
        object.__setattr__(
            self, "learning_rate", checks.positive("learning_rate", self.learning_rate, maximum=1e6)
        )
        if self.optimizer not in ("sgd", "adam"):
            raise InputError("optimizer", self.optimizer, "sgd or adam")

    def rate(self, images: Images) -> float:
        """The sampling rate: batches of the size asked for on average."""
        if self.batch_size > len(images.train):
            raise InputError(
                "batch_size", self.batch_size, f"at most {len(images.train)}, the number of training images"
            )
        return 1 / len(DataLoader(images.train, batch_size=self.batch_size))

    def sigma(self, images: Images, epsilon: float, delta: float) -> float:
        """The noise multiplier at which the whole training is (ε, δ)-DP and hardly more.

        >>> from tightaudit.paper.trainings.data import load
        >>> round(Recipe(steps=200).sigma(load("digits"), epsilon=8.0, delta=1e-5), 2)
        1.13
        """
        family = DpSgd.family(q=self.rate(images), steps=self.steps)
        found = family.at_epsilon(epsilon, delta)
        assert isinstance(found, DpSgd)
        return math.ceil(1e4 * found.sigma) / 1e4  # a number to print, on the private side


@dataclass(frozen=True)
class Trained:
    """What came out of a training."""

    canaries: WhiteBoxCanaries | None
    """None if the recipe has none."""
    accuracy: float
    """Share of the test images that are labelled correctly."""
    accountant_epsilon: float
    """What Opacus's own accountant says."""
    seconds: float


def train(
    images: Images,
    recipe: Recipe,
    sigma: float,
    *,
    delta: float,
    noise_factor: float = 1.0,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train once. With a checkpoint, go on where a killed training stopped.

    `noise_factor` scales the noise that is really added, behind the accountant's back.
    """
    torch.manual_seed(recipe.seed)
    model: Any = network(recipe.model, images.shape, images.classes)
    makers = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    plain = makers[recipe.optimizer](model.parameters(), lr=recipe.learning_rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns that its noise is not cryptographic
        engine = PrivacyEngine(accountant="prv")
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=plain,
            data_loader=DataLoader(images.train, batch_size=recipe.batch_size),
            noise_multiplier=sigma,
            max_grad_norm=CLIPPING_NORM,
        )
    if noise_factor != 1:
        scale_noise(optimizer, noise_factor)
    parts = {"model": model, "optimizer": optimizer, "accountant": engine.accountant}
    inside = None
    if recipe.canaries:
        rate = loader.sample_rate
        inside = WhiteBoxCanaries(optimizer, n=recipe.canaries, sample_rate=rate, seed=recipe.seed)
        parts["canaries"] = inside
    steps, spent = _resume(checkpoint, parts)
    started = saved = time.monotonic()
    criterion = nn.CrossEntropyLoss()
    model.train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hooks of Opacus, and empty batches
        for inputs, labels in itertools.islice(_batches(loader), recipe.steps - steps):
            optimizer.zero_grad()
            criterion(model(inputs), labels).backward()
            optimizer.step()
            steps += 1
            if progress is not None:
                progress(steps, recipe.steps)
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                _save(checkpoint, parts, steps, spent + time.monotonic() - started)
                saved = time.monotonic()
    seconds = spent + time.monotonic() - started
    if checkpoint is not None:
        _save(checkpoint, parts, steps, seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the accountant's on its search for a grid
        epsilon = engine.get_epsilon(delta)
    return Trained(inside, _accuracy(model, images), epsilon, seconds)


def scale_noise(optimizer: Any, factor: float) -> None:
    """A bug to catch: the noise added is this many times what the optimizer says."""
    add_noise = type(optimizer).add_noise

    def scaled() -> None:
        said = optimizer.noise_multiplier
        optimizer.noise_multiplier = said * factor
        try:
            add_noise(optimizer)
        finally:
            optimizer.noise_multiplier = said

    optimizer.add_noise = scaled


def _batches(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def _save(path: Path, parts: dict[str, Any], steps: int, seconds: float) -> None:
    state = {name: part.state_dict() for name, part in parts.items()}
    state |= {"random": torch.get_rng_state(), "steps": steps, "seconds": seconds}
    with replacing(path) as file:
        torch.save(state, file)


def _resume(path: Path | None, parts: dict[str, Any]) -> tuple[int, float]:
    """Bring everything back to where the checkpoint was written; steps taken and seconds spent by then."""
    if path is None or not path.exists():
        return 0, 0.0
    state = torch.load(path, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    torch.set_rng_state(state["random"])
    return int(state["steps"]), float(state["seconds"])


@torch.no_grad()
def _accuracy(model: Any, images: Images) -> float:
    model.eval()
    inputs, labels = images.test.tensors
    found = [model(part).argmax(dim=1) for part in torch.split(inputs, 512)]
    return float((torch.cat(found) == labels).double().mean())
