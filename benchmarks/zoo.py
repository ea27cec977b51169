"""The zoo: every mistake of `tests/zoo/mistakes.py` in a real training, and what audit and check-up say.

    PYTHONPATH=. python benchmarks/zoo.py docs

Writes the table in `zoo.md`, in a few minutes.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from pages import put_table
from tests.zoo.mistakes import SIGMA, ZOO, Training

import tightaudit as ta
from tightaudit.render.wording import rounded_down, shown_p_value

DELTA = 1e-5


def main(folder: Path) -> None:
    """Train with each mistake and fill in the table."""
    warnings.filterwarnings("ignore")
    lines = ["| mistake | check-up says | ε ≥ | claim | p |", "| --- | --- | --- | --- | --- |"]
    for mistake in ZOO:
        training = Training(seed=1)
        mistake.plant(training)
        training.run()
        found = training.canaries.checkup()
        faults = "; ".join(check.fault for check in found.faults) or "no fault"
        notes = "".join(f"; note: {check.fault}" for check in found.notes)
        claim = ta.DpSgd(SIGMA, training.canaries.claim.q, training.canaries.claim.steps)
        report = ta.audit(training.canaries.run(), delta=DELTA, claim=claim)
        row = report.claim_row
        assert row is not None
        assert row.p_value is not None
        bound = "none fits" if report.epsilon is None else rounded_down(report.epsilon)
        decision = "**rejected**" if report.violated else "stands"
        source = f" ({mistake.source})" if mistake.source else ""
        p = shown_p_value(row.p_value)
        lines.append(f"| {mistake.name}{source} | {faults}{notes} | {bound} | {decision} | {p} |")
        print(lines[-1], flush=True)
    put_table(folder / "zoo.md", lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
