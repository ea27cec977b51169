"""Canaries that are training examples."""

from __future__ import annotations

from collections.abc import Sized
from typing import cast

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.examples import BlackBoxCanaries


def examples(count: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, 40, generator=generator)
    return TensorDataset(inputs, (inputs[:, 0] > 0).long())


def test_every_canary_has_a_slot_and_those_that_are_out_leave_no_trace() -> None:
    """Whatever the coins: as many records, as many batches; but only members are in them."""
    for seed in range(3):
        canaries = BlackBoxCanaries(examples(50), seed=seed)
        joined = canaries.join(examples(30))
        loader = DataLoader(joined, batch_size=10)
        assert (len(cast("Sized", joined)), len(loader)) == (80, 8)
        delivered = torch.cat([inputs for inputs, _ in loader])
        assert len(delivered) == 30 + canaries.members.sum()
        members = examples(50).tensors[0][torch.from_numpy(canaries.members)]
        assert torch.equal(delivered[30:], members)
    assert 0 < canaries.members.sum() < 50
    assert np.array_equal(BlackBoxCanaries(examples(50), seed=2).members, canaries.members)
    outside = 30 + int(np.flatnonzero(~canaries.members)[0])
    with pytest.raises(ta.InputError, match="fetch batches with a DataLoader"):
        joined[outside]
    with pytest.raises(IndexError):
        joined[80]


@pytest.mark.filterwarnings("ignore")
def test_the_rate_and_the_steps_of_a_training_do_not_depend_on_the_coins() -> None:
    histories = set()
    for seed in range(3):
        torch.manual_seed(1)
        model = nn.Linear(40, 2)
        joined = BlackBoxCanaries(examples(50), seed=seed).join(examples(30))
        engine, criterion = PrivacyEngine(), nn.CrossEntropyLoss()
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(joined, batch_size=4),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        for inputs, labels in loader:  # some batches have no record in them at all
            optimizer.zero_grad()
            criterion(private(inputs), labels).backward()
            optimizer.step()
        histories.add(tuple(engine.accountant.history))
    assert histories == {((1.0, 0.05, 20),)}


def test_labels_are_wrong_and_spread_over_the_others() -> None:
    canaries = BlackBoxCanaries.mislabelled(examples(400), n=300, classes=5, seed=4)
    right = examples(400).tensors[1][:300].numpy()
    wrong = np.array([int(canaries.examples[place][1]) for place in range(300)])
    assert not np.any(wrong == right)
    shifts = np.bincount((wrong - right) % 5, minlength=5)
    assert shifts[0] == 0
    assert shifts[1:].min() > 45


def test_a_model_that_remembers_is_seen_and_not_called_independent() -> None:
    torch.manual_seed(0)
    canaries = BlackBoxCanaries.mislabelled(examples(400), n=400, classes=10, seed=4)
    ((inputs, labels),) = DataLoader(canaries.join(examples(50)), batch_size=1000)
    model = nn.Sequential(nn.Linear(40, 200), nn.ReLU(), nn.Linear(200, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    run = canaries.run(model, claim=ta.ApproxDP(1.0, 1e-5))
    assert not run.independent
    assert model.training
    assert run.scores[run.members].mean() > run.scores[~run.members].mean() + 1
    report = ta.audit(run)
    assert report.violated
    assert report.headline is not None
    assert not report.headline.beliefs.independent


def test_a_loss_of_the_users_own() -> None:
    canaries = BlackBoxCanaries(examples(10), ids=[f"row {k}" for k in range(10)], seed=1)
    run = canaries.run(nn.Linear(40, 2), loss=lambda outputs, _: outputs[:, 0])
    assert run.ids is not None
    assert run.ids[3] == "row 3"
    with pytest.raises(ta.InputError, match="one per canary"):
        canaries.run(nn.Linear(40, 2), loss=lambda outputs, _: outputs)
    with pytest.raises(ta.InputError, match="ids"):
        BlackBoxCanaries(examples(10), ids=[1, 2])
    with pytest.raises(ta.InputError, match="n=11"):
        BlackBoxCanaries.mislabelled(examples(10), n=11, classes=2)
