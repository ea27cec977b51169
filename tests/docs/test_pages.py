"""The code in README, CONTRIBUTING and docs, run as it stands, page by page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.docs.pages import PAGES, ROOT, blocks, commands, install_package_of, run_command, run_python

import tightaudit as ta

OPACUS = """
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(2200, 50)
examples = TensorDataset(inputs, inputs[:, :10].argmax(dim=1))
train_set, spare_examples = TensorDataset(*examples[:200]), TensorDataset(*examples[200:])
model = torch.nn.Sequential(torch.nn.Linear(50, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=20)
privacy_engine = PrivacyEngine()

def train():
    for batch, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
"""
BEFORE = {"dpsgd.md": OPACUS}
"""What a page takes for granted: it shows three lines for a script that the reader already has."""
PLACEHOLDERS = {"dpsgd.md": "train()"}
"""What stands for `...  # train as ever` on a page."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that commands read: the run of docs/audit-your-run.md."""
    monkeypatch.chdir(tmp_path)
    coins = ta.draw_coins(1000, seed=11)
    scores = 2.0 * coins.members + np.random.default_rng(11).standard_normal(1000)
    lines = [f"{score},{member:d}" for score, member in zip(scores, coins.members, strict=True)]
    Path("scores.csv").write_text("\n".join(["score,member", *lines]), encoding="utf-8")
    ta.Run(scores, coins.members).save("run.npz")
    return tmp_path


def runnable(page: Path) -> bool:
    return any(block.language in ("python", "sh", "console") and not block.not_run for block in blocks(page))


@pytest.mark.filterwarnings("ignore")  # Opacus has some to give
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=lambda page: page.stem)
def test_code_runs(page: Path, plug_ins: Path) -> None:
    if any(block.title for block in blocks(page)):
        install_package_of(page, plug_ins)
    namespace: dict[str, Any] = {"__name__": page.stem}
    exec(BEFORE.get(page.name, ""), namespace)
    for block in blocks(page):
        if block.not_run is not None or block.title is not None:
            continue
        if block.language == "python":
            run_python(block, namespace, PLACEHOLDERS.get(page.name, "..."))
        elif block.language in ("sh", "console"):
            for line, shown in commands(block):
                printed = run_command(line)
                assert not shown or printed.split() == shown.split(), line


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "index.md"], ids=lambda page: page.stem)
def test_table_of_beliefs_is_the_one_of_the_guide(page: Path) -> None:
    """The same run as in docs/audit-your-run.md, whose own output is tested there."""
    table = next(
        block.text
        for block in blocks(page)
        if "inconsistent with the claim" in block.text and block.language == "text"
    )
    guide = (ROOT / "docs" / "audit-your-run.md").read_text(encoding="utf-8")
    shown = " ".join(guide.split())
    for line in table.splitlines():
        assert " ".join(line.removesuffix(" …").split()) in shown
