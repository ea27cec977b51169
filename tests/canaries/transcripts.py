"""Trainings as a bank sees them, simulated: honest ones, and with a mistake in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tightaudit.canaries.bank import Bank, Coin, Design
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
