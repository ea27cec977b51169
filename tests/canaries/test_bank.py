"""The core of all canaries: coins, scores, claims and states from simulated transcripts."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.canaries.transcripts import RATE, SIGMA, STEPS, N, transcript

import tightaudit as ta
from tightaudit.canaries import transcript as transcripts
from tightaudit.canaries.accounted import History
from tightaudit.canaries.bank import Bank, Design, along
from tightaudit.canaries.transcript import Step

HISTORY: History = ((SIGMA, RATE, STEPS),)


def run(bank: Bank, history: History = HISTORY, score: str = "log-likelihood-ratio") -> ta.Run:
    return bank.run(history, score=score, why="simulated", source="a test")


def test_the_claim_is_rejected_as_rarely_as_it_says() -> None:
    times, level = 300, 0.05
    history: History = ((SIGMA, RATE, 30),)
    claim, method = ta.DpSgd(*history[0]), ta.Exact()
    rejected = 0
    for seed in range(times):
        found = run(transcript(seed, n=200, steps=30), history)
        evidence = ta.release(found.scores, found.members, released=100, guessing=found.guessing)
        rejected += method.excess(claim, evidence, level) <= 0
    assert rejected / times <= level + 3 * (level * (1 - level) / times) ** 0.5


def test_a_coin_per_participation_is_rejected_as_rarely_as_it_says() -> None:
    times, level = 400, 0.05
    rejected = 0
    for seed in range(times):
        found = run(transcript(seed, n=100, steps=20, coin="participation"), ((SIGMA, RATE, 20),))
        evidence = ta.release(found.scores, found.members, released=found.n, guessing=found.guessing)
        assert found.claim is not None
        rejected += ta.Exact().excess(found.claim, evidence, level) <= 0
    assert rejected / times <= level + 3 * (level * (1 - level) / times) ** 0.5


def test_scores_are_the_sum_of_the_privacy_losses_of_all_steps() -> None:
    """By the formula, with the noise that the controls of each step show."""
    bank = transcript(3, n=50, steps=4)
    expected = np.zeros(50)
    for step in bank.transcript:
        sigma = np.sqrt(np.mean(step.released[:, 50:] ** 2))
        x = step.released[:, :50].sum(axis=0) / np.sqrt(2)
        expected += np.log(1 - RATE + RATE * np.exp((x - 0.5) / sigma**2))
    assert bank.scores() == pytest.approx(expected, rel=1e-10)


def test_scores_by_participation_are_those_of_the_canaries_sampled() -> None:
    bank = transcript(3, n=50, steps=4, coin="participation")
    found = run(bank, ((SIGMA, RATE, 4),))
    steps = list(bank.transcript)
    assert found.n == sum(int(np.count_nonzero(step.sampled)) for step in steps)
    assert found.ids is not None
    for score, member, place in zip(found.scores, found.members, found.ids, strict=True):
        number, canary = divmod(int(place), 50)
        assert steps[number].sampled[canary] == 1
        assert member == bank.coins(number)[canary]
        sigma = np.sqrt(np.mean(steps[number].released[:, 50:] ** 2))
        assert score == pytest.approx((along(steps[number].released)[canary] - 0.5) / sigma**2)
    assert len({tuple(bank.coins(number)) for number in range(4)}) == 4


def test_a_schedule_is_claimed_as_it_was_and_one_noise_is_audited_by_participation() -> None:
    history: History = ((1.0, 0.2, 6), (0.5, 0.2, 2))
    bank = Bank(Design.of(40, seed=1, coin="participation"))
    rng = np.random.default_rng(1)
    for number in range(8):
        sigma = 1.0 if number < 6 else 0.5
        released = sigma * rng.standard_normal((2, bank.design.entries))
        bank.record(Step(np.ones(40), released, sigma=sigma, rate=0.2, accounted=number + 1))
    found = run(bank, history)
    assert found.n == 240
    assert str(found.claim) == "dp-sgd-participation(factor=1,seen=1,sigma=[1,0.5],q=[0.2,0.2],steps=[6,2])"


def test_a_noiseless_step_among_many_is_caught() -> None:
    """Scored by each step's own noise; by the mean noise it would be lost among the others."""

    def quiet(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        noise[:2] *= 1e-6
        return sampled, noise

    assert ta.audit(run(transcript(1, quiet, n=2000)), delta=1e-5).violated
    assert not ta.audit(run(transcript(1, n=2000)), delta=1e-5).violated


def test_the_first_steps_alone_are_audited_and_claimed() -> None:
    bank = Bank(Design.of(40, seed=1, first_steps=2))
    for number in range(2):
        assert bank.active
        released = np.zeros((2, bank.design.entries)) + 1e-3
        bank.record(Step(np.ones(40), released, sigma=1.0, rate=0.2, accounted=number + 1))
    assert not bank.active
    assert str(bank.claim(((1.0, 0.2, 9),))) == "dp-sgd(sigma=1,q=0.2,steps=2)"


@pytest.mark.parametrize("largest", [transcripts.LARGEST_IN_MEMORY, 1000])
def test_a_state_gives_the_same_scores_again(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, and from a transcript that has gone to disk."""
    monkeypatch.setattr(transcripts, "LARGEST_IN_MEMORY", largest)
    bank = transcript(5)
    again = Bank(Design.of(N, seed=9))
    again.load(bank.state())
    one, other = run(bank), run(again)
    assert (one.scores == other.scores).all()
    assert (one.members == other.members).all()
    with pytest.raises(ta.InputError, match="expected 7, as attached"):
        Bank(Design.of(7)).load(bank.state())
    with pytest.raises(ta.InputError, match="coin=canary: expected participation"):
        Bank(Design.of(N, coin="participation")).load(bank.state())
    with pytest.raises(ta.InputError, match="a state in the format"):
        bank.load({})
    assert (pickle.loads(pickle.dumps(bank)).scores() == bank.scores()).all()


def test_a_saved_run_can_be_scored_again(tmp_path: Path) -> None:
    bank = transcript(5, n=60, steps=10)
    run(bank).save(tmp_path / "run.npz")
    read = ta.read_run(tmp_path / "run.npz")
    assert read.transcript is not None
    again = Bank.of(read.transcript)
    assert again.scores("sum") == pytest.approx(bank.scores("sum"), rel=1e-12)
    assert (again.members == read.members).all()


def test_bad_steps() -> None:
    bank = Bank(Design.of(10))
    with pytest.raises(ta.InputError, match=r"released=array of shape \(2, 3\)"):
        bank.record(Step(np.zeros(10), np.zeros((2, 3)), sigma=1.0, rate=0.1, accounted=1))
    with pytest.raises(ta.InputError, match="at least one step"):
        run(bank)
    with pytest.raises(ta.InputError, match="coin=heads: expected one of canary, participation"):
        Design.of(10, coin="heads")  # type: ignore[arg-type]
    with pytest.raises(ta.InputError, match="first_steps=0"):
        Design.of(10, first_steps=0)
    bank.record(Step(np.zeros(10), np.ones((2, bank.design.entries)), sigma=1.0, rate=0.1, accounted=1))
    with pytest.raises(ta.InputError, match="score=best"):
        run(bank, score="best")
