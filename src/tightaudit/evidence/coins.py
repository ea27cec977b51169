"""Secret coins: which canaries are in."""

import secrets
from dataclasses import dataclass

import numpy as np

from tightaudit.support import checks
from tightaudit.support.checks import BoolArray

_COIN_STREAM = 1


@dataclass(frozen=True, repr=False)
class Coins:
    """The secret bits of one audit, and the seed that reproduces them.

    >>> draw_coins(100, seed=3)
    Coins(n=100)
    """

    members: BoolArray
    seed: int

    def __repr__(self) -> str:
        return f"Coins(n={self.members.size})"


def draw_coins(n: int, *, seed: int | None = None) -> Coins:
    """Draw n fair secret bits: which canaries are in (or which of two each one is).

    Without a seed one is drawn from the operating system; either way it is recorded.

    >>> coins = draw_coins(8, seed=3)
    >>> bool((draw_coins(8, seed=coins.seed).members == coins.members).all())
    True
    """
    number = checks.count("n", n, minimum=1)
    recorded = recorded_seed(seed)
    return Coins(members=stream(recorded, _COIN_STREAM).random(number) < 0.5, seed=recorded)


def recorded_seed(seed: int | None) -> int:
    """The seed given; without one, a fresh one from the operating system.

    >>> recorded_seed(7)
    7
    """
    return secrets.randbits(63) if seed is None else checks.seed(seed)


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """Random numbers of one purpose: the same seed for several purposes does not tie them together."""
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=purpose))
