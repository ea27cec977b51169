"""What an installed package must be able to do, with nothing installed but the package.

python tests/smoke.py    # with the Python of the environment, from a folder without the sources
"""

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

import tightaudit as ta


def said(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tightaudit", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def main() -> None:
    assert ta.__version__ == version("tightaudit")
    assert "site-packages" in ta.__file__, f"not the installed package: {ta.__file__}"
    counts = ["--n", "1000", "--released", "200", "--errors", "40"]
    # Steinke's formula for δ = 0 is a binomial tail: Pr[Bin(200, 1/(1+e)) ≤ 40] = 0.0150 by scipy.stats.
    steinke = ["--claim", "approx-dp(epsilon=1,delta=0)", "--method", "steinke"]
    assert "0.015" in said("pvalue", *counts, *steinke)
    assert "95% confidence" in said("bound", *counts, "--family", "gaussian", "--delta", "1e-5")
    random = np.random.default_rng(0)
    members = random.random(1000) < 0.5
    scores = random.normal(size=1000) + 3 * members
    with tempfile.TemporaryDirectory() as folder:
        file, page = Path(folder) / "scores.csv", Path(folder) / "audit.html"
        lines = (f"{score},{int(member)}" for score, member in zip(scores, members, strict=True))
        file.write_text("score,member\n" + "\n".join(lines) + "\n", encoding="utf-8")
        audited = ["audit", str(file), "--delta", "1e-5", "--claim", "gaussian(mu=1)", "--independent"]
        assert "inconsistent" in said(*audited, "--html", str(page))
        assert "</html>" in page.read_text(encoding="utf-8")
        said(*audited, "--fail-on-violation", code=1)
    print(f"tightaudit {ta.__version__} works on Python {sys.version.split()[0]}, NumPy {np.__version__}")


if __name__ == "__main__":
    main()
