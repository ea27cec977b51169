"""Canaries as records in real trainings with Opacus."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from tests.canaries.opacus.trainings import REAL, Training
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.bank import along
from tightaudit.canaries.opacus import RecordCanaries

pytestmark = pytest.mark.filterwarnings("ignore")
N = 300


def canaries_of(training: Training) -> RecordCanaries:
    assert isinstance(training.canaries, RecordCanaries)
    return training.canaries


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
@pytest.mark.parametrize("clipping", ["flat", "per_layer"])
def test_every_sampled_member_contributes_one_norm_and_nothing_else_does(mode: str, clipping: str) -> None:
    if (mode, clipping) == ("ghost", "per_layer"):
        pytest.skip("Opacus has no ghost clipping per layer")
    training = Training(RecordCanaries(N, seed=3), mode=mode, clipping=clipping, sigma=1e-4)
    training.train(1)
    bank = canaries_of(training).bank
    assert bank.steps == 5
    for step in bank.transcript:
        expected = np.append(step.sampled * bank.members, np.zeros(bank.design.controls))
        assert along(step.released) == pytest.approx(expected, abs=1e-3)


def test_the_model_is_the_one_without_canaries() -> None:
    """The same real batch with canaries beside it and without, almost no noise: the same step."""
    torch.manual_seed(1)
    inputs, labels = torch.randn(40, 20), torch.randint(2, (40,))
    after = []
    for canaries in (RecordCanaries(N, seed=3), None):
        training = Training(canaries, sigma=1e-6)
        ids = torch.full((40,), -1)
        if canaries is None:
            training.optimizer.expected_batch_size = 60
            training.step(inputs, labels)
        else:
            beside = torch.arange(N)[:30]
            with_canaries = torch.cat([inputs, torch.randn(30, 20)]), torch.cat([labels, labels[:30]])
            training.step(*with_canaries, torch.cat([ids, beside]))
        after.append(torch.cat([p.detach().reshape(-1) for p in training.plain.parameters()]))
    assert torch.allclose(after[0], after[1], atol=1e-6)


def test_a_model_is_used_as_before_when_it_is_not_trained() -> None:
    training = Training(RecordCanaries(N, seed=3))
    inputs = torch.randn(7, 20)
    training.model.eval()
    assert torch.equal(training.model(inputs), training.plain(inputs))
    training.model.train()
    with torch.no_grad():
        assert training.model(inputs).shape == (7, 2)


def test_missing_noise_is_named_and_rejected() -> None:
    training = Training(RecordCanaries(N, seed=3))
    add_noise = training.optimizer.add_noise

    def less() -> None:
        training.optimizer.noise_multiplier = 0.5
        add_noise()
        training.optimizer.noise_multiplier = 1.0

    training.optimizer.add_noise = less
    training.train(12)
    report = ta.audit(canaries_of(training).run(), delta=1e-5)
    assert report.violated
    assert report.checkup is not None
    (fault,) = [check.fault for check in report.checkup.faults]
    assert re.fullmatch(r"the noise is 0\.(499|5|501) of what was asked for", fault)
    page = report.to_html()
    assert f"Fault: {fault}." in str(report)
    assert fault in page
    assert 'id="checkup"' in page
    assert report.to_dict()["checkup"]["faults"] == [fault]


def test_a_shuffled_loader_is_named_and_the_verdict_is_another_statement() -> None:
    training = Training(RecordCanaries(N, seed=3), poisson_sampling=False)
    training.loader = DataLoader(training.data, batch_size=120, shuffle=True)
    training.train(12)
    report = ta.audit(canaries_of(training).run(), delta=1e-5)
    assert report.checkup is not None
    assert [check.fault for check in report.checkup.faults] == [
        "every record is used exactly once an epoch: batches are shuffled, not Poisson-sampled"
    ]
    assert report.violated is False
    assert "but the check-up found a fault" in report.to_html()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision(dtype: torch.dtype) -> None:
    """Forward pass in low precision by autocast, parameters and noise in single precision."""
    training = Training(RecordCanaries(N, seed=3))
    for _ in range(8):
        for inputs, labels, ids in training.loader:
            training.optimizer.zero_grad()
            with torch.autocast("cpu", dtype=dtype):
                outputs = training.model(inputs, ids=ids)
            training.criterion(outputs.float(), labels).backward()
            training.optimizer.step()
    assert canaries_of(training).checkup().faults == ()


def test_an_object_with_logits_is_what_some_models_return() -> None:
    class WithLogits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(20, 2)

        def forward(self, inputs: torch.Tensor) -> Any:
            return SimpleNamespace(logits=self.inner(inputs))

    canaries = RecordCanaries(4, seed=1)
    model = canaries.wrap(WithLogits())
    ids = torch.tensor([-1, 0, 1, 2, 3])
    logits = model(torch.randn(5, 20), ids=ids).logits
    assert logits.shape == (5, 2)
    assert (logits[1:] == logits[1, 0]).all()
    with pytest.raises(ta.InputError, match="one that returns a tuple"):
        canaries.wrap(nn.LSTM(20, 2))(torch.randn(5, 1, 20), ids=ids)


@pytest.mark.parametrize(
    ("shape", "loss"),
    [
        ((), nn.MSELoss()),
        ((1,), nn.BCEWithLogitsLoss()),
        ((3,), nn.MSELoss()),
        ((5, 7), nn.CrossEntropyLoss()),
        ((4, 3, 3), nn.CrossEntropyLoss()),
    ],
    ids=str,
)
def test_outputs_and_losses_of_many_kinds(shape: tuple[int, ...], loss: Any) -> None:
    """Classes first or alone, one value or several, targets that are noisy: one norm from each member."""

    class Shaped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(6, max(1, int(np.prod(shape))))

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.inner(inputs).reshape(-1, *shape)

    class Noisy(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 100

        def __getitem__(self, _: int) -> Any:
            classes = torch.randint(shape[0], shape[1:]) if len(shape) > 1 else torch.rand(shape).round()
            return torch.randn(6), classes

    torch.manual_seed(1)
    canaries = RecordCanaries(100, seed=1)
    data, model = canaries.join(Noisy()), canaries.wrap(Shaped())
    engine = PrivacyEngine()
    private, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        data_loader=DataLoader(data, batch_size=50),
        noise_multiplier=1e-3,
        max_grad_norm=1.0,
    )
    canaries.attach(engine, optimizer)
    for inputs, targets, ids in loader:
        optimizer.zero_grad()
        loss(private(inputs, ids=ids), targets).backward()
        optimizer.step()
    for step in canaries.bank.transcript:
        expected = np.append(step.sampled * canaries.bank.members, np.zeros(canaries.bank.design.controls))
        assert along(step.released) == pytest.approx(expected, abs=0.01)


def test_what_does_not_fit_is_refused() -> None:
    canaries = RecordCanaries(10)
    training = Training(None)
    with pytest.raises(ta.InputError, match="model=None"):
        canaries.attach(training.engine, training.optimizer)
    model = canaries.wrap(nn.Linear(2, 2))
    with pytest.raises(ta.InputError, match="without the bank"):
        canaries.attach(training.engine, training.optimizer)
    with pytest.raises(ta.InputError, match="dataset=an empty one"):
        canaries.join(TensorDataset(torch.empty(0, 2)))
    with pytest.raises(ta.InputError, match=r"ids=None: expected .* model\(inputs, ids=ids\)"):
        model(torch.randn(3, 2))
    with pytest.raises(ta.InputError, match=r"ids=Tensor of shape \(2,\)"):
        model(torch.randn(3, 2), ids=torch.zeros(2))
    flat = Training(RecordCanaries(N, seed=3))
    with pytest.raises(ta.InputError, match="loss=one so flat that a gradient is 0 long"):
        (0 * flat.model(torch.randn(N, 20), ids=torch.arange(N))).sum().backward()
    uneven = Training(RecordCanaries(N, seed=3), clipping="per_layer", attach=False)
    uneven.optimizer.max_grad_norms[-1] = 2.0
    with pytest.raises(ta.InputError, match=r"0\.7 and 2 for the bank's two tensors: expected the same"):
        canaries_of(uneven).attach(uneven.engine, uneven.optimizer)


def test_records_keep_their_parts_and_get_an_id() -> None:
    joined: Any = RecordCanaries(3).join(TensorDataset(torch.arange(5), torch.arange(5)))
    assert len(joined) == 8
    assert [joined[place][-1] for place in range(8)] == [-1] * 5 + [0, 1, 2]
    assert joined[2][:2] == (2, 2)
    assert REAL == 300
    with pytest.raises(IndexError):
        joined[8]


def run_workers(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """What the two processes of a real training print."""
    script = Path(__file__).with_name("two_workers.py")
    workers = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(folder / "store"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    said = [worker.communicate(timeout=180) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    return [json.loads(out) for out, _ in said]


@pytest.mark.parametrize(
    ("kind", "way"),
    [*itertools.product(["records", "direct"], ["flat", "ghost", "per-layer"]), ("records", "fsdp")],
)
def test_two_real_workers(tmp_path: Path, kind: str, way: str) -> None:
    """Two processes that reduce their gradients over gloo: both see the same, and nothing is wrong."""
    one, other = run_workers(tmp_path, kind, way, "none")
    assert one == other
    assert one["claim"] == "dp-sgd(sigma=1,q=0.2,steps=60)"
    assert one["faults"] == one["notes"] == []
    assert one["p_value"] > 1e-3
    assert one["epsilon"] > (1 if way == "per-layer" and kind == "records" else 6)


BETWEEN_WORKERS = (
    (
        "every worker has every record",
        "records are used more than once in a step: by several workers",
        "Opacus, issue 444",
    ),
    (
        "the same noise on both, half of its variance each",
        "the two workers add the same noise",
        "",
    ),
    ("the same noise on both, all of it each", "the two workers add the same noise", ""),
    ("one worker forgets to clip", "contributions in worker 1 are", ""),
    ("gradients added up, not averaged, but the noise averaged", "contributions are", ""),
)
"""Mistakes that only several processes can make, the words that name them, and where they were seen."""
HARMLESS = (
    ("every worker adds all of the noise", "the noise is 1.4", ""),
    ("gradients added up, not averaged", "contributions and noise are both", ""),
)
"""What costs no privacy, and the words that note it."""


@pytest.mark.parametrize(("mistake", "fault", "_"), BETWEEN_WORKERS, ids=lambda value: str(value)[:30])
def test_a_mistake_between_two_workers_is_named(tmp_path: Path, mistake: str, fault: str, _: str) -> None:
    one, other = run_workers(tmp_path, "records", "flat", mistake)
    assert one == other
    assert any(text.startswith(fault) for text in one["faults"]), one["faults"]


@pytest.mark.parametrize(("mistake", "note", "_"), HARMLESS, ids=lambda value: str(value)[:30])
def test_what_costs_no_privacy_is_a_note(tmp_path: Path, mistake: str, note: str, _: str) -> None:
    one, other = run_workers(tmp_path, "records", "flat", mistake)
    assert one == other
    assert one["faults"] == []
    assert any(text.startswith(note) for text in one["notes"]), one["notes"]
