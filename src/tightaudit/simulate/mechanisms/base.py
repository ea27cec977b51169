"""What every mechanism to audit is: secret bits in, one score per bit out, and a claim that is true."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tightaudit.claims.base import Claim
from tightaudit.claims.text import as_claim
from tightaudit.evidence.counts import Evidence, Guessing, Rule
from tightaudit.evidence.guessing import release
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError
from tightaudit.support.notation import Call, parse
from tightaudit.support.registry import Registry


class Mechanism(ABC):
    """A mechanism whose privacy is known, with the guessing rule that goes with it."""

    name: ClassVar[str]
    independent: ClassVar[bool]
    """Whether each canary's outcome depends only on its own bit and its own noise."""
    why: ClassVar[str]
    """Why outcomes are independent, or what they share."""
    rule: ClassVar[Rule] = "two-sided"
    """How its scores are best turned into guesses."""
    example: ClassVar[str]
    """The text form of one such mechanism, which the tests try."""

    def __post_init__(self) -> None:
        """Parameters that are the claim's too are checked by the claim, and kept as it keeps them."""
        for name, value in self.claim.parameters.items():
            if name in self.keywords() and getattr(self, name) == value:
                object.__setattr__(self, name, value)

    @classmethod
    def keywords(cls) -> tuple[str, ...]:
        """The parameters of the constructor, in the order of the text form."""
        return tuple(inspect.signature(cls).parameters)

    @property
    def threshold(self) -> float | None:
        """The threshold of the guessing rule, if it has one: 0 unless a mechanism says otherwise."""
        return 0.0 if self.rule == "threshold" else None

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """The trade-off function the mechanism satisfies, and no smaller one in general."""

    @abstractmethod
    def scores(self, members: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Run once per row of `members` (runs by canaries): a score per bit."""

    def after(self, step: int) -> "Mechanism":
        """The mechanism as it is after some of its steps, for one that has steps."""
        raise InputError("looks", step, f"a mechanism with steps, such as dp-sgd; {self.name} has none")

    def scores_after(
        self,
        steps: tuple[int, ...],
        members: BoolArray,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Iterator[FloatArray]:
        """The scores after each of these steps of one and the same run."""
        raise InputError("looks", steps, f"a mechanism with steps, such as dp-sgd; {self.name} has none")

    def play(
        self,
        n: int,
        released: int,
        rng: np.random.Generator,
        runs: int,
        rule: Rule | None = None,
    ) -> list[Evidence]:
        """Audit the mechanism in several independent runs, by its own guessing rule or another.

        >>> from tightaudit.simulate.mechanisms.gaussian import GaussianMechanism
        >>> rng = np.random.default_rng(0)
        >>> [evidence.n for evidence in GaussianMechanism(1.0).play(100, 20, rng, runs=2)]
        [100, 100]
        """
        members = rng.random((runs, n)) < 0.5
        scores = self.scores(members, rng)
        return [
            release(row, bits, released=released, guessing=guessing)
            for row, bits, guessing in zip(scores, members, self._guessing(rng, runs, rule), strict=True)
        ]

    def play_together(
        self, n: int, runs: int, rng: np.random.Generator, audits: int, rule: Rule | None = None
    ) -> tuple[list[Evidence], list[Evidence]]:
        """Audits of several runs each: with all guesses ranked together, and with each run by itself."""
        members = rng.random((audits * runs, n)) < 0.5
        scores = self.scores(members, rng).reshape(audits, -1)
        labels = np.repeat(np.arange(runs), n)
        each = list(zip(scores, members.reshape(audits, -1), self._guessing(rng, audits, rule), strict=True))
        return tuple(
            [
                release(row, bits, released=row.size, guessing=guessing, runs=named)
                for row, bits, guessing in each
            ]
            for named in (None, labels)
        )  # type: ignore[return-value]

    def _guessing(self, rng: np.random.Generator, audits: int, rule: Rule | None) -> list[Guessing]:
        chosen = rule or self.rule
        threshold = self.threshold if chosen == "threshold" else None
        return [Guessing(chosen, threshold, int(seed)) for seed in rng.integers(2**31, size=audits)]

    @property
    def parameters(self) -> dict[str, object]:
        """The mechanism's parameters by name."""
        return {name: getattr(self, name) for name in self.keywords()}

    def __str__(self) -> str:
        shown = (
            f"{name}={repr(value).removesuffix('.0') if isinstance(value, float) else value}"
            for name, value in self.parameters.items()
        )
        return f"{self.name}({','.join(shown)})"


MECHANISMS: Registry[type[Mechanism]] = Registry(
    "mechanism", folder="tightaudit.simulate.mechanisms", plugins="tightaudit.mechanisms"
)


def as_mechanism(given: Mechanism | str) -> Mechanism:
    """A mechanism as it is, or from text such as `gaussian(mu=1)` or `shared-score(claim=laplace(mu=1))`.

    >>> str(as_mechanism("shared-sampling(mu=2,q=0.1)").claim)
    'published-sampling(mu=2,q=0.1)'
    """
    if isinstance(given, Mechanism):
        return given
    call = parse("mechanism", given)
    kind = MECHANISMS[call.name]
    call.require_known(kind.keywords())
    arguments: dict[str, Any] = {
        key: as_claim(argument.value, argument=key) if isinstance(argument.value, Call) else argument.value
        for key, argument in call.arguments.items()
    }
    missing = [name for name in kind.keywords() if name not in arguments]
    if missing:
        raise InputError("mechanism", given, f"a value for {missing[0]} too")
    return kind(**arguments)
