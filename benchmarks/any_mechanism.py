"""The mechanisms of DP-Sniper's evaluation by calls, and how often a right one is rejected.

    PYTHONPATH=. python benchmarks/any_mechanism.py docs [suite rates speed]

Fills in the tables of `any-mechanism.md`: half an hour on two cores.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from joblib import Parallel, delayed
from pages import put_table
from tests.zoo.mechanisms.suite import SUITE, Entry

import tightaudit as ta
from tightaudit.auditing.question import Question
from tightaudit.auditing.rows import RowTest, table_of_beliefs
from tightaudit.calls.audit import learned_scores
from tightaudit.calls.game import call
from tightaudit.planning.release import Best
from tightaudit.render.wording import rounded_down, shown_p_value

CALLS, AUDITS, FEW = 2_000_000, 2000, 2000
RIGHT = ("Laplace", "truncated geometric", "report noisy max 1", "sparse vector 1", "RAPPOR", "prefix sum")


def audited(entry: Entry, calls: int, seed: int, *, chosen: bool = True) -> ta.Report:
    """An audit of an entry, of all its pairs of inputs or of the first."""
    claim = f"approx-dp(epsilon={entry.claimed:.6f},delta=0)"
    pairs = entry.pairs if chosen else entry.pairs[:1]
    return ta.audit_calls(
        entry.mechanism, pairs=pairs, calls=calls, claim=claim, vectorized=True, seed=seed, workers=1
    )


def write_suite(folder: Path) -> None:
    table = [
        "| mechanism | claimed ε | DP-Sniper: ε ≥ | tightaudit: ε ≥ | claim | p |",
        "| --- " * 6 + "|",
    ]
    for entry in SUITE:
        report = audited(entry, CALLS, seed=1)
        assert report.epsilon is not None
        assert report.claim_row is not None
        assert report.claim_row.p_value is not None
        name = f"{entry.name} (wrong)" if entry.wrong else entry.name
        decision = "**rejected**" if report.violated else "stands"
        cells = [
            f"{entry.claimed:.3g}",
            "–" if entry.published is None else f"{entry.published:g}",
            rounded_down(report.epsilon),
            decision,
            shown_p_value(report.claim_row.p_value),
        ]
        table.append(f"| {name} | {' | '.join(cells)} |")
        print(table[-1], flush=True)
    put_table(folder / "any-mechanism.md", table)


def _rejected(entry: Entry, row: RowTest, seed: int) -> bool:
    """Whether the row that decides rejects: the audit without bounds, which take most of its time."""
    warnings.simplefilter("ignore")
    called = call(entry.mechanism, entry.pairs[0], FEW, seed=seed, vectorized=True)
    early, rest = called.part(0, FEW // 2), called.part(FEW // 2, FEW)
    scores, _ = learned_scores(early, rest, ta.Learning())
    evidence = ta.release(scores, rest.coins, released=len(rest), guessing=ta.Guessing("threshold", 0.0))
    assert row.claim is not None
    smallest = min(test.p_value(row.claim, test.statistic(evidence.top(test.released))) for test in row.tests)
    return len(row.tests) * smallest <= 0.05


def write_rates(folder: Path) -> None:
    table = [f"| {AUDITS:,} audits of {FEW:,} calls | rejected at 5% |", "| --- " * 2 + "|"]
    for entry in SUITE:
        if entry.name not in RIGHT:
            continue
        question = Question.of(claim=f"approx-dp(epsilon={entry.claimed:.6f},delta=0)", independent=True)
        rows = table_of_beliefs(question, FEW // 2, Best(), rule="threshold")
        (row,) = [each for each in rows if each.tests_claim_itself and each.beliefs.independent]
        found = Parallel(n_jobs=2)(delayed(_rejected)(entry, row, seed) for seed in range(AUDITS))
        table.append(f"| {entry.name} | {100 * sum(found) / AUDITS:.2f}% |")
        print(table[-1], flush=True)
    put_table(folder / "any-mechanism.md", table)


def write_speed(folder: Path) -> None:
    began = time.perf_counter()
    audited(SUITE[0], 1_000_000, seed=1, chosen=False)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    table = [
        "| a million calls of the Laplace mechanism, fitted and audited | seconds | memory |",
        "| --- " * 3 + "|",
        f"| two cores | {seconds:.0f} | {memory:.2f} GB |",
    ]
    print(table[-1], flush=True)
    put_table(folder / "any-mechanism.md", table)


def main() -> None:
    folder, only = Path(sys.argv[1]), sys.argv[2:]
    parts: dict[str, Callable[[Path], None]] = {
        "speed": write_speed,
        "suite": write_suite,
        "rates": write_rates,
    }
    for name, part in parts.items():
        if not only or name in only:
            part(folder)


if __name__ == "__main__":
    main()
