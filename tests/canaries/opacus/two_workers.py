"""One of two workers of a real training with canaries; prints what it found as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from datetime import timedelta
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Distributed
from opacus.optimizers import DPOptimizer
from opacus.utils.fsdp_utils import FSDP2Wrapper
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.opacus import RecordCanaries, WhiteBoxCanaries


def plant(mistake: str, optimizer: Any, rank: int) -> None:
    """Make the mistake in the optimizer."""
    parameters = [p for p in optimizer.params if p.requires_grad]
    norm = optimizer.max_grad_norm
    alike = torch.Generator().manual_seed(5)

    def same_noise(share: float) -> None:
        for p in parameters:
            noise = share * norm * torch.randn(p.shape, generator=alike)
            p.grad = (p.summed_grad + noise).view_as(p)

    def unclipped() -> None:
        for p in parameters:
            p.summed_grad = optimizer._get_flat_grad_sample(p).sum(dim=0) / 2000
            p.grad_sample._processed = True

    def added_up() -> None:
        for p in parameters:
            distributed.all_reduce(p.grad)

    def noise_averaged() -> None:
        for p in parameters:
            p.grad = p.summed_grad.view_as(p).clone()
            if rank == 0:
                p.grad += norm * torch.randn(p.shape) / 2

    if mistake == "every worker adds all of the noise":
        optimizer.add_noise = lambda: DPOptimizer.add_noise(optimizer)
    elif mistake == "the same noise on both, half of its variance each":
        optimizer.add_noise = lambda: same_noise(0.5**0.5)
    elif mistake == "the same noise on both, all of it each":
        optimizer.add_noise = lambda: same_noise(1.0)
    elif mistake == "one worker forgets to clip" and rank == 1:
        optimizer.clip_and_accumulate = unclipped
    elif mistake == "gradients added up, not averaged":
        optimizer.reduce_gradients = added_up
    elif mistake == "gradients added up, not averaged, but the noise averaged":
        optimizer.reduce_gradients = added_up
        optimizer.add_noise = noise_averaged


def main(rank: int, store: str, kind: str, way: str, mistake: str) -> None:
    """Train for 60 steps and print the check-up, the verdict and the scores."""
    warnings.filterwarnings("ignore")
    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    torch.manual_seed(7)
    inputs = torch.randn(400, 20)
    data: Any = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    plain: nn.Module = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 2))
    canaries = RecordCanaries(400) if kind == "records" else WhiteBoxCanaries(400)
    if isinstance(canaries, RecordCanaries):
        data, plain = canaries.join(data), canaries.wrap(plain)
    model: Any = FSDP2Wrapper(plain) if way == "fsdp" else Distributed(plain)
    torch.manual_seed(100 + rank)
    engine, criterion = PrivacyEngine(), nn.CrossEntropyLoss()
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        data_loader=DataLoader(data, batch_size=len(data) // 5),
        criterion=criterion,
        noise_multiplier=1.0,
        max_grad_norm=[1.0] * len(list(model.parameters())) if way == "per-layer" else 1.0,
        grad_sample_mode={"ghost": "ghost", "fsdp": "ghost_fsdp"}.get(way, "hooks"),
        clipping="per_layer" if way == "per-layer" else "flat",
    )
    if way in ("ghost", "fsdp"):
        model, optimizer, criterion, loader = made
    else:
        model, optimizer, loader = made
    plant(mistake, optimizer, rank)
    canaries.attach(engine, optimizer)
    if mistake == "every worker has every record":
        loader = DPDataLoader(data, sample_rate=0.2, generator=torch.Generator().manual_seed(1))
    for _ in range(12):
        for batch, targets, *ids in loader:
            optimizer.zero_grad()
            outputs = model(batch, ids=ids[0]) if ids else model(batch)
            criterion(outputs, targets).backward()
            optimizer.step()
    run = canaries.run()
    assert run.checkup is not None
    report = ta.audit(run, delta=1e-5)
    print(
        json.dumps(
            {
                "claim": str(canaries.claim),
                "faults": [check.fault for check in run.checkup.faults],
                "notes": [check.fault for check in run.checkup.notes],
                "violated": report.violated,
                "epsilon": report.epsilon,
                "p_value": None if report.claim_row is None else report.claim_row.p_value,
                "scores": run.scores.tolist(),
                "weights": [float(p.sum()) for p in model.parameters()] if way != "fsdp" else None,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:6])
