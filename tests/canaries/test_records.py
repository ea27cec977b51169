"""Canaries as records in real trainings with Opacus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.bank import along
from tightaudit.canaries.records import RecordCanaries

pytestmark = pytest.mark.filterwarnings("ignore")
SIGMA, NORM, N, REAL = 1.0, 0.7, 300, 300


class Training:
    """A small model with canaries among its records, in the hands of Opacus."""

    def __init__(
        self, *, mode: str = "hooks", adam: bool = False, sigma: float = SIGMA, **options: Any
    ) -> None:
        torch.manual_seed(5)
        inputs = torch.randn(REAL, 20)
        data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
        self.plain = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 2))
        self.canaries = RecordCanaries(N, seed=3)
        model = self.canaries.wrap(self.plain)
        maker = torch.optim.Adam if adam else torch.optim.SGD
        self.engine, self.criterion = PrivacyEngine(), nn.CrossEntropyLoss()
        made = self.engine.make_private(
            module=model,
            optimizer=maker(model.parameters(), lr=0.05),
            data_loader=DataLoader(self.canaries.join(data), batch_size=120),
            criterion=self.criterion,
            noise_multiplier=sigma,
            max_grad_norm=NORM,
            grad_sample_mode=mode,
            **options,
        )
        if mode == "ghost":
            self.model, self.optimizer, self.criterion, self.loader = made
        else:
            self.model, self.optimizer, self.loader = made
        self.canaries.attach(self.engine, self.optimizer)

    def step(self, inputs: torch.Tensor, labels: torch.Tensor, ids: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        self.criterion(self.model(inputs, ids), labels).backward()
        self.optimizer.step()

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            for batch in self.loader:
                self.step(*batch)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_every_sampled_member_contributes_one_norm_and_nothing_else_does(mode: str) -> None:
    training = Training(mode=mode, sigma=1e-4)
    training.train(1)
    bank = training.canaries.bank
    assert bank.steps == 5
    for step in bank.transcript:
        expected = np.append(step.sampled * bank.members, np.zeros(bank.controls))
        assert along(step.released) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("adam", [False, True])
def test_an_honest_training_stands_and_has_no_fault(adam: bool) -> None:
    training = Training(adam=adam)
    training.train(20)
    assert str(training.canaries.claim) == "dp-sgd(sigma=1,q=0.2,steps=100)"
    assert not training.canaries.checkup().faults
    report = ta.audit(training.canaries.run(), delta=1e-5)
    assert report.violated is False
    assert report.epsilon is not None
    assert report.epsilon > 0.5 * training.canaries.claim.epsilon(1e-5)


def test_virtual_steps_count_once() -> None:
    training = Training()
    for _ in range(10):
        with BatchMemoryManager(
            data_loader=training.loader, max_physical_batch_size=32, optimizer=training.optimizer
        ) as loader:
            for batch in loader:
                training.step(*batch)
    assert training.canaries.bank.steps == training.canaries.claim.steps == 50
    assert not training.canaries.checkup().faults


def test_the_model_is_the_one_without_canaries() -> None:
    """Canaries have no gradient at the model's own parameters."""
    training = Training()
    inputs, labels = torch.randn(40, 20), torch.zeros(40, dtype=torch.long)
    ids = torch.arange(40)
    training.optimizer.zero_grad()
    training.criterion(training.model(inputs, ids), labels).backward()
    for parameter in training.plain.parameters():
        assert float(getattr(parameter, "grad_sample").abs().max()) == 0.0  # noqa: B009


def test_missing_noise_is_named_and_rejected() -> None:
    training = Training()
    training.optimizer.noise_multiplier = 0.5
    add_noise = training.optimizer.add_noise

    def told_otherwise() -> None:
        add_noise()
        training.optimizer.noise_multiplier = SIGMA  # what the accountant's hook and the record see

    def step(*batch: torch.Tensor) -> None:
        training.optimizer.noise_multiplier = 0.5
        training.step(*batch)

    training.optimizer.add_noise = told_otherwise
    for _ in range(20):
        for batch in training.loader:
            step(*batch)
    assert str(training.canaries.claim) == "dp-sgd(sigma=1,q=0.2,steps=100)"
    assert [check.fault for check in training.canaries.checkup().faults] == [
        "the noise is 0.50 of what was asked for"
    ]
    report = ta.audit(training.canaries.run(), delta=1e-5)
    assert report.violated
    assert report.warnings == ("Check-up: the noise is 0.50 of what was asked for.",)


def test_a_shuffled_loader_is_named() -> None:
    training = Training(poisson_sampling=False)
    training.loader = DataLoader(training.loader.dataset, batch_size=120, shuffle=True)
    training.train(20)
    faults = " ".join(check.fault for check in training.canaries.checkup().faults)
    assert "batches are shuffled, not Poisson-sampled" in faults


def test_a_checkpoint_gives_the_same_scores() -> None:
    training, other = Training(), Training()
    training.train(2)
    other.canaries.load_state_dict(training.canaries.state_dict())
    claim = training.canaries.claim
    assert (training.canaries.run().scores == other.canaries.bank.run(claim).scores).all()


def test_what_does_not_fit_is_refused_before_training() -> None:
    canaries = RecordCanaries(10)
    model = nn.Linear(2, 2)
    engine = PrivacyEngine()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ta.InputError, match="model=None"):
        canaries.attach(engine, optimizer)
    canaries.wrap(model)
    with pytest.raises(ta.InputError, match="the one that make_private returned"):
        canaries.attach(engine, optimizer)
    data = DataLoader(TensorDataset(torch.randn(20, 2), torch.zeros(20).long()), batch_size=5)
    _, private, _ = engine.make_private(
        module=model, optimizer=optimizer, data_loader=data, noise_multiplier=1.0, max_grad_norm=1.0
    )
    with pytest.raises(ta.InputError, match="without the bank"):
        canaries.attach(engine, private)
    with pytest.raises(ta.InputError, match="attach"):
        assert canaries.claim
    with pytest.raises(ta.InputError, match="dataset=an empty one"):
        canaries.join(TensorDataset(torch.empty(0, 2)))


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        ("none", None),
        ("every worker has every record", "records are used more than once in a step: by several workers"),
        ("every worker adds all of the noise", None),
    ],
)
def test_two_real_workers(tmp_path: Path, mistake: str, fault: str | None) -> None:
    """Two processes that reduce their gradients over gloo: both see the same, and a mistake is named."""
    script = Path(__file__).with_name("two_workers.py")
    workers = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path / "store"), mistake],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    said = [worker.communicate(timeout=120) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    one, other = (json.loads(out) for out, _ in said)
    assert one == other
    assert one["claim"] == "dp-sgd(sigma=1,q=0.2,steps=60)"
    if fault is None:
        assert one["faults"] == []
        assert one["violated"] is False
    else:
        assert any(text.startswith(fault) for text in one["faults"])
        assert one["violated"] is True
    assert bool(one["notes"]) == (mistake == "every worker adds all of the noise")
