"""Importing the package, and asking the command line for help, must not drag in what only some need."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tightaudit as ta

HEAVY = ["matplotlib", "numpy", "pandas", "scipy", "torch", "dp_accounting", "joblib", "pydantic", "rich"]


def loaded(code: str) -> list[str]:
    """Those of the heavy packages that are there after some code has run."""
    report = f"import sys; print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    names: list[str] = eval(done.stderr)
    return names


def test_importing_loads_nothing() -> None:
    assert loaded("import tightaudit") == []


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_nothing(option: str) -> None:
    code = f"from tightaudit.cli.main import main\ntry: main([{option!r}])\nexcept SystemExit: pass"
    assert loaded(code) == []


def test_a_claim_loads_no_framework() -> None:
    heavy = loaded("import tightaudit as ta; ta.p_value(ta.Evidence(100, 20, 1), 'gaussian(mu=1)')")
    assert not {"matplotlib", "torch", "pandas", "dp_accounting", "rich"} & set(heavy)


def test_every_public_name_is_there() -> None:
    for name in ta.__all__:
        assert getattr(ta, name) is not None
