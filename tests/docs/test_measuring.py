"""What measures the tables of rates still runs, on a few audits."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parents[2]


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a script of benchmarks/, which import each other by name."""
    monkeypatch.syspath_prepend(str(HERE / "benchmarks"))
    return importlib.import_module


def test_rates_of_methods_and_of_audits(
    measuring: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validity = measuring("validity")
    shutil.copy(HERE / "docs" / "validity.md", tmp_path)
    monkeypatch.setattr(validity, "SETTINGS", (("gaussian(mu=1)", 100, 20),))
    monkeypatch.setattr(validity, "AUDITED", ("gaussian(mu=1)", "all-or-nothing(delta=0.04)"))
    validity.write_csv(tmp_path / "validity.csv", validity.measure(20))
    audits = validity.measure_audits(20)
    validity.write_audits_csv(tmp_path / "validity-of-audits.csv", audits)
    validity.replace_audits_table(tmp_path / "validity.md", audits)
    lines = (tmp_path / "validity.md").read_text(encoding="utf-8").splitlines()
    (planned,) = (line for line in lines if line.startswith("| gaussian(mu=1) |") and "planned | 5%" in line)
    assert planned.count("%") == 7
    (unknown,) = (line for line in lines if line.startswith("| all-or") and "planned | 5%" in line)
    assert (unknown.count("%"), unknown.count("–")) == (5, 2)


def test_rates_of_other_auditors(measuring: Any, tmp_path: Path) -> None:
    peers = measuring("peers_validity")
    shutil.copy(HERE / "docs" / "peers.md", tmp_path)
    measured = [peers.measure(*peers.SETTINGS[place], 1) for place in (0, 10)]
    for setting, found in measured:
        shown = {name for names in peers.TABLES.values() for name in names}
        if setting.claim.point is not None:
            shown -= set(peers.GAUSSIAN_ONLY)
        assert {each.method for each in found} == shown
    peers.write_csv(tmp_path / "peers-validity.csv", measured)
    peers.write_tables(tmp_path)
    text = (tmp_path / "peers.md").read_text(encoding="utf-8")
    assert "| `all-or-nothing(delta=0.04)` | 200, 200 | dependent |" in text
