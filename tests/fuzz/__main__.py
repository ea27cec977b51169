"""Many cases of every target, with counts: `python -m tests.fuzz`.

Each violation is printed with the command that repeats its case.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter

from tests.fuzz.judging import Violation
from tests.fuzz.targets import TARGETS, Target

_MEMORY_BYTES = 16 * 2**30
"""What asks for more is refused by the system and not ended by it."""


def _tried(target: Target, seed: int) -> str:
    try:
        return target.try_case(seed)
    except Violation as found:
        print(
            f"VIOLATION python -m tests.fuzz --only '{target.name}' --case {seed}\n  {found!s:.1500}",
            flush=True,
        )
        return "violation"


def fuzz() -> int:
    """Run as many cases as asked for; whether there were violations, as an exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many cases, of all targets together")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each case has the next")
    parser.add_argument("--only", choices=TARGETS, help="one target alone")
    parser.add_argument("--case", type=int, help="the one case with this seed")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    chosen = [TARGETS[given.only]] if given.only else list(TARGETS.values())
    shares = sum(target.share for target in chosen)
    violations = cases = 0
    print(f"{'target':22} {'cases':>6} {'violations':>10} {'seconds':>8}  endings")
    for target in chosen:
        size = max(1, -(-given.cases * target.share // shares))
        seeds = range(given.seed, given.seed + size) if given.case is None else [given.case]
        began = time.monotonic()
        endings = Counter(_tried(target, seed) for seed in seeds)
        wrong = endings.pop("violation", 0)
        said = ", ".join(f"{ending}: {times}" for ending, times in sorted(endings.items()))
        print(
            f"{target.name:22} {len(seeds):6} {wrong:10} {time.monotonic() - began:8.1f}  {said}", flush=True
        )
        violations, cases = violations + wrong, cases + len(seeds)
    print(f"{'all':22} {cases:6} {violations:10}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(fuzz())
