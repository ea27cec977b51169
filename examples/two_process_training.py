"""A training in two processes with canaries among its records, which can be killed and started again.

    python examples/two_process_training.py FOLDER

The folder holds a checkpoint per epoch: start the same command again after a kill, and it goes on from the
last one that both processes have written. Needs the extra `torch`; the processes talk over gloo, on the CPU.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.opacus import RecordCanaries

PROCESSES, EPOCHS, CANARIES, DELTA = 2, 12, 400, 1e-5


def data() -> TensorDataset:
    """Points to tell apart by the sign of their first coordinate, the same in every process."""
    inputs = torch.randn(400, 20, generator=torch.Generator().manual_seed(7))
    return TensorDataset(inputs, (inputs[:, 0] > 0).long())


def train(rank: int, folder: Path) -> None:
    """What one of the processes does."""
    warnings.filterwarnings("ignore")  # Opacus has some to give
    meeting = f"file://{(folder / 'store').resolve()}"
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=PROCESSES)
    torch.manual_seed(1)
    canaries = RecordCanaries(n=CANARIES, seed=1)
    plain = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 2))
    model: Any = DifferentiallyPrivateDistributedDataParallel(canaries.wrap(plain))
    engine = PrivacyEngine()
    torch.manual_seed(100 + rank)  # each process samples and draws noise by itself
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(canaries.join(data()), batch_size=160),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    parts = {"model": model, "optimizer": optimizer, "accountant": engine.accountant, "canaries": canaries}
    begun = resume(folder, rank, parts)
    canaries.attach(engine, optimizer)
    for epoch in range(begun, EPOCHS):
        for inputs, targets, ids in loader:
            optimizer.zero_grad()
            loss: Any = nn.functional.cross_entropy(model(inputs, ids=ids), targets)
            loss.backward()
            optimizer.step()
        save(folder, rank, epoch + 1, parts)
    if rank == 0:
        run = canaries.run()
        run.save(folder / "run.npz")
        print(ta.audit(run, delta=DELTA))
        print(f"\nThe claim allows ε = {canaries.claim.epsilon(DELTA):.3f} at δ = {DELTA:g}.")
    distributed.destroy_process_group()


def save(folder: Path, rank: int, epoch: int, parts: dict[str, Any]) -> None:
    """Write a checkpoint, and say so when both processes have written theirs."""
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save({**state, "random": torch.get_rng_state()}, folder / f"epoch-{epoch}-{rank}.pt")
    distributed.barrier()
    if rank == 0:
        written = folder / "last.json.part"
        written.write_text(json.dumps({"epoch": epoch}), encoding="utf-8")
        written.replace(folder / "last.json")


def resume(folder: Path, rank: int, parts: dict[str, Any]) -> int:
    """Bring everything back to the last checkpoint; the epochs trained by then."""
    last = folder / "last.json"
    if not last.exists():
        return 0
    epoch = int(json.loads(last.read_text(encoding="utf-8"))["epoch"])
    state = torch.load(folder / f"epoch-{epoch}-{rank}.pt", weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    torch.set_rng_state(state["random"])
    return epoch


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "store").unlink(missing_ok=True)  # where the processes of an earlier start met
    processes: Any = torch.multiprocessing
    processes.spawn(train, args=(folder,), nprocs=PROCESSES)


if __name__ == "__main__":
    main()
