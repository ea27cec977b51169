"""Trainings as a bank sees them, simulated: honest ones, and with a mistake in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tightaudit.canaries.accounted import Accounted, Together
from tightaudit.canaries.bank import Bank, Coin, Design
from tightaudit.canaries.participation import Participation, Pattern, Sampled
from tightaudit.canaries.transcript import Step

N, STEPS, RATE, SIGMA = 400, 60, 0.2, 1.0
Mistake = Callable[[np.random.Generator, Bank, Any, Any], tuple[Any, Any]]


def transcript(
    seed: int,
    mistake: Mistake | None = None,
    *,
    n: int = N,
    steps: int = STEPS,
    rate: float = RATE,
    sigma: float = SIGMA,
    coin: Coin = "canary",
) -> Bank:
    """A training of which a mistake changes who is sampled and the noise, steps first."""
    rng, bank = np.random.default_rng(seed), Bank(Design.of(n, seed=seed, coin=coin))
    sampled = rng.random((steps, n)) < rate
    noise = sigma * rng.standard_normal((steps, 2, bank.design.entries))
    if mistake is not None:
        sampled, noise = mistake(rng, bank, sampled, noise)
    for number, (who, released) in enumerate(zip(sampled, noise, strict=True)):
        released[:, :n] += who * bank.coins(number) / np.sqrt(2)
        bank.record(Step(who, released, sigma=sigma, rate=rate, accounted=number + 1))
    return bank


def correlated(
    seed: int,
    strategy: Any,
    *,
    apart: int,
    mu: float,
    n: int = N,
    made_by: Any = None,
    hidden_rate: float | None = None,
) -> tuple[Bank, Accounted]:
    """A training with correlated noise whose records take turns, and what its accountant wrote down.

    Noise is made by the strategy, or by another one. With a hidden rate, records are sampled at their turn.
    """
    strategy = np.asarray(strategy)
    steps, rng = len(strategy), np.random.default_rng(seed)
    turn = rng.integers(apart, size=n)
    took_part = turn == np.arange(steps)[:, None] % apart
    if hidden_rate is None:
        lengths = [np.linalg.norm(strategy @ (np.arange(steps) % apart == one)) for one in range(apart)]
        participation: Participation = Pattern(apart)
        accounted: Accounted = Together(1 / mu, steps)
    else:
        lengths = np.linalg.norm(strategy, axis=0).tolist()
        participation, accounted = Sampled(apart), ((1 / mu, hidden_rate, -(-steps // apart)),)
        took_part &= rng.random(took_part.shape) < hidden_rate
    bank = Bank(replace(Design.of(n, seed=seed), participation=participation), strategy=strategy)
    sigma = float(max(lengths)) / mu
    white = sigma * rng.standard_normal((steps, 2 * bank.design.entries))
    noise = np.linalg.solve(strategy if made_by is None else made_by, white).reshape(steps, 2, -1)
    for number, (who, released) in enumerate(zip(took_part, noise, strict=True)):
        released[:, :n] += who * bank.members / np.sqrt(2)
        step = Step(who, released, sigma=sigma, rate=hidden_rate or 1.0, accounted=number // apart + 1)
        bank.record(step if hidden_rate else replace(step, accounted=number + 1))
    return bank, accounted
