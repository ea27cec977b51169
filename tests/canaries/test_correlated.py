"""Noise that is correlated between steps: seen through the strategy, scored, claimed and checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.stats import binomtest, kstest
from tests.canaries.transcripts import correlated, transcript

import tightaudit as ta
from tightaudit.canaries.accounted import Accounted, Together
from tightaudit.canaries.bank import Bank, Design
from tightaudit.canaries.checkup import check_up
from tightaudit.canaries.correlated import Whiteness, as_strategy, matched, through, whitening, worth_keeping
from tightaudit.canaries.participation import Pattern, Sampled, as_text, of_text, turns
from tightaudit.canaries.transcript import Step

STEPS, APART = 24, 6
COEFFICIENTS = np.cumprod([1.0] + [(2 * k - 1) / (2 * k) for k in range(1, STEPS)])
SQUARE_ROOT = toeplitz(COEFFICIENTS, np.zeros(STEPS))
"""The square root of the matrix of prefix sums."""
BANDED = toeplitz([1.0, 0.6, 0.3, 0.1] + [0.0] * (STEPS - 4), np.zeros(STEPS))
DENSE = np.tril(np.random.default_rng(3).random((STEPS, STEPS))) + np.eye(STEPS)


def run(bank: Bank, accounted: Accounted) -> ta.Run:
    return bank.run(accounted, score="log-likelihood-ratio", why="simulated", source="a test")


@pytest.mark.parametrize("strategy", [SQUARE_ROOT, BANDED, DENSE], ids=["square root", "banded", "dense"])
def test_the_claim_is_rejected_as_rarely_as_it_says(strategy: Any) -> None:
    times, level = 300, 0.05
    rejected = faulted = 0
    for seed in range(times):
        bank, accounted = correlated(seed, strategy, apart=APART, mu=1.5, n=200)
        found = run(bank, accounted)
        evidence = ta.release(found.scores, found.members, released=found.n // 2, guessing=found.guessing)
        assert found.claim == ta.Gaussian(1.5)
        rejected += ta.Exact().excess(found.claim, evidence, level) <= 0
        checkup = check_up(bank, accounted, level=0.2)
        faulted += bool(checkup.faults or checkup.notes)
    assert binomtest(rejected, times, level, alternative="greater").pvalue > 1e-3
    assert binomtest(faulted, times, 0.2, alternative="greater").pvalue > 1e-3


def test_sampled_records_in_turns_are_rejected_as_rarely_as_it_says() -> None:
    times, level = 300, 0.05
    rejected = faulted = 0
    for seed in range(times):
        bank, accounted = correlated(seed, BANDED, apart=APART, mu=1.0, n=200, hidden_rate=0.3)
        found = run(bank, accounted)
        assert str(found.claim) == "dp-sgd(sigma=1,q=0.3,steps=4)"
        evidence = ta.release(found.scores, found.members, released=100, guessing=found.guessing)
        rejected += ta.Exact().excess(ta.DpSgd(1.0, 0.3, 4), evidence, level) <= 0
        checkup = check_up(bank, accounted, level=0.2)
        faulted += bool(checkup.faults or checkup.notes)
    assert binomtest(rejected, times, level, alternative="greater").pvalue > 1e-3
    assert binomtest(faulted, times, 0.2, alternative="greater").pvalue > 1e-3


def test_scores_are_the_log_likelihood_ratio_of_all_steps_together() -> None:
    """Against the density of the multivariate Gaussian, with the noise that the controls show."""
    bank, _ = correlated(5, SQUARE_ROOT, apart=APART, mu=1.5, n=60)
    steps = list(bank.transcript)
    released = np.stack([step.released.sum(axis=0) / np.sqrt(2) for step in steps])
    took_part = np.stack([step.sampled > 0 for step in steps]).astype(float)
    seen = np.stack([SQUARE_ROOT @ part for part in np.moveaxis(np.stack([s.released for s in steps]), 1, 0)])
    noise = np.sqrt(np.mean(seen[:, :, 60:] ** 2, axis=(0, 2)))
    inverse = np.linalg.inv(SQUARE_ROOT)
    precision = np.linalg.inv(inverse @ np.diag(noise**2) @ inverse.T)
    expected = [
        u @ precision @ x - u @ precision @ u / 2
        for u, x in zip(took_part.T, released[:, :60].T, strict=True)
    ]
    assert bank.scores() == pytest.approx(np.array(expected), rel=1e-5, abs=1e-6)


def test_a_sampled_round_is_seen_through_its_own_column() -> None:
    """With bands that do not reach the next turn, rounds are independent: a likelihood ratio per round."""
    bank, _ = correlated(5, BANDED, apart=APART, mu=1.5, n=40, hidden_rate=0.4)
    steps = list(bank.transcript)
    took_part = bank.transcript.took_part()
    seen = BANDED @ np.stack([step.released.sum(axis=0) / np.sqrt(2) for step in steps])
    columns = BANDED / np.sum(BANDED**2, axis=0)
    projected = columns.T @ seen
    each = np.stack([columns.T @ BANDED @ np.stack([s.released[k] for s in steps]) for k in (0, 1)])
    noise = np.sqrt(np.mean(each[:, :, 40:] ** 2, axis=(0, 2)))
    scores = bank.scores()
    for canary in np.flatnonzero(took_part.any(axis=0)):
        turn = int(took_part[:, canary].argmax()) % APART
        rounds = np.arange(turn, STEPS, APART)
        ratios = (projected[rounds, canary] - 0.5) / noise[rounds] ** 2
        assert scores[canary] == pytest.approx(np.sum(np.log(0.6 + 0.4 * np.exp(ratios))), rel=1e-4, abs=1e-5)


def test_another_strategy_than_the_one_said_is_named_and_scored_as_it_is() -> None:
    wider = toeplitz([1.0, 0.9, 0.8, 0.7, 0.6, 0.5] + [0.0] * (STEPS - 6), np.zeros(STEPS))
    honest, accounted = correlated(2, BANDED, apart=2, mu=1.5, n=3000)
    wrong, _ = correlated(2, BANDED, apart=2, mu=1.5, n=3000, made_by=wider)
    assert not check_up(honest, accounted).faults
    assert [check.name for check in check_up(wrong, accounted).faults] == ["correlation between steps"]
    assert not ta.audit(run(honest, accounted), delta=1e-5).violated
    assert ta.audit(run(wrong, accounted), delta=1e-5).violated
    root = whitening(wrong.transcript, BANDED, 3000)
    assert root is not None
    assert Whiteness.of(through(wrong.transcript, root), slice(3000, None)).excess < 0.1


def test_noise_that_repeats_is_rejected_too() -> None:
    """Added up over the steps it would not average out; seen as it is, it can be taken away."""

    def repeated(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        return sampled, np.repeat(noise[:1], len(noise), axis=0)

    bank = transcript(1, repeated)
    assert ta.audit(run(bank, ((1.0, 0.2, 60),)), delta=1e-5).violated


def test_participations_that_are_not_accounted_for_are_named() -> None:
    bank, accounted = correlated(1, SQUARE_ROOT, apart=3, mu=1.0)
    closer = Bank(replace(bank.design, participation=Pattern(4)), strategy=SQUARE_ROOT)
    more = Bank(replace(bank.design, participation=Pattern(3, max_participations=5)), strategy=SQUARE_ROOT)
    for step in bank.transcript:
        closer.record(step)
        more.record(step)
    named = [check.fault for check in check_up(closer, accounted).faults]
    assert named[0].startswith("a record took part again after 3 steps, not after 4 or more")
    assert [c.fault for c in check_up(more, accounted).faults] == [
        "a record took part 8 times, 5 are accounted for"
    ]


def test_records_out_of_turn_are_named() -> None:
    bank, accounted = correlated(1, BANDED, apart=APART, mu=1.0, hidden_rate=0.3)
    other = Bank(replace(bank.design, participation=Sampled(APART + 1)), strategy=BANDED)
    for step in bank.transcript:
        other.record(step)
    assert "batches are not taken from 7 groups in turn" in check_up(other, accounted).faults[0].fault


@pytest.mark.parametrize(("steps", "values"), [(2, 400), (20, 400), (300, 400)])
def test_the_test_of_whiteness_has_the_law_that_it_says(steps: int, values: int) -> None:
    rng, found = np.random.default_rng(1), []
    for _ in range(300):
        noise = rng.standard_normal((steps, values))
        noise /= np.sqrt(np.mean(noise**2, axis=1, keepdims=True))
        found.append(Whiteness(np.ones(steps), noise @ noise.T / values, values).p_value)
    assert kstest(found, "uniform").pvalue > 1e-3


def test_the_canaries_with_the_worst_pattern_are_kept() -> None:
    lengths = np.concatenate([np.full(5000, 1.0), np.full(5000, 0.9), np.full(5000, 0.2)])
    assert len(list(worth_keeping(lengths))) == 5000
    assert len(list(worth_keeping(np.concatenate([np.full(50, 1.0), np.full(5000, 0.9)])))) == 5050
    bank, accounted = correlated(1, SQUARE_ROOT, apart=APART, mu=1.5, n=2000)
    found, took_part = run(bank, accounted), bank.transcript.took_part()
    assert found.ids is not None
    kept = np.linalg.norm(SQUARE_ROOT @ took_part, axis=0)
    assert kept[found.ids].min() > np.delete(kept, found.ids).max()


def test_a_saved_run_keeps_its_strategy(tmp_path: Path) -> None:
    bank, accounted = correlated(5, SQUARE_ROOT, apart=APART, mu=1.5, n=60)
    run(bank, accounted).save(tmp_path / "run.npz")
    read = ta.read_run(tmp_path / "run.npz")
    assert read.transcript is not None
    again = Bank.of(read.transcript)
    assert again.scores() == pytest.approx(bank.scores(), rel=1e-10)
    assert again.design.participation == Pattern(APART)


def test_matched_filters_and_turns() -> None:
    assert matched(SQUARE_ROOT).diagonal() == pytest.approx(1)
    took_part = np.zeros((6, 3), bool)
    took_part[4, 0] = took_part[1, 1] = True
    found = turns(took_part, 3, np.random.default_rng(1))
    assert found[:2].tolist() == [1, 1]
    for each in (Sampled(3, fixed_size=True), Pattern(2, 5)):
        assert of_text(as_text(each)) == each
    rng = np.random.default_rng(1)
    drawn = turns(np.zeros((6, 3000), bool), 3, rng)
    assert np.bincount(drawn) == pytest.approx(1000, abs=150)


def test_bad_input() -> None:
    for given, expected in (
        (np.ones((2, 3)), r"array of shape \(2, 3\)"),
        (np.ones((2, 2)), "values above its diagonal"),
        (np.zeros((2, 2)), "other values on its diagonal"),
        (np.full((1, 1), np.nan), "other values on its diagonal"),
    ):
        with pytest.raises(ta.InputError, match=expected):
            as_strategy(given)
    for low in (0, True, 1.5):
        with pytest.raises(ta.InputError, match="min_sep="):
            Pattern(low)  # type: ignore[arg-type]
    with pytest.raises(ta.InputError, match="max_participations=0"):
        Pattern(1, 0)
    with pytest.raises(ta.InputError, match="cycle=0"):
        Sampled(0)
    bank = Bank(Design.of(10, seed=1), strategy=np.eye(2))
    step = Step(np.ones(10), np.ones((2, bank.design.entries)), sigma=1.0, rate=1.0, accounted=1)
    bank.record(step)
    bank.record(step)
    with pytest.raises(ta.InputError, match="steps=3: expected at most 2, as the strategy is made for"):
        bank.record(step)
    assert bank.claim(Together(2.0, 2)) == ta.Gaussian(0.5)
