"""White-box canaries inside real Opacus optimizers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.opacus import Insertion, WhiteBoxCanaries

pytestmark = pytest.mark.filterwarnings("ignore")
SIGMA, NORM, N = 1.5, 0.7, 300


class Setup:
    """A small linear model in the hands of Opacus."""

    def __init__(self, *, mode: str = "hooks", adam: bool = False, sigma: float = SIGMA) -> None:
        torch.manual_seed(5)
        inputs = torch.randn(60, 20)
        data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
        model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 2))
        maker = torch.optim.Adam if adam else torch.optim.SGD
        self.engine = PrivacyEngine()
        made = self.engine.make_private(
            module=model,
            optimizer=maker(model.parameters(), lr=0.05),
            data_loader=DataLoader(data, batch_size=12),
            criterion=nn.CrossEntropyLoss(),
            noise_multiplier=sigma,
            max_grad_norm=NORM,
            grad_sample_mode=mode,
        )
        if mode == "ghost":
            self.model, self.optimizer, self.criterion, self.loader = made
        else:
            (self.model, self.optimizer, self.loader), self.criterion = made, nn.CrossEntropyLoss()

    def canaries(self, insertion: Insertion = "after-clipping", seed: int = 3) -> WhiteBoxCanaries:
        rate = self.loader.sample_rate
        return WhiteBoxCanaries(self.optimizer, n=N, sample_rate=rate, seed=seed, insertion=insertion)

    def step(self, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        self.criterion(self.model(inputs), labels).backward()
        self.optimizer.step()

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            for inputs, labels in self.loader:
                self.step(inputs, labels)


@pytest.mark.parametrize("insertion", ["after-clipping", "before-clipping"])
@pytest.mark.parametrize("adam", [False, True])
def test_scores_follow_the_game_whatever_the_optimizer(insertion: Insertion, adam: bool) -> None:
    """Sums of the members exceed those of the others by q·steps, and the noise is what was asked for."""
    setup = Setup(adam=adam)
    canaries = setup.canaries(insertion)
    setup.train(epochs=20)
    run = canaries.run()
    assert (canaries.steps, run.n, run.threshold) == (100, N, 0.0)
    assert (bool(run.independent), str(run.family)) == (True, "dp-sgd(q=0.2,steps=100)")
    assert str(run.claim) == "dp-sgd(sigma=1.5,q=0.2,steps=100)"
    own = canaries.state_dict()["own"].numpy()
    spread = np.sqrt(100 * (SIGMA**2 + 0.16)) / np.sqrt(N / 2)
    assert own[run.members].mean() == pytest.approx(20, abs=4 * spread)
    assert own[~run.members].mean() == pytest.approx(0, abs=4 * spread)
    assert canaries.state_dict()["noise"] == pytest.approx(SIGMA, rel=0.03)
    assert run.scores[run.members].mean() > 0.7 > -0.7 > run.scores[~run.members].mean()


def test_ghost_clipping() -> None:
    setup = Setup(mode="ghost")
    canaries = setup.canaries()
    setup.train(epochs=20)
    run = canaries.run()
    assert run.scores[run.members].mean() > 0.7 > -0.7 > run.scores[~run.members].mean()
    assert canaries.state_dict()["noise"] == pytest.approx(SIGMA, rel=0.03)
    with pytest.raises(ta.InputError, match="ghost clipping has no gradient"):
        Setup(mode="ghost").canaries("before-clipping")


@pytest.mark.parametrize("insertion", ["after-clipping", "before-clipping"])
def test_virtual_steps_count_once(insertion: Insertion) -> None:
    setup = Setup()
    canaries = setup.canaries(insertion)
    for _ in range(20):
        with BatchMemoryManager(
            data_loader=setup.loader, max_physical_batch_size=4, optimizer=setup.optimizer
        ) as loader:
            for inputs, labels in loader:
                setup.step(inputs, labels)
    run = canaries.run()
    assert canaries.steps == 100
    own = canaries.state_dict()["own"].numpy()
    assert own[run.members].mean() == pytest.approx(20, abs=4 * np.sqrt(100 * SIGMA**2) / np.sqrt(N / 2))
    assert canaries.state_dict()["noise"] == pytest.approx(SIGMA, rel=0.03)


def _losses_of_steps(canaries: bool) -> tuple[torch.Tensor, torch.Tensor]:
    setup = Setup(sigma=1e-9 if not canaries else SIGMA)
    if canaries:
        setup.canaries()
    inputs, labels = setup.loader.dataset.tensors
    setup.optimizer.zero_grad()
    setup.criterion(setup.model(inputs), labels).backward()
    return torch.get_rng_state(), setup.optimizer.params[0].grad_sample


def test_attaching_leaves_the_random_numbers_of_training_alone() -> None:
    (with_random, with_gradients), (random, gradients) = (_losses_of_steps(c) for c in (True, False))
    assert torch.equal(with_random, random)
    assert torch.equal(with_gradients, gradients)


@pytest.mark.parametrize("insertion", ["after-clipping", "before-clipping"])
def test_a_canary_adds_the_clipping_norm_at_its_own_coordinate_and_nothing_else(insertion: Insertion) -> None:
    """Two steps from the same state, with the same noise, with and without canaries."""
    gradients = []
    for attached in (True, False):
        setup = Setup()
        canaries = setup.canaries(insertion) if attached else None
        inputs, labels = setup.loader.dataset.tensors
        torch.manual_seed(1)
        setup.step(inputs, labels)
        gradients.append(torch.cat([p.grad.reshape(-1) for p in setup.optimizer.params]).double())
        if canaries is not None:
            kept = canaries
    difference = (gradients[0] - gradients[1]).numpy() * setup.optimizer.expected_batch_size / NORM
    moved = np.flatnonzero(np.abs(difference) > 1e-3)
    assert difference[moved] == pytest.approx(1, abs=1e-3)
    run = kept.run()
    assert run.ids is not None
    included = set(run.ids[run.members].tolist())
    assert set(moved.tolist()) <= included
    assert len(moved) == pytest.approx(0.2 * len(included), abs=4 * np.sqrt(0.16 * len(included)))


def test_coordinates_are_distinct_and_a_model_too_small_is_refused() -> None:
    run_ids = Setup().canaries().state_dict()["coordinates"]
    assert np.unique(run_ids).size == N
    setup = Setup()
    with pytest.raises(ta.InputError, match="n=693: expected at most 692"):
        WhiteBoxCanaries(setup.optimizer, n=693, sample_rate=0.2)


def test_seeds_give_bits_and_coordinates_again() -> None:
    one, two, other = (Setup().canaries(seed=seed).state_dict() for seed in (3, 3, 4))
    assert np.array_equal(one["members"], two["members"])
    assert np.array_equal(one["coordinates"], two["coordinates"])
    assert not np.array_equal(one["coordinates"], other["coordinates"])


def test_state_goes_through_a_checkpoint(tmp_path: Any) -> None:
    whole, halves = Setup(), Setup()
    straight, first = whole.canaries(), halves.canaries()
    torch.manual_seed(2)
    whole.train(epochs=2)
    torch.manual_seed(2)
    halves.train(epochs=1)
    torch.save(first.state_dict(), tmp_path / "canaries.pt")
    first.detach()
    second = WhiteBoxCanaries(halves.optimizer, n=N, sample_rate=0.2, seed=99)
    second.load_state_dict(torch.load(tmp_path / "canaries.pt", weights_only=True))
    halves.train(epochs=1)
    resumed, plain = second.run(), straight.run()
    assert np.array_equal(resumed.members, plain.members)
    assert np.array_equal(np.asarray(resumed.ids), np.asarray(plain.ids))
    assert resumed.scores == pytest.approx(plain.scores, rel=1e-5)
    assert second.steps == 10
    wrong = Setup(sigma=2.0).canaries()
    with pytest.raises(ta.InputError, match="noise_multiplier"):
        wrong.load_state_dict(first.state_dict())


def test_what_cannot_be_audited_is_refused() -> None:
    setup = Setup()
    with pytest.raises(ta.InputError, match="make_private returned"):
        WhiteBoxCanaries(torch.optim.SGD(setup.model.parameters(), lr=0.1), n=10, sample_rate=0.1)
    setup.canaries()
    with pytest.raises(ta.InputError, match="detach them first"):
        setup.canaries()
    per_layer = PrivacyEngine()
    model = nn.Linear(20, 30)
    _, optimizer, _ = per_layer.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=setup.loader,
        noise_multiplier=1.0,
        max_grad_norm=[1.0, 1.0],
        clipping="per_layer",
    )
    with pytest.raises(ta.InputError, match="not per-layer"):
        WhiteBoxCanaries(optimizer, n=10, sample_rate=0.1)
    with pytest.raises(ta.InputError, match="steps=0"):
        Setup().canaries().run()


def test_noise_that_changes_is_refused() -> None:
    setup = Setup()
    setup.canaries()
    setup.train(epochs=1)
    setup.optimizer.noise_multiplier = 1.0
    with pytest.raises(ta.InputError, match="as in the steps before"):
        setup.train(epochs=1)


def test_detached_canaries_leave_the_optimizer_as_it_was() -> None:
    setup = Setup()
    canaries = setup.canaries()
    canaries.detach()
    setup.train(epochs=1)
    assert canaries.steps == 0


def test_a_checkpoint_of_another_kind_changes_nothing() -> None:
    canaries, other = Setup().canaries("before-clipping"), Setup().canaries(seed=99)
    before = canaries.state_dict()
    with pytest.raises(ta.InputError, match="insertion"):
        canaries.load_state_dict(other.state_dict())
    after = canaries.state_dict()
    assert torch.equal(before["members"], after["members"])
    assert torch.equal(before["coordinates"], after["coordinates"])


def test_what_is_relied_on_inside_opacus() -> None:
    """Names that Opacus does not promise: per-example gradients made flat, and the mark of those used."""
    setup = Setup()
    inputs, labels = setup.loader.dataset.tensors
    setup.optimizer.zero_grad()
    setup.criterion(setup.model(inputs), labels).backward()
    parameter = setup.optimizer.params[0]
    flat = setup.optimizer._get_flat_grad_sample(parameter)
    assert flat.shape == (len(inputs), *parameter.shape)
    setup.optimizer.clip_and_accumulate()
    assert parameter.grad_sample._processed
    assert parameter.summed_grad.shape == parameter.shape


def test_an_optimizer_of_ones_own_is_welcome() -> None:
    class Mine(DPOptimizer):  # type: ignore[misc]
        pass

    setup = Setup()
    setup.optimizer.__class__ = Mine
    assert setup.canaries().n == N


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("insertion", ["after-clipping", "before-clipping"])
def test_a_shuffled_loader_is_remarked_on(insertion: Insertion) -> None:
    """With it loader.sample_rate does not exist, and a rate typed by hand would pass unremarked."""
    setup = Setup()
    rate = setup.loader.sample_rate
    poisson = WhiteBoxCanaries(setup.optimizer, n=N, sample_rate=rate, seed=3, insertion=insertion)
    setup.train(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert poisson.run().n == N
    poisson.detach()
    shuffled = WhiteBoxCanaries(setup.optimizer, n=N, sample_rate=rate, seed=3, insertion=insertion)
    setup.loader = DataLoader(setup.loader.dataset, batch_size=12, shuffle=True)
    setup.train(6)
    with pytest.warns(UserWarning, match="30 of 30 batches have exactly 12 examples"):
        run = shuffled.run()
    (warning,) = ta.audit(run, delta=1e-5).warnings
    assert warning.startswith("30 of 30 batches")


def test_a_noise_multiplier_changed_before_the_first_step_is_said_to_be() -> None:
    setup = Setup()
    setup.canaries()
    setup.optimizer.noise_multiplier = 0.5
    with pytest.raises(ta.InputError, match=r"=0\.5: expected 1\.5, as when the canaries were"):
        setup.train(1)
