"""The zoo: every mistake in a real training, and what audit and check-up say of it.

    PYTHONPATH=. python benchmarks/zoo.py docs [opacus workers jax]

Writes the tables in `zoo.md`, in a few minutes.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from pages import put_table
from tests.canaries.opacus.test_records import BETWEEN_WORKERS, HARMLESS, run_workers
from tests.zoo.jax_mistakes import JAX_ZOO, JaxMistake
from tests.zoo.mistakes import ZOO, Training, ZooMistake

import tightaudit as ta
from tightaudit.canaries.bank import Coin
from tightaudit.render.wording import rounded_down, shown_p_value

DELTA = 1e-5
COINS: tuple[Coin, ...] = ("canary", "participation")
HEADINGS = ["check-up says", "verdict, a coin per canary", "verdict, a coin per participation"]


def verdict(violated: bool | None, epsilon: float | None, p_value: float) -> str:
    """Whether the accountant's claim is rejected, with its p-value and the headline's ε."""
    bound = "no member of the family fits" if epsilon is None else f"ε ≥ {rounded_down(epsilon)}"
    p = f"p = {shown_p_value(p_value)}".replace("= <", "< ")
    return f"{'**rejected**' if violated else 'stands'}, {p}, {bound}"


def said(faults: list[str], notes: list[str]) -> str:
    """What the check-up found."""
    return (
        "; ".join([*(f"**{fault}**" for fault in faults), *(f"note: {note}" for note in notes)]) or "no fault"
    )


def row(mistake: ZooMistake) -> str:
    """One line of the table, from two trainings."""
    cells: list[str] = []
    for coin in COINS:
        training = Training(seed=2, coin=coin, mode=mistake.mode)
        mistake.plant(training)
        training.run()
        run = training.canaries.run()
        if not cells:
            cells.append(
                said(*([check.fault for check in found] for found in (run.checkup.faults, run.checkup.notes)))
            )
        report = ta.audit(run, delta=DELTA)
        assert report.claim_row is not None
        assert report.claim_row.p_value is not None
        cells.append(verdict(report.violated, report.epsilon, report.claim_row.p_value))
    source = f" ({mistake.source})" if mistake.source else ""
    return f"| {mistake.name}{source} | {' | '.join(cells)} |"


def row_of_workers(mistake: str, _: str, source: str) -> str:
    """One line of the table, from a training in two processes."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = run_workers(Path(folder), "records", "flat", mistake)[0]
    cells = [
        said(found["faults"], found["notes"]),
        verdict(found["violated"], found["epsilon"], found["p_value"]),
    ]
    return f"| {mistake}{f' ({source})' if source else ''} | {' | '.join(cells)} |"


def row_of_jax(mistake: JaxMistake) -> str:
    """One line of the table, from a training with JAX-Privacy."""
    training = mistake.training(2)
    run = training.canaries.run(training.run())
    report = ta.audit(run, delta=DELTA)
    assert run.checkup is not None
    assert report.claim_row is not None
    assert report.claim_row.p_value is not None
    cells = [
        said(*([check.fault for check in found] for found in (run.checkup.faults, run.checkup.notes))),
        verdict(report.violated, report.epsilon, report.claim_row.p_value),
    ]
    return f"| {mistake.name}{f' ({mistake.source})' if mistake.source else ''} | {' | '.join(cells)} |"


def write(folder: Path, heading: str, columns: int, rows: Iterable[str]) -> None:
    """Fill in one of the tables."""
    lines = [f"| {heading} | {' | '.join(HEADINGS[:columns])} |", "| --- " * (columns + 1) + "|"]
    for line in rows:
        lines.append(line)
        print(line, flush=True)
    put_table(folder / "zoo.md", lines)


def main() -> None:
    """Train with each mistake and fill in the tables."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    folder, only = Path(sys.argv[1]), sys.argv[2:]
    workers = (("none", "", ""), *BETWEEN_WORKERS, *HARMLESS)
    tables: dict[str, tuple[str, int, Iterable[str]]] = {
        "opacus": ("mistake", 3, map(row, ZOO)),
        "workers": ("mistake between two workers", 2, (row_of_workers(*each) for each in workers)),
        "jax": ("mistake, JAX-Privacy", 2, map(row_of_jax, JAX_ZOO)),
    }
    for name, (heading, columns, rows) in tables.items():
        if not only or name in only:
            write(folder, heading, columns, rows)


if __name__ == "__main__":
    main()
