"""Canaries that are records, whatever the framework: coins, slots, what was seen in each step, scores.

Every canary has a slot in the data set, whatever its coin says, so that sampling does not depend on the
coins. A slot whose coin says in contributes one clipping norm, shared equally by its entries in two tensors
of the bank, a few parameters that the model itself does not use. What is released at the bank is canary plus
noise. Control entries of the bank belong to no slot: they show the noise of each step.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightaudit.canaries.scores import log_likelihood_ratio
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.evidence.coins import draw_coins
from tightaudit.evidence.run import Run
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError

FORMAT = "tightaudit.bank/1"
TENSORS = 2
_CONTROLS, _CONTROL_SHARE = 200, 10
_LEAST_NOISE = 1e-3
"""As a share of the noise asked for: less counts as none."""
_WHY = (
    "every canary is a record with entries of its own in the bank, with noise of their own, and is sampled "
    "by itself; the family because each step samples at rate q and adds Gaussian noise"
)


@dataclass(frozen=True)
class Step:
    """One step: who was sampled, and what came out at the bank."""

    sampled: NDArray[Any]
    """For each slot, how often the loader delivered it, all workers together: 0 or 1 if all is well."""
    released: FloatArray
    """In units of the clipping norm, tensors × entries, slots first and controls last."""
    sigma: float
    """The noise multiplier asked for."""
    size: int = 0
    """Records in the batch, real ones and canaries."""


@dataclass
class Bank:
    """Slots, their secret coins, and the transcript of the steps so far.

    >>> bank = Bank.draw(100, seed=1)
    >>> bank.record(Step(np.zeros(100, dtype=bool), np.zeros((2, bank.entries)), sigma=1.0))
    >>> bank.n, bank.steps, bank.controls
    (100, 1, 200)
    """

    members: BoolArray
    seed: int
    records: int = 0
    """Records in the data set, real ones and canaries; 0 if that is not known."""
    transcript: list[Step] = field(default_factory=list)

    @classmethod
    def draw(cls, n: int, *, seed: int | None = None) -> "Bank":
        """A bank of n slots, each in or out by a fair secret coin."""
        coins = draw_coins(checks.count("n", n, minimum=1), seed=seed)
        return cls(coins.members, coins.seed)

    @property
    def n(self) -> int:
        """The number of slots."""
        return int(self.members.size)

    @property
    def controls(self) -> int:
        """Entries that belong to no slot."""
        return max(_CONTROLS, self.n // _CONTROL_SHARE)

    @property
    def entries(self) -> int:
        """Entries of each tensor: one per slot, and the controls."""
        return self.n + self.controls

    @property
    def steps(self) -> int:
        """The steps so far."""
        return len(self.transcript)

    def record(self, step: Step) -> None:
        """Keep one more step."""
        shape = (TENSORS, self.entries)
        if step.released.shape != shape:
            raise InputError("released", f"array of shape {step.released.shape}", f"one of shape {shape}")
        self.transcript.append(step)

    def scores(self, rate: float) -> FloatArray:
        """Σ ln(1-q+q·e^((x-1/2)/σ²)) over the steps, σ each step's own noise as the controls show it."""
        total = np.zeros(self.n)
        for step in self.transcript:
            noise = max(float(np.sqrt(np.mean(step.released[:, self.n :] ** 2))), _LEAST_NOISE * step.sigma)
            total += log_likelihood_ratio((along(step.released)[: self.n] - 0.5) / noise**2, rate)
        return total

    def run(self, claim: DpSgd) -> Run:
        """Scores and secret bits of the steps so far, about the claim that the accountant makes."""
        if self.steps == 0:
            raise InputError("steps", 0, "at least one step of training")
        return Run(
            scores=self.scores(claim.q),
            members=self.members,
            ids=np.arange(self.n),
            independent=_WHY,
            claim=claim,
            family=claim.own_family(),
            threshold=0.0,
            seed=self.seed,
            source="canaries as records",
        )

    def state(self) -> dict[str, Any]:
        """All that is needed to go on from here, secret bits included."""
        return {
            "format": FORMAT,
            "seed": self.seed,
            "members": self.members.copy(),
            "sampled": np.array([step.sampled for step in self.transcript], dtype=np.int32),
            "released": np.array([step.released for step in self.transcript]),
            "sigma": np.array([step.sigma for step in self.transcript]),
            "size": np.array([step.size for step in self.transcript], dtype=np.int64),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a state: the same coins, the steps so far."""
        if state.get("format") != FORMAT:
            raise InputError("state", state.get("format"), f"a state in the format {FORMAT}")
        if state["members"].size != self.n:
            raise InputError("state: n", int(state["members"].size), f"{self.n}, as attached")
        self.members, self.seed = state["members"].copy(), state["seed"]
        self.transcript = [
            Step(sampled, released, float(sigma), int(size))
            for sampled, released, sigma, size in zip(
                *(state[name] for name in ("sampled", "released", "sigma", "size")), strict=True
            )
        ]


def along(released: FloatArray) -> FloatArray:
    """What was released in the direction of a canary: 1 for one that contributed, plus noise of size σ."""
    return np.asarray(released.sum(axis=0) / np.sqrt(TENSORS))
