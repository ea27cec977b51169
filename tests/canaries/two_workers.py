"""One of two workers of a real training with canaries as records; prints what it found as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from datetime import timedelta

import torch
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Distributed
from opacus.optimizers import DPOptimizer
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.records import RecordCanaries


def main(rank: int, store: str, mistake: str) -> None:
    """Train for 60 steps and print the check-up, the verdict and the scores."""
    warnings.filterwarnings("ignore")
    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    torch.manual_seed(7)
    inputs = torch.randn(400, 20)
    data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    canaries = RecordCanaries(400, seed=3)
    model = Distributed(canaries.wrap(nn.Sequential(nn.Linear(20, 10), nn.ReLU(), nn.Linear(10, 2))))
    torch.manual_seed(100 + rank)
    engine, criterion = PrivacyEngine(), nn.CrossEntropyLoss()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        data_loader=DataLoader(canaries.join(data), batch_size=160),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    canaries.attach(engine, optimizer)
    if mistake == "every worker has every record":
        loader = DPDataLoader(
            canaries.join(data), sample_rate=0.2, generator=torch.Generator().manual_seed(1)
        )
    elif mistake == "every worker adds all of the noise":
        optimizer.add_noise = lambda: DPOptimizer.add_noise(optimizer)
    for _ in range(12):
        for batch, targets, ids in loader:
            optimizer.zero_grad()
            criterion(model(batch, ids), targets).backward()
            optimizer.step()
    found = canaries.checkup()
    run = canaries.run()
    print(
        json.dumps(
            {
                "claim": str(canaries.claim),
                "faults": [check.fault for check in found.faults],
                "notes": [check.fault for check in found.notes],
                "checkup": str(found),
                "violated": ta.audit(run, delta=1e-5).violated,
                "scores": run.scores.tolist(),
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
