"""Canaries whatever the framework: coins, slots, what was seen in each step, scores.

A canary contributes one clipping norm along entries of its own, with noise of their own, in the steps in
which it is sampled. Either it is in or out for the whole training by one secret coin, or it flips a new coin
at each participation. Control entries belong to no canary: they show the noise of each step.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from tightaudit.canaries.accounted import Accounted, Together, claim_of, claim_of_participation
from tightaudit.canaries.correlated import as_strategy, matched, through, whitening, worth_keeping
from tightaudit.canaries.participation import Participation, Pattern, Sampled, as_text, of_text, turns
from tightaudit.canaries.scores import Seen, as_score, log_ratio
from tightaudit.canaries.transcript import Step, Transcript
from tightaudit.claims.base import Claim
from tightaudit.evidence.coins import draw_coins, stream
from tightaudit.evidence.run import Run
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError

Coin = Literal["canary", "participation"]
"""What a coin is flipped for."""

FORMAT = "tightaudit.bank/3"
_CONTROLS, _CONTROL_SHARE = 200, 10
_LEAST_NOISE = 1e-3
"""As a share of the noise asked for: less counts as none."""
_SAMPLING_STREAM, _PARTICIPATION_STREAM, _TURN_STREAM = 102, 104, 105


@dataclass(frozen=True)
class Design:
    """What is fixed before the first step."""

    n: int
    seed: int
    coin: Coin = "canary"
    tensors: int = 2
    """How many tensors a canary has an entry in."""
    own_sampling: bool = False
    """Whether canaries are sampled by coins of their own, and not by the loader."""
    first_steps: int | None = None
    """The steps to audit, from the first; None for all."""
    workers: int = 1
    participation: Participation = field(default_factory=Sampled)
    """In which steps records take part, as the accountant assumes."""

    @classmethod
    def of(
        cls, n: int, *, seed: int | None = None, coin: Coin = "canary", first_steps: int | None = None
    ) -> "Design":
        """A design as users ask for it.

        >>> Design.of(100, seed=1, coin="participation").controls
        200
        """
        if coin not in get_args(Coin):
            raise InputError("coin", coin, f"one of {', '.join(get_args(Coin))}")
        if first_steps is not None:
            first_steps = checks.count("first_steps", first_steps, minimum=1)
        count = checks.count("n", n, minimum=1)
        return cls(count, draw_coins(1, seed=seed).seed, coin, first_steps=first_steps)

    @property
    def controls(self) -> int:
        """Entries that belong to no canary."""
        return max(_CONTROLS, self.n // _CONTROL_SHARE)

    @property
    def entries(self) -> int:
        """Entries of each tensor: one per canary, and the controls."""
        return self.n + self.controls


def most_canaries(coordinates: int) -> int:
    """The most canaries that leave room for their controls among so many coordinates.

    >>> most_canaries(1100), Design.of(900).entries
    (900, 1100)
    """
    return max(0, min(coordinates - _CONTROLS, (_CONTROL_SHARE * coordinates + 9) // (_CONTROL_SHARE + 1)))


@dataclass
class Bank:
    """Canaries, their secret coins, and the transcript of the steps so far.

    >>> bank = Bank(Design.of(100, seed=1))
    >>> released = np.zeros((2, bank.design.entries))
    >>> bank.record(Step(np.zeros(100), released, sigma=1.0, rate=0.1, accounted=1))
    >>> bank.n, bank.steps, bank.active
    (100, 1, True)
    """

    design: Design
    records: int = 0
    """Records in the data set, real ones and canaries; 0 if that is not known."""
    strategy: FloatArray | None = None
    """How the noise of steps is correlated; None if it is not."""
    unseen: int = 0
    """Steps that were taken after those in the transcript."""
    transcript: Transcript = field(init=False)

    def __post_init__(self) -> None:
        design = self.design
        if self.strategy is not None:
            self.strategy = as_strategy(self.strategy)
        self.members = draw_coins(design.n, seed=design.seed).members
        self.transcript = Transcript(
            design.n, design.tensors, design.entries, shares=design.own_sampling, workers=design.workers
        )

    @property
    def n(self) -> int:
        """The number of canaries."""
        return self.design.n

    @property
    def steps(self) -> int:
        """The steps so far."""
        return len(self.transcript)

    @property
    def active(self) -> bool:
        """Whether the next step is to be audited."""
        return self.design.first_steps is None or self.steps < self.design.first_steps

    def coins(self, step: int) -> BoolArray:
        """Which canaries contribute in a step if they are sampled."""
        if self.design.coin == "canary":
            return self.members
        return stream(self.design.seed, _PARTICIPATION_STREAM, step).random(self.n) < 0.5

    def sampled(self, step: int, rate: float) -> BoolArray:
        """Which canaries take part in a step, where they are sampled by coins of their own.

        With a coin per participation that is all of them: being sampled is nothing to be hidden then.
        """
        if self.design.coin == "participation":
            return np.ones(self.n, dtype=bool)
        return stream(self.design.seed, _SAMPLING_STREAM, step).random(self.n) < rate

    @property
    def never(self) -> BoolArray:
        """The entries that carry no canary in any step."""
        found = np.ones(self.design.entries, dtype=bool)
        found[: self.n] = ~self.members if self.design.coin == "canary" else False
        return found

    def record(self, step: Step) -> None:
        """Keep one more step."""
        if self.strategy is not None and self.steps == len(self.strategy):
            raise InputError("steps", self.steps + 1, f"at most {self.steps}, as the strategy is made for")
        self.transcript.append(step)

    def claim(self, accounted: Accounted) -> Claim:
        """What the accountant promises to what the coins were flipped for."""
        if self.steps == 0:
            raise InputError("steps", 0, "at least one step of training")
        if self.design.coin == "participation" and not isinstance(accounted, Together):
            return claim_of_participation(accounted, self._audited_noise())
        return claim_of(accounted, max(step.accounted for step in self.transcript))

    def run(self, accounted: Accounted, *, score: str, why: str, source: str) -> Run:
        """Scores and secret bits of the steps so far, about the claim that the accountant makes."""
        claim = self.claim(accounted)
        if self.design.coin == "participation":
            scores, members, ids = self._participations(score)
            threshold: float | None = 0.0
        else:
            ids, threshold = self._telling(), as_score(score).threshold
            members, scores = self.members[ids], self.scores(score)[ids]
        return Run(
            scores=scores,
            members=members,
            ids=ids,
            independent=why,
            claim=claim,
            family=claim.own_family(),
            threshold=threshold,
            seed=self.design.seed,
            source=source,
            transcript=self.state(),
        )

    def scores(self, score: str = "log-likelihood-ratio") -> FloatArray:
        """A score per canary, from the steps so far."""
        chosen = as_score(score)
        totals = {name: np.zeros(self.n) for name in chosen.totals}
        for seen in self._seen():
            for name, added in chosen.totals.items():
                totals[name] += added(seen)
        return chosen.value(totals, self.steps)

    def _seen(self) -> Iterator[Seen]:
        """What each step shows of every canary, with noise that is independent of that of other steps."""
        transcript, participation = self.transcript, self.design.participation
        turn: Any = 0
        left: Any = np.ones((self.steps, 1))
        if isinstance(participation, Pattern):
            left = transcript.took_part().astype(np.float64)
        white = whitening(transcript, self.strategy, self.n)
        if white is not None:
            if isinstance(participation, Pattern):
                transcript, left = through(transcript, white), white @ left
            else:
                transcript = through(transcript, matched(white))
        cycle = participation.cycle if isinstance(participation, Sampled) else 1
        if cycle > 1:
            turn = turns(transcript.took_part(), cycle, stream(self.design.seed, _TURN_STREAM))
        for number, step in enumerate(transcript):
            rate = 1.0 if isinstance(participation, Pattern) else step.rate
            yield Seen(
                along(step.released)[: self.n],
                np.broadcast_to(step.share, self.design.entries)[: self.n],
                rate if cycle == 1 else np.where(turn == number % cycle, rate, 0.0),
                self._noise(step),
                left[number],
            )

    def left_by(self, contributed: BoolArray) -> FloatArray:
        """What contributions, steps × canaries, leave in each step, seen through the strategy."""
        if self.strategy is None:
            return contributed.astype(np.float64)
        return self.strategy[: self.steps, : self.steps] @ contributed

    def _telling(self) -> Any:
        """The canaries to audit: of those that take part in known steps, the ones with the worst pattern."""
        if not isinstance(self.design.participation, Pattern):
            return np.arange(self.n)
        left = self.left_by(self.transcript.took_part())
        sigma = np.array([[step.sigma] for step in self.transcript])
        return np.array(list(worth_keeping(np.sqrt(np.sum((left / sigma) ** 2, axis=0)))))

    def _participations(self, score: str) -> tuple[FloatArray, BoolArray, Any]:
        """Scores, coins and ids of all participations in steps with the noise that is audited."""
        if score != "log-likelihood-ratio":
            raise InputError("score", score, "log-likelihood-ratio: a coin per participation has no other")
        audited = self._audited_noise()
        scores, members, ids = [], [], []
        for number, step in enumerate(self.transcript):
            if _alike(step.sigma) != audited:
                continue
            took_part = np.flatnonzero(step.sampled)
            scores.append(log_ratio(along(step.released)[took_part], self._noise(step)))
            members.append(self.coins(number)[took_part])
            ids.append(number * self.n + took_part)
        return np.concatenate(scores), np.concatenate(members), np.concatenate(ids)

    def _audited_noise(self) -> float:
        """The noise of most participations: with another one their scores would not be comparable."""
        taken: dict[float, int] = {}
        for step in self.transcript:
            sigma = _alike(step.sigma)
            taken[sigma] = taken.get(sigma, 0) + int(np.count_nonzero(step.sampled))
        audited = max(taken, key=lambda sigma: taken[sigma])
        if taken[audited] == 0:
            raise InputError("canaries", "none of them was sampled", "a training that samples canaries")
        return audited

    def _noise(self, step: Step) -> float:
        seen = float(np.sqrt(np.mean(step.released[:, self.n :] ** 2)))
        return max(seen, _LEAST_NOISE * step.sigma)

    def state(self) -> dict[str, Any]:
        """All that is needed to go on from here, the seed of the secret bits included."""
        return {
            "format": FORMAT,
            "seed": str(self.design.seed),  # of any size, where arrays hold 64 bits
            "coin": self.design.coin,
            "own_sampling": self.design.own_sampling,
            "first_steps": self.design.first_steps or 0,
            "records": self.records,
            "unseen": self.unseen,
            "participation": as_text(self.design.participation),
            "strategy": np.empty((0, 0)) if self.strategy is None else self.strategy,
            **self.transcript.fields(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a state: the same coins, the steps so far."""
        found = Bank.of(state)
        for name in ("n", "coin", "own_sampling", "first_steps", "tensors", "workers", "participation"):
            saved, attached = getattr(found.design, name), getattr(self.design, name)
            if saved != attached:
                raise InputError(f"state: {name}", saved, f"{attached}, as attached")
        self.members, self.transcript = found.members, found.transcript
        self.design = Design(**{**vars(self.design), "seed": found.design.seed})

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "Bank":
        """The bank that a state was taken of, such as the transcript of a run."""
        if str(state.get("format")) != FORMAT:
            raise InputError("state", state.get("format"), f"a state in the format {FORMAT}")
        transcript = Transcript.of(state)
        _, tensors, _ = state["released"].shape
        coin: Any = str(state["coin"])
        design = Design(
            state["sampled"].shape[1],
            int(str(state["seed"])),
            coin,
            tensors=tensors,
            own_sampling=bool(state["own_sampling"]),
            first_steps=int(state["first_steps"]) or None,
            workers=state["alike"].shape[-1],
            participation=of_text(str(state["participation"])),
        )
        strategy = np.asarray(state["strategy"])
        found = cls(
            design,
            records=int(state["records"]),
            strategy=strategy if strategy.size else None,
            unseen=int(state["unseen"]),
        )
        found.transcript = transcript
        return found


def _alike(sigma: float) -> float:
    """The same for noise that differs by rounding only, as that of a part of the clipping norm does."""
    return float(f"{sigma:.9g}")


def along(released: FloatArray) -> FloatArray:
    """What was released in the direction of a canary: 1 for one that contributed, plus noise of size σ."""
    return np.asarray(released.sum(axis=0) / np.sqrt(len(released)))
