"""Optional packages: one way to ask for them, one line when they are missing, and before any work is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.split(".")[0])
sys.meta_path.insert(0, Missing())
from tightaudit.cli.main import main
main({arguments!r})
"""
PLAN = ["plan", "--claim", "gaussian(mu=1)", "--delta", "1e-5", "--plot", "plan.png"]


@pytest.mark.parametrize(
    ("missing", "arguments", "line"),
    [
        ("matplotlib", PLAN, "a picture needs matplotlib: pip install 'tightaudit[plot]'"),
        ("torch", ["demo"], "the demo needs torch: pip install 'tightaudit[torch]'"),
        ("opacus", ["dpsgd"], "needs opacus: pip install 'tightaudit[torch]'"),
        ("pyarrow", ["audit", "a.parquet", "--delta", "1e-5"], "needs pyarrow: pip install 'tightaudit[io]'"),
        (
            "dp_accounting",
            [
                "pvalue",
                "--n",
                "9",
                "--released",
                "9",
                "--errors",
                "1",
                "--claim",
                "dp-sgd(sigma=1,q=0.1,steps=5)",
            ],
            "dp-sgd needs dp_accounting: pip install 'tightaudit[accounting]'",
        ),
        (
            "distributed",
            ["reproduce", "p-values", "--engine", "tcp://localhost:1"],
            "a Dask scheduler needs distributed: pip install 'tightaudit[dask]'",
        ),
    ],
)
def test_a_missing_package_is_one_line(missing: str, arguments: list[str], line: str, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    code = WITHOUT.format(missing={missing}, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert line in done.stderr
