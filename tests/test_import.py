"""Importing the package must not drag in what only some users need."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ["matplotlib", "torch", "pandas", "scipy.stats", "typer", "rich", "dp_accounting"]


def test_core_import_is_light() -> None:
    code = f"import sys, tightaudit; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
