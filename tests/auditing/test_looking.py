"""Looks before the end: when, at which level, and never twice."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.canaries.transcripts import RATE, SIGMA, STEPS, transcript

import tightaudit as ta
from tightaudit.auditing.looking import Looking
from tightaudit.canaries.bank import Bank
from tightaudit.render.page.page import html_page


def run(seed: int, step: int, noise: float = 1.0) -> ta.Run:
    """The first steps of a training."""
    whole = transcript(seed, lambda _rng, _bank, sampled, made: (sampled, noise * made))
    bank = Bank(whole.design)
    for number, each in enumerate(whole.transcript):
        if number < step:
            bank.record(each)
    history = ((SIGMA, RATE, STEPS),)
    return bank.run(history, score="log-likelihood-ratio", why="simulated", source="a test")


def looking(looks: ta.Looks, **named: Any) -> Looking:
    asked = {"delta": 1e-5, "confidence": 0.95, "on_rejection": None, "say": lambda _: None, **named}
    return Looking.of(looks, every=None, until=None, at=None, **asked)


def test_shares_add_up_to_the_level() -> None:
    for looks in (ta.Looks((5, 9, 60), 0.3), ta.Looks((60,)), ta.Looks.every(7, until=60)):
        assert sum(looks.share(place) for place in range(len(looks.at))) == pytest.approx(1)
    assert ta.Looks.every(60, until=60).at == (60,)


def test_a_training_is_looked_at_as_planned() -> None:
    said: list[str] = []
    watched = looking(ta.Looks((20, 40, 60)), say=said.append)
    for step in range(1, STEPS + 1):
        if watched.due(step):
            watched.take(step, run(1, step))
    assert [line.split(":")[0] for line in said] == [
        "look 1 of 3, after 20 steps",
        "look 2 of 3, after 40 steps",
        "look 3 of 3, after 60 steps",
    ]
    assert [round(look.confidence, 6) for look in watched.taken] == [0.995, 0.995, 0.96]
    report = watched.report
    assert report is not None
    alone = ta.audit(run(1, 60), delta=1e-5, confidence=0.96)
    assert (report.epsilon, report.violated) == (alone.epsilon, alone.violated)
    assert "the looks share a level of 5%; this one has 4%" in " ".join(str(report).lower().split())
    assert [look["step"] for look in report.to_dict()["looks"]] == [20, 40, 60]
    assert "How did it go over the steps?" in html_page(report)


def test_a_rejection_calls_back_and_stays() -> None:
    reports: list[ta.Report] = []
    watched = looking(ta.Looks((20, 60)), on_rejection=reports.append)
    watched.take(20, run(1, 20, noise=0.3))
    assert len(reports) == 1
    assert reports[0].violated
    honest = watched.take(60, run(1, 60))
    assert honest.claim_row is not None
    assert not honest.claim_row.rejected
    assert honest.violated
    assert "inconsistent with its claim after 20 steps" in " ".join(honest.verdict.split())


def test_a_resumed_training_does_not_look_twice() -> None:
    first = looking(ta.Looks((20, 40, 60)))
    first.take(20, run(1, 20))
    resumed = looking(ta.Looks((20, 40, 60)))
    resumed.load(first.state())
    assert resumed.taken == first.taken
    assert [step for step in range(1, 61) if resumed.due(step)] == [40, 60]
    for other in (
        looking(ta.Looks((20, 60))),
        looking(ta.Looks((20, 40, 60)), confidence=0.5),
        looking(ta.Looks((20, 40, 60)), delta=1e-3),
    ):
        with pytest.raises(ta.InputError, match=r"expected .*, as fixed before the first look"):
            other.load(first.state())


def test_honest_transcripts_are_rejected_as_rarely_as_all_looks_together_say() -> None:
    """With noise measured at the controls, as in a training; the level is large to need few of them."""
    looks, times, level = ta.Looks((20, 40, 60), early=0.5), 150, 0.3
    rejected = 0
    for seed in range(times):
        for place, step in enumerate(looks.at):
            found = run(seed, step)
            assert found.claim is not None
            evidence = ta.release(found.scores, found.members, released=found.n // 2, guessing=found.guessing)
            if ta.Exact().excess(found.claim, evidence, level * looks.share(place)) <= 0:
                rejected += 1
                break
    assert binomtest(rejected, times, level, alternative="greater").pvalue > 1e-3


def test_looks_are_calibrated_together() -> None:
    audits = ta.Audits(100, times=2000, looks=ta.Looks((3, 6, 10)), seed=1)
    found = ta.calibrate("dp-sgd(sigma=1,q=0.3,steps=10)", audits, levels=(0.1,), workers=1)
    assert [row.method for row in found.rejections][-1] == "any of 3 looks"
    assert not any(row.exceeds for row in found.rejections)
    any_look, each = found.rejections[-1], found.rejections[:-1]
    assert max(row.rejected for row in each) <= any_look.rejected <= sum(row.rejected for row in each)


def test_several_runs_are_calibrated() -> None:
    audits = ta.Audits(100, 0.2, methods=["fdp-recursion", "any-dependence"], times=2000, runs=3)
    for mechanism in ("shared-score(claim=gaussian(mu=1))", "all-or-nothing(delta=0.05)"):
        found = ta.calibrate(mechanism, audits, bounds=False, workers=1)
        assert not any(row.exceeds for row in found.rejections)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ta.Looks(()), "at=\\(\\): expected the steps to look after"),
        (lambda: ta.Looks((5, 5)), "expected steps in ascending order"),
        (lambda: ta.Looks((5, 9), early=1.0), "early=1.0"),
        (lambda: ta.Looks.every(0, until=9), "every=0"),
        (
            lambda: Looking.of(None, every=None, until=None, at=None, delta=1e-5),
            "looks=None: expected one of",
        ),
        (lambda: Looking.of(None, every=5, until=None, at=None, delta=1e-5), "until=None"),
        (lambda: ta.Audits(9, looks=ta.Looks((1,)), table=True), "looks=\\(1,\\): expected no table"),
        (
            lambda: ta.calibrate(
                "dp-sgd(sigma=1,q=0.3,steps=10)",
                ta.Audits(9, looks=ta.Looks((5,)), times=1),
                claim="dp-sgd(sigma=2,q=0.3,steps=10)",
            ),
            "expected none with looks",
        ),
        (
            lambda: ta.calibrate("gaussian(mu=1)", ta.Audits(9, looks=ta.Looks((1,)), times=1)),
            "a mechanism with steps",
        ),
        (
            lambda: ta.calibrate(
                "dp-sgd(sigma=1,q=0.3,steps=10)", ta.Audits(9, looks=ta.Looks((11,)), times=1)
            ),
            "looks=11: expected at most 10",
        ),
    ],
)
def test_bad_input(make: Any, message: str) -> None:
    with pytest.raises(ta.InputError, match=message):
        make()


def test_a_look_is_data() -> None:
    look = ta.Look(5, 0.99, 1.0, 2.0, 0.5, rejected=False)
    assert dataclasses.asdict(look)["step"] == 5
    assert np.isfinite(look.confidence)
