"""The check-up of simulated transcripts: each mistake is named, and honest trainings are left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.canaries.transcripts import RATE, SIGMA, STEPS, Mistake, transcript

import tightaudit as ta
from tightaudit.canaries.accounted import History
from tightaudit.canaries.bank import Bank, Coin, Design
from tightaudit.canaries.checkup import check_up
from tightaudit.canaries.transcript import Step
from tightaudit.evidence.checkup import LEVEL, Check, Checkup
from tightaudit.support.errors import Place

HISTORY: History = ((SIGMA, RATE, STEPS),)


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


def two_quiet_steps(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    noise[10:12] *= 1e-3
    return sampled, noise


def longer_by(length: float) -> Mistake:
    def mistake(_: Any, bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        noise[:, :, : bank.n] += (length - 1) / np.sqrt(2) * (sampled & bank.members)[:, None, :]
        return sampled, noise

    return mistake


def rounded(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
    return sampled, noise.astype(np.float16).astype(np.float64)


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        (too_little, "of what was asked for"),
        (shuffled, "batches are shuffled, not Poisson-sampled"),
        (oversampled, "records are sampled at the rate 0.22"),
        (repeated, "noise repeats from step to step"),
        (same_in_both, "the noise of two tensors is correlated"),
        (shared, "coordinates share noise"),
        (uniform, "the noise is not Gaussian"),
        (longer_by(np.sqrt(2)), "clipping is per tensor"),
        (longer_by(3.0), "contributions are"),
        (two_quiet_steps, "the noise differs from step to step: from 0.001"),
        (rounded, "the noise has too low a precision"),
    ],
)
def test_a_mistake_is_named(mistake: Mistake, fault: str) -> None:
    for seed in range(3):
        found = [check.fault for check in check_up(transcript(seed, mistake), HISTORY).faults]
        assert any(fault in text for text in found), found


@pytest.mark.parametrize("mistake", [too_little, shuffled, repeated, same_in_both, uniform, rounded])
def test_a_mistake_is_named_once(mistake: Mistake) -> None:
    for seed in range(3):
        assert len(check_up(transcript(seed, mistake), HISTORY).faults) == 1


def test_more_steps_than_accounted_for() -> None:
    checkup = check_up(transcript(1), ((SIGMA, RATE, STEPS - 1),))
    assert [check.fault for check in checkup.faults] == ["60 steps were taken and 59 accounted for"]
    late = check_up(transcript(1), ((SIGMA, RATE, STEPS + 5),))
    assert not late.faults
    assert [check.fault[:29] for check in late.notes] == ["only 60 of 65 steps were seen"]


def test_too_much_noise_is_a_note() -> None:
    def more(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        return sampled, 1.1 * noise

    checkup = check_up(transcript(1, more), HISTORY)
    assert not checkup.faults
    assert [check.fault for check in checkup.notes] == ["the noise is 1.1 of what was asked for"]
    assert "costs no privacy" in " ".join(str(checkup).split())


@pytest.mark.parametrize("coin", ["canary", "participation"])
def test_honest_trainings_are_not_faulted(coin: Coin) -> None:
    """At level 0.2 instead of 0.01, where 300 trainings can tell."""
    times, level = 300, 0.2
    faulted = 0
    for seed in range(times):
        bank = transcript(seed, n=100, steps=30, coin=coin)
        found = check_up(bank, ((SIGMA, RATE, 30),), level=level)
        faulted += bool(found.faults or found.notes)
    assert binomtest(faulted, times, level, alternative="greater").pvalue > 1e-3
    assert LEVEL == 0.01


def test_the_spread_of_contributions_is_compared_with_an_estimate() -> None:
    """At rate 1 half of the values are contributions: p-values of honest trainings are uniform even there."""
    times, level = 400, 0.05
    found = []
    for seed in range(times):
        checks = check_up(transcript(seed, n=60, steps=5, rate=1.0), ((SIGMA, 1.0, 5),)).checks
        found.append(next(check.p_value for check in checks if check.name == "contribution, spread"))
    below = sum(p <= level for p in found)
    assert binomtest(below, times, level, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(("steps", "n", "rate"), [(1, 50, 0.5), (3, 40, 0.02), (25, 3, 0.9), (30, 60, 1.0)])
def test_small_and_extreme_trainings_are_checked_too(steps: int, n: int, rate: float) -> None:
    for seed in range(20):
        bank = transcript(seed, n=n, steps=steps, rate=rate)
        assert check_up(bank, ((SIGMA, rate, steps),), level=1e-4).faults == ()


def workers(correlated: Callable[[Any, Any], Any]) -> Bank:
    """Two workers that add noise each, of which `correlated` makes the second one's."""
    rng, bank = np.random.default_rng(3), Bank(Design(n=100, seed=1, workers=2))
    for number in range(40):
        one = rng.standard_normal((2, bank.design.entries)) / np.sqrt(2)
        other = correlated(one, rng.standard_normal(one.shape) / np.sqrt(2))
        local = np.stack([one[:, 100:].ravel(), other[:, 100:].ravel()])
        step = Step(
            rng.random(100) < RATE,
            one + other,
            sigma=1.0,
            rate=RATE,
            accounted=number + 1,
            worker=np.arange(100) % 2,
            alike=local @ local.T,
        )
        step.released[:, :100] += step.sampled * bank.members / np.sqrt(2)
        bank.record(step)
    return bank


def test_the_same_noise_on_two_workers_is_named() -> None:
    history: History = ((1.0, RATE, 40),)
    assert check_up(workers(lambda _, own: own), history).faults == ()
    faults = [check.fault for check in check_up(workers(lambda one, _: one), history).faults]
    assert any(fault.startswith("the two workers add the same noise") for fault in faults), faults


def test_holm_by_hand() -> None:
    checks = tuple(Check(str(p), "", "", p, f"fault {p}") for p in (0.004, 0.03, 0.006))
    checkup = Checkup(checks, level=0.013)
    assert checkup.corrected == pytest.approx((0.012, 0.03, 0.012))
    assert [check.name for check in checkup.faults] == ["0.004", "0.006"]


def test_a_check_up_is_saved_with_its_run_and_read_again() -> None:
    bank = transcript(1, too_little)
    found = check_up(bank, HISTORY)
    again = Checkup.of_dict(found.to_dict(), Place("here"))
    assert again == found
    for broken in (None, 3, {}, {"checks": [1], "level": 0.1}, {**found.to_dict(), "level": "x"}):
        with pytest.raises(ta.InputError, match="a check-up as tightaudit saves it"):
            Checkup.of_dict(broken, Place("here"))
    bad = found.to_dict()
    bad["checks"][0]["p_value"] = "small"
    with pytest.raises(ta.InputError, match="a check-up as tightaudit saves it"):
        Checkup.of_dict(bad, Place("here"))


def test_a_rate_that_changes_is_no_fault() -> None:
    """Each step by its own rate, as the accountant has it."""
    for seed in range(5):
        rng, bank = np.random.default_rng(seed), Bank(Design.of(400, seed=seed))
        bank.records = 1000
        for number in range(60):
            rate = 0.1 if number < 30 else 0.3
            sampled = rng.random(400) < rate
            released = rng.standard_normal((2, bank.design.entries))
            released[:, :400] += sampled * bank.members / np.sqrt(2)
            size = int(sampled.sum()) + int(rng.binomial(600, rate))
            bank.record(Step(sampled, released, sigma=1.0, rate=rate, accounted=number + 1, size=size))
        assert check_up(bank, ((1.0, 0.1, 30), (1.0, 0.3, 30)), level=1e-3).faults == ()


def test_real_records_that_are_sampled_more_often_are_seen_in_the_batch_sizes() -> None:
    rng, bank = np.random.default_rng(1), Bank(Design.of(400, seed=1))
    bank.records = 1000
    for number in range(60):
        sampled = rng.random(400) < RATE
        released = rng.standard_normal((2, bank.design.entries))
        released[:, :400] += sampled * bank.members / np.sqrt(2)
        size = int(sampled.sum()) + int(rng.binomial(600, 2 * RATE))
        bank.record(Step(sampled, released, sigma=1.0, rate=RATE, accounted=number + 1, size=size))
    (fault,) = check_up(bank, ((1.0, RATE, 60),)).faults
    assert "records are sampled more often than accounted for" in fault.fault


def test_canaries_that_are_never_sampled_test_nothing() -> None:
    def never(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        return np.zeros_like(sampled), noise

    faults = [check.fault for check in check_up(transcript(1, never), HISTORY).faults]
    assert faults == ["no canary was ever sampled: the loader does not deliver them, so nothing is tested"]


def test_noise_that_takes_itself_back_is_named() -> None:
    """Every other step subtracts what the one before has added; each step by itself is as asked for."""

    def taken_back(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        noise[1::2] = -noise[::2]
        return sampled, noise

    (fault,) = check_up(transcript(1, taken_back), HISTORY).faults
    assert fault.fault.startswith("the noise of a step is correlated with that of the step before (-0.5")


def test_two_faults_at_once_are_both_named() -> None:
    def small_and_shared(rng: Any, bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        return sampled, 0.1 * shared(rng, bank, sampled, noise)[1]

    def long_and_repeated(rng: Any, bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        return longer_by(2.0)(rng, bank, *repeated(rng, bank, sampled, noise))

    for mistake, *named in (
        (small_and_shared, "the noise is 0.1", "coordinates share noise"),
        (long_and_repeated, "contributions are", "noise repeats"),
    ):
        faults = [check.fault for check in check_up(transcript(1, mistake), HISTORY).faults]
        assert all(any(text in fault for fault in faults) for text in named), faults


def test_noise_that_is_cut_off_or_missing_somewhere_is_told_from_low_precision() -> None:
    def cut_off(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        return sampled, np.clip(noise, -2, 2)

    def missing(_: Any, _bank: Bank, sampled: Any, noise: Any) -> tuple[Any, Any]:
        noise[:, :, ::20] = 0
        return sampled, noise

    for mistake, named in ((cut_off, "the noise is cut off"), (missing, "some coordinates get no noise")):
        faults = [check.fault for check in check_up(transcript(1, mistake), HISTORY).faults]
        assert any(named in fault for fault in faults), faults
