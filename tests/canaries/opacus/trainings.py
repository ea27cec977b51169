"""A small training with Opacus, in every way that canaries go with."""

from __future__ import annotations

from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tightaudit.canaries.opacus import RecordCanaries, WhiteBoxCanaries

REAL, RATE = 300, 0.2


class Training:
    """A small model in the hands of Opacus, with canaries of either kind, or none."""

    def __init__(
        self,
        canaries: RecordCanaries | WhiteBoxCanaries | None,
        *,
        mode: str = "hooks",
        clipping: str = "flat",
        sigma: float = 1.0,
        norm: float = 0.7,
        maker: Any = torch.optim.SGD,
        reduction: str = "mean",
        accountant: str = "prv",
        attach: bool = True,
        per_step: int | None = None,
        **options: Any,
    ) -> None:
        torch.manual_seed(5)
        inputs = torch.randn(REAL, 20)
        self.data: Any = TensorDataset(inputs, (inputs[:, 0] > 0).long())
        self.plain: nn.Module = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 2))
        self.canaries = canaries
        model: nn.Module = self.plain
        if isinstance(canaries, RecordCanaries):
            self.data, model = canaries.join(self.data), canaries.wrap(self.plain)
        parameters = list(model.parameters())
        self.engine = PrivacyEngine(accountant=accountant)
        self.criterion: Any = nn.CrossEntropyLoss(reduction=reduction)
        made = self.engine.make_private(
            module=model,
            optimizer=maker(parameters, lr=0.05),
            data_loader=DataLoader(self.data, batch_size=per_step or round(RATE * len(self.data))),
            criterion=self.criterion,
            noise_multiplier=sigma,
            max_grad_norm=norm if clipping != "per_layer" else [norm] * len(parameters),
            grad_sample_mode=mode,
            clipping=clipping,
            loss_reduction=reduction,
            **options,
        )
        if mode == "ghost":
            self.model, self.optimizer, self.criterion, self.loader = made
        else:
            self.model, self.optimizer, self.loader = made
        if canaries is not None and attach:
            canaries.attach(self.engine, self.optimizer)

    def step(self, inputs: torch.Tensor, labels: torch.Tensor, ids: torch.Tensor | None = None) -> None:
        self.optimizer.zero_grad()
        self.backward(inputs, labels, ids)
        self.optimizer.step()

    def backward(self, inputs: torch.Tensor, labels: torch.Tensor, ids: torch.Tensor | None = None) -> None:
        outputs = self.model(inputs) if ids is None else self.model(inputs, ids=ids)
        self.criterion(outputs, labels).backward()

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            for batch in self.loader:
                self.step(*batch)
