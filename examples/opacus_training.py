"""A training with Opacus and canaries among its records, in seconds: `python examples/opacus_training.py`.

The lines that an audit needs are marked. Needs the extra `torch`.
"""

from __future__ import annotations

from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import tightaudit as ta
from tightaudit.canaries.opacus import RecordCanaries

EPOCHS, CANARIES = 3, 1000


def data() -> TensorDataset:
    """Points to tell apart by the sign of their first coordinate."""
    inputs = torch.randn(400, 30)
    return TensorDataset(inputs, (inputs[:, 0] > 0).long())


def train() -> RecordCanaries:
    """Train with DP-SGD; the canaries come along."""
    model: nn.Module = nn.Sequential(nn.Linear(30, 40), nn.ReLU(), nn.Linear(40, 2))
    train_set: Dataset[Any] = data()
    canaries = RecordCanaries(n=CANARIES, seed=1)  # 1
    train_set, model = canaries.join(train_set), canaries.wrap(model)  # 2
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(train_set, batch_size=140),
        noise_multiplier=0.8,
        max_grad_norm=1.0,
    )
    canaries.attach(engine, optimizer)  # 3
    criterion = nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for inputs, labels, ids in loader:  # 4
            optimizer.zero_grad()
            criterion(model(inputs, ids=ids), labels).backward()  # 5
            optimizer.step()
    return canaries


def main() -> None:
    torch.manual_seed(0)
    canaries = train()
    report = ta.audit(canaries.run(), delta=1e-5)  # 6
    print(report)
    print(f"\nThe claim allows ε = {canaries.claim.epsilon(1e-5):.3f} at δ = 1e-05.")


if __name__ == "__main__":
    main()
