"""Canaries that are training examples."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import ConcatDataset, TensorDataset

import tightaudit as ta
from tightaudit.canaries.examples import BlackBoxCanaries


def examples(count: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, 40, generator=generator)
    return TensorDataset(inputs, (inputs[:, 0] > 0).long())


def test_those_whose_coin_fell_in_join_the_data() -> None:
    canaries = BlackBoxCanaries(examples(50), seed=4)
    joined = cast("ConcatDataset[object]", canaries.join(examples(30)))
    assert len(joined) == 30 + canaries.members.sum()
    assert 0 < canaries.members.sum() < 50
    assert np.array_equal(BlackBoxCanaries(examples(50), seed=4).members, canaries.members)


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
    joined = cast("ConcatDataset[tuple[torch.Tensor, torch.Tensor]]", canaries.join(examples(50)))
    pairs = [joined[place] for place in range(len(joined))]
    inputs, labels = (torch.stack([torch.as_tensor(pair[k]) for pair in pairs]) for k in (0, 1))
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
