"""Measures how often public one-run auditors, and this one, reject a true claim at their nominal 5%.

    python benchmarks/peers_validity.py docs [audits]

Peers get the same scores and coins of a mechanism of `tightaudit calibrate`, and are used as their
documentation says by default; the columns of tightaudit are `calibrate` on draws of its own. A bound above
the true ε rejects the true claim, or where there is a p-value, one of at most 5%. Writes
`peers-validity.csv` and the tables in `peers.md` into the folder: about ten minutes on two cores.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import opake.auditing
from jax_privacy.auditing import CanaryScoreAuditor, Split
from joblib import Parallel, delayed
from opake.auditing.types import CoinFlip
from pages import put_table, rows_of
from peer_bounds import recursion_rejects, steinke_p_value

import tightaudit as ta
from tightaudit.claims.base import Claim
from tightaudit.evidence.counts import Guessing
from tightaudit.simulate.calibration import Audits, Rejections, calibrate
from tightaudit.simulate.mechanisms.base import Mechanism, as_mechanism
from tightaudit.support.checks import BoolArray, FloatArray

LEVEL, DELTA, SEED = 0.05, 1e-6, 1
AUDITS, SLOW_AUDITS = 2000, 500
SEARCH_TOLERANCE = 1e-5
"""How far above the true ε a bound must be to count: peers' own searches stop at 10⁻⁶ or more."""
NOISES = [0.001 + 0.01 * step for step in range(1000)]
NOISE_EPSILON_STEP = 0.001

# (mechanism, n, released): the settings of validity.md; the first leaks nothing that counts at δ.
SETTINGS = (
    ("gaussian(mu=1e-06)", 1000, 200),
    ("gaussian(mu=1)", 1000, 200),
    ("gaussian(mu=3)", 100, 89),
    ("laplace(mu=1)", 1000, 200),
    ("randomized-response(epsilon=1,delta=0.01)", 200, 200),
    ("randomized-response(epsilon=0,delta=0.3)", 1000, 320),
    ("subsampled-gaussian(mu=2,q=0.5)", 1000, 200),
    ("shared-score(claim=gaussian(mu=1))", 200, 200),
    ("shared-score(claim=laplace(mu=2))", 200, 200),
    ("shared-sampling(mu=2,q=0.1)", 1000, 200),
    ("all-or-nothing(delta=0.04)", 200, 200),
    ("xor(epsilon=1)", 200, 200),
    ("correlated-gaussian(mu=1,rho=0.5)", 1000, 200),
)
JAX, JAX_SPLIT, JAX_FDP = "JAX-Privacy, default", "JAX-Privacy, split", "JAX-Privacy f-DP, default"
OPAKE, OPAKE_GDP = "opake (ε, δ)", "opake μ-GDP, default"
STEINKE, PRIVACY_GUARD = "Steinke et al.", "PrivacyGuard"
PAPER, PAPER_LIBRARY = "Xiang et al., counts", "Xiang et al., library"
OURS_BELIEVING, OURS = "tightaudit, independence stated", "tightaudit, nothing stated"
TABLES = {
    "packages, on a true claim of": (JAX, JAX_SPLIT, JAX_FDP, OPAKE, OPAKE_GDP),
    "formulas and tightaudit, on a true claim of": (
        STEINKE,
        PRIVACY_GUARD,
        PAPER,
        PAPER_LIBRARY,
        OURS_BELIEVING,
        OURS,
    ),
}
GAUSSIAN_ONLY = (JAX_FDP, OPAKE_GDP, PRIVACY_GUARD)
SLOW = (JAX_FDP,)


@dataclass(frozen=True)
class Setting:
    """A mechanism to audit, how large a run, and the ε that is true of it."""

    mechanism: Mechanism
    n: int
    released: int
    delta: float
    epsilon: float

    @classmethod
    def of(cls, text: str, n: int, released: int) -> Setting:
        mechanism = as_mechanism(text)
        claim = mechanism.claim
        # An (ε, δ) claim says nothing at a smaller δ than its own.
        delta = claim.point[1] if claim.point is not None and claim.point[1] > 0 else DELTA
        return cls(mechanism, n, released, delta, claim.epsilon(delta))

    @property
    def claim(self) -> Claim:
        return self.mechanism.claim

    def exceeded_by(self, bound: float) -> bool:
        return bound > self.epsilon + SEARCH_TOLERANCE


Rejects = Callable[[FloatArray, BoolArray], bool]


@dataclass
class FewErrors:
    """A test that rejects if there are few errors: how few is found by as few trials as the runs demand."""

    setting: Setting
    errors: Callable[[FloatArray, BoolArray], int]
    bound: Callable[[FloatArray, BoolArray, int], float]
    most_rejected: int = field(default=-1, init=False)
    fewest_accepted: float = field(default=math.inf, init=False)

    def __call__(self, scores: FloatArray, members: BoolArray) -> bool:
        errors = self.errors(scores, members)
        if self.most_rejected < errors < self.fewest_accepted:
            if self.setting.exceeded_by(self.bound(scores, members, errors)):
                self.most_rejected = errors
            else:
                self.fewest_accepted = errors
        return errors <= self.most_rejected


def jax_privacy(setting: Setting, method: str, split: bool) -> Rejects:
    seeds = iter(range(sys.maxsize))

    def rejects(scores: FloatArray, members: BoolArray) -> bool:
        auditor = CanaryScoreAuditor(scores[members], scores[~members])
        chosen = {"threshold_strategy": Split(seed=next(seeds))} if split else {}
        return setting.exceeded_by(float(getattr(auditor, method)(LEVEL, setting.delta, **chosen)))

    return rejects


def opake_estimate(scores: FloatArray, members: BoolArray) -> opake.auditing.types.OneRunEstimate:
    ids = np.arange(scores.size)
    coins = CoinFlip(scores.size, ids, members, ids[members], ids[~members])
    return opake.auditing.one_run(opake.auditing.canary_scores(scores, canary_indices=ids), coin_flip=coins)


def opake_errors(scores: FloatArray, members: BoolArray) -> int:
    """Errors at its threshold, that with the fewest: nothing else of the scores enters its bounds."""
    estimate = opake_estimate(scores, members)
    return int(np.min(estimate.fn_counts + estimate.n_out - estimate.tn_counts))


def opake_bound(setting: Setting, gaussian: bool, scores: FloatArray, members: BoolArray, _: int) -> float:
    estimate = opake_estimate(scores, members)
    if gaussian:
        return float(estimate.epsilon_at(delta=setting.delta, significance=LEVEL))
    return float(estimate.eps_delta().epsilon_at(delta=setting.delta, significance=LEVEL))


def released_errors(setting: Setting, scores: FloatArray, members: BoolArray) -> int:
    """Errors of a number of guesses fixed in advance, made by the rule that goes with the mechanism."""
    guessing = Guessing(setting.mechanism.rule, setting.mechanism.threshold, SEED)
    return ta.release(scores, members, released=setting.released, guessing=guessing).errors


def steinke_bound(setting: Setting, _: FloatArray, __: BoolArray, errors: int) -> float:
    correct = setting.released - errors
    p = steinke_p_value(setting.n, setting.released, correct, setting.epsilon, setting.delta)
    return math.inf if p <= LEVEL else 0.0


def privacy_guard_bound(setting: Setting, _: FloatArray, __: BoolArray, errors: int) -> float:
    """ε at the smallest noise of its grid that is rejected, or at the last where none is."""
    low, high = 0, len(NOISES) - 1
    while low < high:
        middle = (low + high) // 2
        correct = setting.released - errors
        if recursion_rejects(setting.n, setting.released, correct, 1 / NOISES[middle], LEVEL):
            high = middle
        else:
            low = middle + 1
    epsilon = ta.Gaussian(1 / NOISES[low]).epsilon(setting.delta)
    return math.ceil(epsilon / NOISE_EPSILON_STEP) * NOISE_EPSILON_STEP


def auditors(setting: Setting) -> dict[str, Rejects]:
    counted = partial(released_errors, setting)
    found: dict[str, Rejects] = {
        JAX: jax_privacy(setting, "epsilon_one_run", split=False),
        JAX_SPLIT: jax_privacy(setting, "epsilon_one_run", split=True),
        JAX_FDP: jax_privacy(setting, "epsilon_one_run_fdp", split=False),
        OPAKE: FewErrors(setting, opake_errors, partial(opake_bound, setting, False)),
        OPAKE_GDP: FewErrors(setting, opake_errors, partial(opake_bound, setting, True)),
        STEINKE: FewErrors(setting, counted, partial(steinke_bound, setting)),
        PRIVACY_GUARD: FewErrors(setting, counted, partial(privacy_guard_bound, setting)),
    }
    gaussian = isinstance(setting.claim, ta.Gaussian)
    return {name: rejects for name, rejects in found.items() if gaussian or name not in GAUSSIAN_ONLY}


def measure(text: str, n: int, released: int, audits: int) -> tuple[Setting, list[Rejections]]:
    setting = Setting.of(text, n, released)
    rng = np.random.default_rng([SEED, SETTINGS.index((text, n, released))])
    members = rng.random((audits, n)) < 0.5
    scores = setting.mechanism.scores(members, rng)
    found = []
    for name, rejects in auditors(setting).items():
        times = min(audits, SLOW_AUDITS) if name in SLOW else audits
        rejected = sum(rejects(scores[run], members[run]) for run in range(times))
        found.append(Rejections(name, LEVEL, rejected, times))
    return setting, found + ours(setting, audits)


def ours(setting: Setting, audits: int) -> list[Rejections]:
    """Both published formulas of the paper's authors as we implement them, and our own verdicts."""
    repeated = partial(Audits, n=setting.n, times=audits, seed=SEED)
    judged = partial(calibrate, setting.mechanism, levels=(LEVEL,), delta=DELTA, bounds=False, workers=1)
    formulas = {PAPER: "order-statistics", PAPER_LIBRARY: "exact"}
    counted = judged(repeated(released=setting.released, methods=tuple(formulas.values()))).rejections
    found = [
        Rejections(name, LEVEL, each.rejected, audits) for name, each in zip(formulas, counted, strict=True)
    ]
    verdicts = {"verdict, independence stated": OURS_BELIEVING, "verdict, nothing stated": OURS}
    return found + [
        Rejections(verdicts[r.method], LEVEL, r.rejected, audits)
        for r in judged(repeated(table=True)).rejections
        if r.method in verdicts
    ]


def write_csv(path: Path, measured: list[tuple[Setting, list[Rejections]]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        header = ["mechanism", "n", "released", "independent", "delta", "epsilon", "auditor"]
        writer.writerow([*header, "audits", "rejected", "rate", "low", "high", "exceeds"])
        for setting, found in measured:
            independent = setting.mechanism.independent
            row = [setting.mechanism, setting.n, setting.released, independent, setting.delta]
            for r in found:
                low, high = (f"{limit:.5f}" for limit in r.interval)
                shown = [r.method, r.repetitions, r.rejected, r.rate, low, high, r.exceeds]
                writer.writerow([*row, f"{setting.epsilon:.6f}", *shown])


def percent(share: str) -> str:
    return f"{100 * float(share):.1f}"


def write_tables(folder: Path) -> None:
    """A row per mechanism, a column per auditor: the rate and its interval, from the file."""
    rows = rows_of(folder / "peers-validity.csv")
    settings = dict.fromkeys((r["mechanism"], r["n"], r["released"], r["independent"]) for r in rows)
    for heading, auditors_shown in TABLES.items():
        lines = [
            f"| {heading} | n, released | outcomes | {' | '.join(auditors_shown)} |",
            "| --- " * (3 + len(auditors_shown)) + "|",
        ]
        for mechanism, n, released, independent in settings:
            cells = {r["auditor"]: r for r in rows if r["mechanism"] == mechanism and r["n"] == n}
            shown = [cell_text(cells.get(name)) for name in auditors_shown]
            kind = "independent" if independent == "True" else "dependent"
            lines.append(f"| `{mechanism}` | {n}, {released} | {kind} | {' | '.join(shown)} |")
        put_table(folder / "peers.md", lines)


def cell_text(row: dict[str, str] | None) -> str:
    if row is None:
        return "–"
    text = f"{percent(row['rate'])}% ({percent(row['low'])} to {percent(row['high'])})"
    return f"**{text}**" if row["exceeds"] == "True" else text


def write_versions(path: Path) -> None:
    names = ("jax-privacy", "opake-auditing", "numpy", "scipy", "tightaudit")
    lines = [f"| {' | '.join(['measured with', *names])} |", "| --- " * (1 + len(names)) + "|"]
    versions = [*(version(name) for name in names[:-1]), ta.__version__]
    put_table(path, [*lines, f"| {' | '.join(['version', *versions])} |"])


def main() -> None:
    folder = Path(sys.argv[1])
    audits = int(sys.argv[2]) if len(sys.argv) > 2 else AUDITS
    jobs = (delayed(measure)(*setting, audits) for setting in SETTINGS)
    measured = []
    for setting, found in Parallel(n_jobs=2, return_as="generator")(jobs):
        measured.append((setting, found))
        print(setting.mechanism, [(r.method, r.rate) for r in found], flush=True)
    write_csv(folder / "peers-validity.csv", measured)
    write_tables(folder)
    write_versions(folder / "peers.md")


if __name__ == "__main__":
    main()
