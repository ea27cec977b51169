"""Canaries as records: scores and check-up from simulated transcripts, honest and with a mistake in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tightaudit as ta
from tightaudit.canaries.bank import Bank, Step
from tightaudit.canaries.checkup import LEVEL, Checkup

N, STEPS, RATE, SIGMA = 400, 60, 0.2, 1.0
CLAIM = ta.DpSgd(SIGMA, RATE, STEPS)
Mistake = Callable[[np.random.Generator, Bank, Any, Any], tuple[Any, Any]]


def transcript(seed: int, mistake: Mistake | None = None, *, n: int = N, steps: int = STEPS) -> Bank:
    """A training as the bank sees it; a mistake changes who is sampled and the noise, steps first."""
    rng, bank = np.random.default_rng(seed), Bank.draw(n, seed=seed)
    sampled = rng.random((steps, n)) < RATE
    noise = SIGMA * rng.standard_normal((steps, 2, bank.entries))
    if mistake is not None:
        sampled, noise = mistake(rng, bank, sampled, noise)
    for who, released in zip(sampled, noise, strict=True):
        released[:, :n] += who * bank.members / np.sqrt(2)
        bank.record(Step(who, released, SIGMA))
    return bank


def shuffled(rng: np.random.Generator, bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    """Every record once in each epoch of 1/q steps."""
    per_epoch = round(1 / RATE)
    for start in range(0, len(sampled), per_epoch):
        batch = rng.permutation(bank.n) % per_epoch
        sampled[start : start + per_epoch] = batch == np.arange(per_epoch)[:, None]
    return sampled, noise


def oversampled(rng: np.random.Generator, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    return sampled | (rng.random(sampled.shape) < 0.03), noise


def repeated(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    return sampled, np.repeat(noise[:1], len(noise), axis=0)


def same_in_both(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    return sampled, np.repeat(noise[:, :1], 2, axis=1)


def shared(rng: np.random.Generator, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    common = rng.standard_normal((*noise.shape[:2], 1))
    return sampled, np.sqrt(0.9) * noise + np.sqrt(0.1) * SIGMA * common


def uniform(rng: np.random.Generator, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    return sampled, SIGMA * np.sqrt(12) * (rng.random(noise.shape) - 0.5)


def too_little(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    return sampled, 0.9 * noise


def per_tensor(_: Any, bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    extra = (np.sqrt(2) - 1) / np.sqrt(2)
    noise[:, :, : bank.n] += extra * (sampled & bank.members)[:, None, :]
    return sampled, noise


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        (too_little, "the noise is 0.90 of what was asked for"),
        (shuffled, "batches are shuffled, not Poisson-sampled"),
        (oversampled, "records are sampled at the rate 0.22"),
        (repeated, "noise repeats from step to step"),
        (same_in_both, "the noise of two tensors is correlated"),
        (shared, "coordinates share noise"),
        (uniform, "the noise is not Gaussian"),
        (per_tensor, "clipping is per tensor"),
    ],
)
def test_a_mistake_is_named(mistake: Mistake, fault: str) -> None:
    for seed in range(3):
        found = [check.fault for check in Checkup.of(transcript(seed, mistake), CLAIM).faults]
        assert any(fault in text for text in found), found


def test_more_steps_than_accounted_for() -> None:
    checkup = Checkup.of(transcript(1), ta.DpSgd(SIGMA, RATE, STEPS - 1))
    assert [check.fault for check in checkup.faults] == ["60 steps were taken and 59 accounted for"]


def test_too_much_noise_is_a_note() -> None:
    def more(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        return sampled, 1.1 * noise

    checkup = Checkup.of(transcript(1, more), CLAIM)
    assert not checkup.faults
    assert [check.fault for check in checkup.notes] == ["the noise is 1.10 of what was asked for"]
    assert "costs no privacy" in " ".join(str(checkup).split())


def test_honest_trainings_are_not_faulted() -> None:
    """At level 0.2 instead of 0.01, where 300 trainings can tell."""
    times, level = 300, 0.2
    faulted = sum(
        bool(found.faults or found.notes)
        for found in (
            Checkup.of(transcript(seed, n=100, steps=30), ta.DpSgd(SIGMA, RATE, 30), level=level)
            for seed in range(times)
        )
    )
    assert faulted / times <= level + 3 * (level * (1 - level) / times) ** 0.5
    assert LEVEL == 0.01


def test_the_claim_is_rejected_as_rarely_as_it_says() -> None:
    times, level, claim = 300, 0.05, ta.DpSgd(SIGMA, RATE, 30)
    method = ta.Exact()
    rejected = 0
    for seed in range(times):
        run = transcript(seed, n=200, steps=30).run(claim)
        evidence = ta.release(run.scores, run.members, released=100, guessing=run.guessing)
        rejected += method.excess(claim, evidence, level) <= 0
    assert rejected / times <= level + 3 * (level * (1 - level) / times) ** 0.5


def test_a_noiseless_step_among_many_is_caught() -> None:
    """Scored by each step's own noise; by the mean noise it would be lost among the others."""

    def quiet(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        noise[:2] *= 1e-6
        return sampled, noise

    run = transcript(1, quiet, n=2000).run(CLAIM)
    assert ta.audit(run, delta=1e-5).violated
    assert not ta.audit(transcript(1, n=2000).run(CLAIM), delta=1e-5).violated


def test_a_state_gives_the_same_scores_again() -> None:
    bank = transcript(5)
    again = Bank.draw(N, seed=9)
    again.load(bank.state())
    one, other = bank.run(CLAIM), again.run(CLAIM)
    assert (one.scores == other.scores).all()
    assert (one.members == other.members).all()
    with pytest.raises(ta.InputError, match="expected 7, as attached"):
        Bank.draw(7).load(bank.state())
    with pytest.raises(ta.InputError, match="a state in the format"):
        bank.load({})


def test_bad_steps() -> None:
    bank = Bank.draw(10)
    with pytest.raises(ta.InputError, match=r"released=array of shape \(2, 3\)"):
        bank.record(Step(np.zeros(10, dtype=bool), np.zeros((2, 3)), 1.0))
    with pytest.raises(ta.InputError, match="at least one step"):
        bank.run(CLAIM)
