"""Canaries that own a coordinate each, whatever the framework: coins, coordinates, sampling, what was seen.

    coins ──► every step: clipped sums, plus C at the coordinates of sampled canaries ──► noise ──► scores

In every step each member is sampled with its own coin, and adds the clipping norm C at its
coordinate. The noisy sum at the coordinates is what the mechanism releases; the score is computed from it. An
adapter for a framework inserts, and hands what came out to `record`.
"""

from typing import Any

import numpy as np

from tightaudit.canaries.scores import SCORES, Step, as_score, noise_seen
from tightaudit.claims.dp_sgd import DpSgd
from tightaudit.evidence.coins import draw_coins, stream
from tightaudit.evidence.run import Run
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError

FORMAT = "tightaudit.white-box-canaries/1"
_COORDINATE_STREAM, _SAMPLING_STREAM = 101, 102
_WHY = (
    "every canary has its own coordinate of the gradient, its own noise there and its own sampling coins; "
    "the family because the canaries are sampled at rate q in each of the steps and the noise is Gaussian"
)


class CoordinateCanaries:
    """Canaries among the coordinates of a gradient, each in or out by a fair secret coin.

    >>> canaries = CoordinateCanaries(4, coordinates=100, sample_rate=0.5, noise_multiplier=1.0, seed=1)
    >>> canaries.record(np.zeros(4), share=np.zeros(4))
    >>> canaries.steps, canaries.run("sum", source="an example").n
    (1, 4)
    """

    def __init__(
        self,
        n: int,
        *,
        coordinates: int,
        sample_rate: float,
        noise_multiplier: float,
        seed: int | None = None,
    ) -> None:
        self.rate = checks.rate("sample_rate", sample_rate)
        self.sigma = checks.positive("noise_multiplier", noise_multiplier, maximum=1e6)
        count = checks.count("n", n, minimum=1)
        if count > coordinates:
            expected = f"at most {coordinates}, the coordinates of the model: one per canary"
            raise InputError("n", count, expected)
        coins = draw_coins(count, seed=seed)
        self.members, self.seed = coins.members, coins.seed
        self._sampling = stream(self.seed, _SAMPLING_STREAM)
        # Sorted, so that each parameter of a model holds a slice of the canaries.
        chosen = stream(self.seed, _COORDINATE_STREAM).choice(coordinates, size=count, replace=False)
        self.coordinates = np.sort(chosen)
        self.steps, self.noise = 0, 0.0
        self._totals: dict[str, FloatArray] = {
            name: np.zeros(count) for score in SCORES.values() for name in score.totals
        }

    @property
    def n(self) -> int:
        """The number of canaries."""
        return int(self.members.size)

    @property
    def claim(self) -> DpSgd:
        """What the settings promise after the steps taken so far."""
        if self.steps == 0:
            raise InputError("steps", 0, "at least one step of training")
        return DpSgd(self.sigma, self.rate, self.steps)

    def sampled(self) -> BoolArray:
        """Which canaries take part in this step; a coin is spent on those that are out too."""
        return self.members & (self._sampling.random(self.n) < self.rate)

    def record(self, released: FloatArray, *, share: FloatArray) -> None:
        """Count one more step: what was released at the coordinates and the batch's share, in units of C."""
        self.steps += 1
        self.noise += (noise_seen(released - share, self.rate, self.sigma) - self.noise) / self.steps
        step = Step(released, share, self.rate, self.noise)
        for score in SCORES.values():
            for name, added in score.totals.items():
                self._totals[name] += added(step)

    def run(self, score: str, *, source: str) -> Run:
        """Scores and secret bits of the steps taken so far."""
        chosen, claim = as_score(score), self.claim
        return Run(
            scores=chosen.value(self._totals, self.steps),
            members=self.members,
            ids=self.coordinates,
            independent=_WHY,
            claim=claim,
            family=claim.own_family(),
            threshold=chosen.threshold,
            seed=self.seed,
            source=source,
        )

    def state(self) -> dict[str, Any]:
        """All that is needed to resume from here, secret bits included."""
        return {
            "format": FORMAT,
            "n": self.n,
            "seed": self.seed,
            "sample_rate": self.rate,
            "noise_multiplier": self.sigma,
            "coordinates": self.coordinates.copy(),
            "members": self.members.copy(),
            "sampling": self._sampling.bit_generator.state,
            "steps": self.steps,
            "noise": self.noise,
            **{name: total.copy() for name, total in self._totals.items()},
        }

    def load(self, state: dict[str, Any]) -> None:
        """Resume from a state: the same bits, the same coordinates, the scores so far."""
        own = {"n": self.n, "sample_rate": self.rate, "noise_multiplier": self.sigma}
        require_same(state, own)
        self.members, self.coordinates = state["members"].copy(), state["coordinates"].copy()
        self.seed, self.steps, self.noise = state["seed"], state["steps"], state["noise"]
        self._sampling = stream(self.seed, _SAMPLING_STREAM)
        self._sampling.bit_generator.state = state["sampling"]
        self._totals = {name: state[name].copy() for name in self._totals}


def require_same(state: dict[str, Any], own: dict[str, Any]) -> None:
    """Refuse a state of another kind, or one that was saved with other settings."""
    if state.get("format") != FORMAT:
        raise InputError("state", state.get("format"), f"a state in the format {FORMAT}")
    for name, value in own.items():
        if state[name] != value:
            raise InputError(f"state: {name}", state[name], f"{value}, as attached")
