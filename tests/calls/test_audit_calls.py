"""Audits by calls: what is caught, what is not, whatever a mechanism returns."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.zoo.mechanisms.suite import SUITE, Entry

import tightaudit as ta
from tightaudit.calls.audit import Learning, learned_scores
from tightaudit.calls.features import Features
from tightaudit.calls.game import call, call_generator
from tightaudit.calls.learned import Frequencies, promise, smallest_visible
from tightaudit.calls.pairs import neighbouring_lists
from tightaudit.testing import (
    PrivacyViolationError,
    VacuousTestError,
    assert_private,
    assert_private_pair,
)

PURE = "approx-dp(epsilon=1,delta=0)"
PAIR = (1.0, 1.0, 1.0), (2.0, 0.0, 0.0)


def noisy_max(data: Any, rng: np.random.Generator) -> int:
    """Report-noisy-max with ε = 1."""
    return int(np.argmax(np.asarray(data) + rng.laplace(scale=2.0, size=len(data))))


def leaky_max(data: Any, rng: np.random.Generator) -> int:
    """A third of the noise."""
    return int(np.argmax(np.asarray(data) + rng.laplace(scale=0.6, size=len(data))))


def words(data: Any, rng: np.random.Generator) -> str:
    return ["low", "middle", "high"][leaky_max(data, rng)]


def flags(data: Any, rng: np.random.Generator) -> list[bool | None]:
    """Above a threshold or not, and nothing after the first that is."""
    found: list[bool | None] = []
    for value in data:
        if True in found:
            found.append(None)
        else:
            found.append(bool(value + rng.laplace(scale=0.3) > 1.5))
    return found


def ragged(data: Any, rng: np.random.Generator) -> list[float]:
    return [
        float(value) for value in np.asarray(data) + rng.laplace(scale=0.3, size=len(data)) if value > 0.5
    ]


def nothing(data: Any, rng: np.random.Generator) -> float | None:
    value = data[0] + rng.laplace(scale=0.3)
    return None if value > 1.5 else float(value)


@pytest.mark.parametrize("mechanism", [leaky_max, words, flags, ragged, nothing])
def test_whatever_comes_back_a_leak_is_caught(mechanism: Any) -> None:
    report = ta.audit_calls(mechanism, *PAIR, calls=4000, claim=PURE, seed=1, workers=1)
    assert report.violated
    assert report.run.source is not None
    assert f"2,000 calls of {mechanism.__name__}, scored by" in report.run.source
    assert report.run.seed == 1


def test_a_right_mechanism_stands_and_the_seed_repeats_it() -> None:
    reports = [
        ta.audit_calls(noisy_max, *PAIR, calls=6000, claim=PURE, seed=3, workers=workers)
        for workers in (1, 2)
    ]
    assert not reports[0].violated
    assert (reports[0].run.scores == reports[1].run.scores).all()
    assert not reports[0].verdict.endswith("too few to show any leak.")


def test_honest_mechanisms_are_rejected_as_rarely_as_it_says() -> None:
    """Even by a score that overfits: it was learned from other calls."""

    def rounded(data: float, rng: np.random.Generator, size: int) -> Any:
        return np.round(data + rng.laplace(scale=1.0, size=size), 1)

    times, level, rejected = 300, 0.2, 0
    for seed in range(times):
        called = call(rounded, (0.0, 1.0), 1000, seed=seed, vectorized=True)
        early, rest = called.part(0, 500), called.part(500, 1000)
        scores, _ = learned_scores(early, rest, Learning(estimator=Frequencies()))
        guessing = ta.Guessing("threshold", 0.0)
        evidence = ta.release(scores, rest.coins, released=250, guessing=guessing)
        rejected += ta.Exact().excess(ta.ApproxDP(1.0, 0.0), evidence, level) <= 0
    assert binomtest(rejected, times, level, alternative="greater").pvalue > 1e-3


def test_the_right_one_of_several_pairs_is_chosen() -> None:
    """Only the last pair leaks."""

    def vectorized(data: Any, rng: np.random.Generator, size: int) -> Any:
        return data[0] + rng.laplace(scale=0.5, size=size)

    pairs = [((1.0,), (1.0,)), ((2.0,), (2.0,)), ((0.0,), (1.0,))]
    report = ta.audit_calls(vectorized, pairs=pairs, calls=12_000, claim=PURE, vectorized=True, seed=1)
    assert report.violated
    assert report.run.source is not None
    assert "pair 3 of 3, chosen by" in report.run.source


@pytest.mark.parametrize(
    "entry",
    [entry for entry in SUITE if entry.name in ("noisy histogram 2", "sparse vector 5")],
    ids=lambda entry: entry.name,
)
def test_wrong_mechanisms_of_the_suite(entry: Entry) -> None:
    claim = f"approx-dp(epsilon={entry.claimed},delta=0)"
    report = ta.audit_calls(
        entry.mechanism, pairs=entry.pairs, calls=60_000, claim=claim, vectorized=True, seed=1
    )
    assert report.violated


def test_the_last_bits_of_a_naive_laplace_tell() -> None:
    """Mironov (CCS 2012): a textbook sampler in doubles leaves holes that depend on the number hidden."""

    def naive(data: float, rng: np.random.Generator, size: int) -> Any:
        sign = np.where(rng.random(size) < 0.5, 1.0, -1.0)
        return data + sign * np.log(rng.random(size)) * 0.01

    plain, bits = (
        ta.audit_calls(
            naive,
            0.0,
            0.01,
            calls=40_000,
            claim=PURE,
            vectorized=True,
            learning=Learning(last_bits=last_bits),
            seed=1,
        )
        for last_bits in (False, True)
    )
    assert not plain.violated
    assert bits.violated
    assert bits.epsilon is not None
    assert bits.epsilon > 1.5


def test_a_mechanism_that_cannot_be_pickled_runs_on_one_core() -> None:
    lock = threading.Lock()

    def locked(data: float, rng: np.random.Generator) -> float:
        with lock:
            return data + rng.laplace(scale=0.2)

    assert ta.audit_calls(locked, 0.0, 1.0, calls=4000, claim=PURE, seed=1).violated


def test_features() -> None:
    features = Features.of([["a", 1.5], ["b", 2.5], ["a", 0.5]])
    assert features.matrix([["a", 3.0], ["c", 1.0]]).tolist() == [[0, 1, 1, 0, 3], [0, 1, 0, 0, 1]]
    assert Features.of([[1.0], [1.0, 2.0]]).matrix([[5.0]]).tolist() == [[5, 0, 1, 1]]
    own = Features.of(["xy", "z"], own=lambda text: [len(text)])
    assert own.matrix(["abc"]).tolist() == [[3]]
    assert Features.of([{"b": 1, "a": 2}]).matrix([{"a": 5, "b": 6}]).tolist() == [[5, 6]]
    numbers = np.append(np.random.default_rng(1).standard_normal(300), [-1.0] * 100)
    marked = Features.of([[value] for value in numbers])
    assert marked.marks == ((-1.0,),)
    assert marked.matrix([[-1.0], [0.5]]).tolist() == [[0, 1], [0.5, 0]]
    assert Features.of([[math.inf], [1.0]]).matrix([[math.inf]])[0, 0] == 1e30


def test_pairs_and_promises() -> None:
    assert len(neighbouring_lists(10)) == 8
    for first, second in neighbouring_lists(6):
        assert max(abs(a - b) for a, b in zip(first, second, strict=True)) == 1
    coins = np.arange(4000) % 2 == 0
    assert promise(np.where(coins, 1.0, -1.0), coins) > 5
    assert promise(np.ones(4000), coins) == 0
    assert smallest_visible(10**6, 0.05) == pytest.approx(3.3 / 1000, rel=0.01)
    called = call(lambda data, rng: data + rng.random(), (0.0, 1.0), 5, seed=2)
    assert called.outputs[3] == called.coins[3] + call_generator(2, 3).random()


def test_assertions() -> None:
    seen = assert_private_pair(noisy_max, *PAIR, PURE, calls=6000, must_catch=4.0, seed=1)
    assert seen.epsilon is not None
    assert 1 < seen.epsilon < 4
    with pytest.raises(PrivacyViolationError, match=r"leaks more than approx-dp(.|\n)*To repeat: seed=1"):
        assert_private_pair(leaky_max, *PAIR, PURE, calls=6000, seed=1)
    with pytest.raises(VacuousTestError, match=r"ε = 1\.01 could not have been detected: calls=6000"):
        assert_private_pair(noisy_max, *PAIR, PURE, calls=6000, must_catch=1.01, seed=1)

    def laplace(bits: Any, rng: np.random.Generator) -> Any:
        return bits + rng.laplace(size=bits.size)

    with pytest.raises(VacuousTestError, match="n=1000 can show"):
        assert_private(laplace, "laplace(mu=1)", n=1000, independent=True, must_catch=1.1, seed=1)


def fails(_data: Any, rng: np.random.Generator) -> float:
    if rng.random() < 0.01:
        raise ZeroDivisionError("a bad day")
    return 1.0


@pytest.mark.parametrize(
    ("mechanism", "named", "message"),
    [
        (fails, {}, r"mechanism=fails: ZeroDivisionError: a bad day: expected an output; call \d+ raised it"),
        (lambda _data, _rng: math.nan, {}, "mechanism=NaN"),
        (lambda _data, _rng: object(), {}, "an output with a object"),
        (lambda _data, rng: "a" if rng.random() < 0.5 else 1.0, {}, "words and numbers in place 0"),
        (lambda _data, _rng: 1.0, {}, "calls with the score"),
        (lambda _data: 1.0, {}, "expected a function of data and rng"),
        (7, {}, "mechanism=int: expected a function"),
        (noisy_max, {"calls": 10}, "calls=10: expected at least 40"),
        (noisy_max, {"learning": Learning(estimator=3)}, "estimator=int: expected a classifier"),
        (noisy_max, {"pairs": [PAIR]}, "pairs=given: expected either these or two inputs"),
        (lambda _data, _rng, size: np.ones(size + 1), {"vectorized": True}, "expected one output per call"),
    ],
)
def test_bad_input(mechanism: Any, named: dict[str, Any], message: str) -> None:
    asked = {"calls": 400, "claim": PURE, "seed": 1, "workers": 1, **named}
    with pytest.raises(ta.InputError, match=message):
        ta.audit_calls(mechanism, *PAIR, **asked)
    with pytest.raises(ta.InputError, match="fit=1"):
        Learning(fit=1)
