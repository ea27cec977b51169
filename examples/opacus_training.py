"""A training with Opacus and canaries inside, in seconds: `python examples/opacus_training.py`.

The three lines that an audit needs are marked. Needs the extra `torch`.
"""

from __future__ import annotations

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.opacus import WhiteBoxCanaries

EPOCHS, CANARIES = 3, 1000


def data() -> TensorDataset:
    """Points to tell apart by the sign of their first coordinate."""
    inputs = torch.randn(400, 30)
    return TensorDataset(inputs, (inputs[:, 0] > 0).long())


def train() -> WhiteBoxCanaries:
    """Train with DP-SGD as ever; the canaries come along."""
    model: nn.Module = nn.Sequential(nn.Linear(30, 40), nn.ReLU(), nn.Linear(40, 2))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data(), batch_size=40),
        noise_multiplier=0.8,
        max_grad_norm=1.0,
    )
    canaries = WhiteBoxCanaries(optimizer, n=CANARIES, sample_rate=loader.sample_rate, seed=1)  # 1
    criterion = nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for inputs, labels in loader:
            optimizer.zero_grad()
            criterion(model(inputs), labels).backward()
            optimizer.step()
    return canaries


def main() -> None:
    torch.manual_seed(0)
    canaries = train()
    report = ta.audit(canaries.run(), delta=1e-5)  # 2
    print(report)  # 3
    print(f"\nThe claim allows ε = {canaries.claim.epsilon(1e-5):.3f} at δ = 1e-05.")


if __name__ == "__main__":
    main()
