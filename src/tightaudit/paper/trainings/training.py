"""One training by DP-SGD with canaries in it, which survives being killed."""

import itertools
import math
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader

from tightaudit.canaries.bank import Coin
from tightaudit.canaries.opacus import RecordCanaries, WhiteBoxCanaries
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.paper.trainings.data import Images
from tightaudit.paper.trainings.mistakes import Mistake, Session
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
    planting: Literal["gradient", "records"] = "gradient"
    """Whether canaries are inserted into the gradient, or are records beside the images."""
    coin: Coin = "canary"
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
        if self.planting not in ("gradient", "records"):
            raise InputError("planting", self.planting, "gradient or records")

    def records(self, images: Images) -> int:
        """How many records are sampled from: images, and canaries where they are records."""
        return len(images.train) + (self.canaries if self.planting == "records" else 0)

    def records_per_step(self, images: Images) -> int:
        """Images as many as asked for on average, and as large a share of the canaries."""
        if self.batch_size > len(images.train):
            raise InputError(
                "batch_size", self.batch_size, f"at most {len(images.train)}, the number of training images"
            )
        return math.ceil(self.batch_size * self.records(images) / len(images.train))

    def rate(self, images: Images) -> float:
        """The sampling rate as Opacus has it: one over the number of batches."""
        return 1 / math.ceil(self.records(images) / self.records_per_step(images))

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

    canaries: WhiteBoxCanaries | RecordCanaries | None
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
    mistake: Mistake | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train once, with a mistake if one is given. With a checkpoint, go on where a killed training stopped.

    Checkpoints are written between epochs, so that the training which goes on is the one that was killed.
    """
    session = _session(images, recipe, sigma)
    if mistake is not None:
        mistake.plant(session)
    if session.canaries is not None:
        session.canaries.attach(session.engine, session.optimizer)
    steps, spent = _resume(checkpoint, session.parts)
    started = saved = time.monotonic()
    criterion = nn.CrossEntropyLoss()
    session.model.train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hooks of Opacus, and empty batches
        while steps < recipe.steps:
            for inputs, labels, *ids in itertools.islice(session.loader, recipe.steps - steps):
                session.optimizer.zero_grad()
                outputs = session.model(inputs, ids=ids[0]) if ids else session.model(inputs)
                criterion(outputs, labels).backward()
                session.optimizer.step()
                steps += 1
                if progress is not None:
                    progress(steps, recipe.steps)
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                _save(checkpoint, session.parts, steps, spent + time.monotonic() - started)
                saved = time.monotonic()
    seconds = spent + time.monotonic() - started
    if checkpoint is not None:
        _save(checkpoint, session.parts, steps, seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the accountant's on its search for a grid
        epsilon = session.engine.get_epsilon(delta)
    return Trained(session.canaries, _accuracy(session.model, images), epsilon, seconds)


def _session(images: Images, recipe: Recipe, sigma: float) -> Session:
    """All parts of a training, before its first step."""
    torch.manual_seed(recipe.seed)
    model: nn.Module = network(recipe.model, images.shape, images.classes)
    data: Any = images.train
    canaries: WhiteBoxCanaries | RecordCanaries | None = None
    if recipe.canaries and recipe.planting == "records":
        canaries = RecordCanaries(recipe.canaries, seed=recipe.seed, coin=recipe.coin)
        data, model = canaries.join(data), canaries.wrap(model)
    elif recipe.canaries:
        canaries = WhiteBoxCanaries(recipe.canaries, seed=recipe.seed, coin=recipe.coin)
    makers = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns that its noise is not cryptographic
        engine = PrivacyEngine(accountant="prv")
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=makers[recipe.optimizer](model.parameters(), lr=recipe.learning_rate),
            data_loader=DataLoader(data, batch_size=recipe.records_per_step(images)),
            noise_multiplier=sigma,
            max_grad_norm=CLIPPING_NORM,
        )
    return Session(private, optimizer, loader, engine, canaries)


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
