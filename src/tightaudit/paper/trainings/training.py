"""One training by DP-SGD with canaries in it, which survives being killed."""

import io
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

from tightaudit.canaries.bank import Coin
from tightaudit.canaries.opacus import RecordCanaries, WhiteBoxCanaries
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.paper.stored import keep_bytes, kept_bytes, say_damaged
from tightaudit.paper.trainings.data import Images
from tightaudit.paper.trainings.mistakes import Mistake, Session
from tightaudit.paper.trainings.networks import network
from tightaudit.support import checks
from tightaudit.support.errors import InputError
from tightaudit.support.progress import Progress


def _seconds(variable: str, usual: str) -> float:
    given = os.environ.get(variable, usual)
    try:
        return float(given)
    except ValueError:
        raise InputError(variable, given, "a number of seconds") from None


CHECKPOINT_SECONDS = _seconds("TIGHTAUDIT_CHECKPOINT_SECONDS", usual="20")
CLIPPING_NORM = 1.0
LARGEST_SEED = 2**64 - 1
"""PyTorch takes no larger one."""


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
        if self.seed > LARGEST_SEED:
            raise InputError("seed", self.seed, "less than 2^64, as PyTorch takes it")
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
    """Spent on its steps since it was started, or started again."""


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

    A training that goes on takes the very steps that the killed one would have taken.
    """
    session = _session(images, recipe, sigma)
    if mistake is not None:
        mistake.plant(session)
    if session.canaries is not None:
        session.canaries.attach(session.engine, session.optimizer)
    place = _resumed(checkpoint, session)
    started = saved = time.monotonic()
    criterion = nn.CrossEntropyLoss()
    session.model.train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hooks of Opacus, and empty batches
        for inputs, labels, *ids in _batches(session, place, recipe.steps):
            session.optimizer.zero_grad()
            outputs = session.model(inputs, ids=ids[0]) if ids else session.model(inputs)
            criterion(outputs, labels).backward()
            session.optimizer.step()
            place.steps += 1
            if progress is not None:
                progress(place.steps, recipe.steps)
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                _save(checkpoint, session, place)
                saved = time.monotonic()
    seconds = time.monotonic() - started
    if checkpoint is not None:
        _save(checkpoint, session, place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the accountant's on its search for a grid
        epsilon = session.engine.get_epsilon(delta)
    return Trained(session.canaries, _accuracy(session.model, images), epsilon, seconds)


@dataclass
class _Place:
    """How far a training is."""

    steps: int
    """Steps taken."""
    drawn: int
    """Batches drawn since the loader was started for this epoch."""
    epoch: torch.Tensor
    """PyTorch's generator as it was when the loader was started."""


def _batches(session: Session, place: _Place, steps: int) -> Iterator[Any]:
    """The batches that are left, epoch after epoch."""
    while place.steps < steps:
        for batch in _rest_of_epoch(session.loader, place):
            place.drawn += 1
            yield batch
            if place.steps == steps:
                return
        place.drawn = 0


def _rest_of_epoch(loader: Any, place: _Place) -> Iterator[Any]:
    """The epoch's batches from the place on.

    A loader cannot be asked to start in the middle. So it is started as it was, with the generator as it was,
    and the batches that were trained on are passed over.
    """
    if not place.drawn:
        place.epoch = torch.get_rng_state()
        return iter(loader)
    now = torch.get_rng_state()
    torch.set_rng_state(place.epoch)
    batches = iter(loader)
    for _ in itertools.islice(batches, place.drawn):
        pass
    torch.set_rng_state(now)
    return batches


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


def _save(path: Path, session: Session, place: _Place) -> None:
    """Keep all that the steps to come depend on.

    Batches and noise come from PyTorch's global generator, since Opacus is given no other; canaries have
    streams of their own for each step. Nothing is drawn from the generators of Python or NumPy.
    """
    state = {name: part.state_dict() for name, part in session.parts.items()}
    content = io.BytesIO()
    torch.save({**state, **vars(place), "random": torch.get_rng_state()}, content)
    keep_bytes(path, content.getvalue())


def _resumed(path: Path | None, session: Session) -> _Place:
    """Bring everything back to where the checkpoint was written, if there is one that is whole."""
    state = None if path is None else _kept_state(path, {*session.parts, *_Place.__annotations__, "random"})
    if state is None:
        return _Place(0, 0, torch.get_rng_state())
    for name, part in session.parts.items():
        part.load_state_dict(state[name])
    torch.set_rng_state(state["random"])
    return _Place(state["steps"], state["drawn"], state["epoch"])


def _kept_state(path: Path, names: set[str]) -> dict[str, Any] | None:
    kept = kept_bytes(path)
    if kept is None:
        return None
    try:
        state = torch.load(io.BytesIO(kept), weights_only=True)
    except Exception:  # PyTorch promises no particular error for what it cannot read
        state = None
    if isinstance(state, dict) and names <= state.keys():
        return state
    say_damaged(path)
    return None


@torch.no_grad()
def _accuracy(model: Any, images: Images) -> float:
    model.eval()
    inputs, labels = images.test.tensors
    found = [model(part).argmax(dim=1) for part in torch.split(inputs, 512)]
    return float((torch.cat(found) == labels).double().mean())
