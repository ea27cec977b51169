"""What one run left behind, kept together in one file.

The file is an uncompressed NPZ with the arrays `score` (float64), `member` (bool), `id` if there are ids and
`run` if the canaries were in several runs (text or integers), and `header`: one string of JSON with

    format       "tightaudit.run/1"
    version      of tightaudit that wrote it
    independent  why outcomes are known to be independent, or true without a reason, or false
    claim        the claim as text, such as "gaussian(mu=1)", or null
    family       the family its privacy curve is known to be in, such as "dp-sgd(q=0.1,steps=200)", or null
    threshold    the score above which a canary is guessed to be in, fixed in advance, or null
    seed         of the coins, or null
    remarks      what the maker of the canaries noticed and every reader should know, a list of sentences
    checkup      what the accountant assumes against what was seen, or null

Canaries that were watched step by step leave a transcript, in arrays whose names begin with `transcript.`.
Nothing in it is pickled, and nothing is unpickled when it is read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.family import Family
from tightaudit.claims.text import as_claim, as_family
from tightaudit.evidence.checkup import Checkup
from tightaudit.evidence.counts import Guessing
from tightaudit.evidence.ids import require_unique, text_or_integers
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError, Place
from tightaudit.support.writing import replacing

FORMAT = "tightaudit.run/1"
_LONGEST_REMARK = 1000
_KNOWN = ("independent", "claim", "family", "threshold", "seed", "remarks", "checkup")
TRANSCRIPT = "transcript."


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Scores and secret bits of one run, and what is known about the canaries.

    >>> run = Run(scores=[2.5, -1.0, 0.3], members=[1, 0, 0], ids=["a", "b", "c"])
    >>> run.n, run.independent
    (3, False)
    """

    scores: FloatArray
    members: BoolArray
    """The secret coins: whether each canary was in."""
    ids: NDArray[Any] | None = None
    independent: bool | str = False
    """Whether each canary's outcome is known to depend only on its own bit and its own noise: the reason,
    or True without one."""
    claim: Claim | None = None
    family: Family | None = None
    """The family the privacy curve is known to be in, if it is."""
    threshold: float | None = None
    """The score above which a canary is guessed to be in, fixed in advance: 0 for a privacy loss."""
    seed: int | None = None
    """Seed of the coins."""
    source: str | None = None
    """Where the run was read from."""
    remarks: tuple[str, ...] = ()
    """What the maker of the canaries noticed; every report on the run warns of it."""
    checkup: Checkup | None = None
    """What the accountant assumes against what was seen; every report on the run shows it."""
    transcript: Mapping[str, Any] | None = None
    """What was seen step by step, as the canaries keep it: to score them again."""
    runs: NDArray[Any] | None = None
    """Which of several runs each canary was in, where runs are independent of each other: each with coins and
    randomness of its own. Blocks of canaries that share nothing count as runs."""

    def __post_init__(self) -> None:
        if not isinstance(self.source, str | None):
            raise InputError("source", self.source, "text or None")
        scores = checks.scores(self._label("scores"), self.scores)
        members = checks.bits(self._label("members"), self.members)
        if members.size != scores.size:
            raise InputError(
                self._label("members"), f"{members.size} values", f"one per score, {scores.size}"
            )
        checked: dict[str, Any] = {"scores": _kept(scores), "members": _kept(members)}
        if self.ids is not None:
            checked["ids"] = text_or_integers(self._label("ids"), self.ids)
        if self.runs is not None:
            checked["runs"] = text_or_integers(self._label("runs"), self.runs)
            if checked["runs"].size != scores.size:
                found = f"{checked['runs'].size} values"
                raise InputError(self._label("runs"), found, f"one per score, {scores.size}")
        if self.ids is not None:
            unique = checked["ids"]
            if self.runs is not None:  # the same canary may have been in several
                unique = list(zip(checked["runs"].tolist(), unique.tolist(), strict=False))
            require_unique(self._label("ids"), unique, scores.size)
        checked["independent"] = checks.reason(self._label("independent"), self.independent)
        if self.claim is not None:
            checked["claim"] = as_claim(self.claim)
        if self.family is not None:
            checked["family"] = as_family(self.family)
        if self.threshold is not None:
            checked["threshold"] = checks.number(self._label("threshold"), self.threshold)
        remarks = self.remarks if isinstance(self.remarks, tuple | list) else (None,)
        if not all(isinstance(remark, str) and len(remark) <= _LONGEST_REMARK for remark in remarks):
            expected = f"a tuple of sentences of at most {_LONGEST_REMARK} characters"
            raise InputError(self._label("remarks"), self.remarks, expected)
        if self.seed is not None:
            checked["seed"] = checks.seed(self.seed, self._label("seed"))
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _label(self, name: str) -> str:
        """What errors call a part of the run: its name, or where it stands in a file."""
        return name if self.source is None else Place(f"{self.source}, the {name}")

    def __repr__(self) -> str:
        # The bits are secret, and a notebook shows what its last line is.
        known = [f"n={self.n}"]
        known += [f"claim={self.claim}"] if self.claim is not None else []
        known += [f"source={self.source!r}"] if self.source is not None else []
        return f"Run({', '.join(known)})"

    @property
    def n(self) -> int:
        """The number of canaries."""
        return int(self.scores.size)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The canaries of each of several runs; empty for one."""
        if self.runs is None:
            return ()
        sizes = np.unique(self.runs, return_counts=True)[1]
        return tuple(sizes.tolist()) if sizes.size > 1 else ()

    @property
    def guessing(self) -> Guessing:
        """How its bits are guessed: by its threshold if it has one, else from both ends."""
        return Guessing() if self.threshold is None else Guessing("threshold", self.threshold)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything the run knows to one file, which `read_run` reads.

        The file appears under its name only when it is complete.

        >>> import tempfile, pathlib, tightaudit as ta
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.npz"
        >>> Run([0.5, 1.5], [0, 1], claim=ta.Gaussian(1.0)).save(path)
        >>> ta.read_run(path).claim
        Gaussian(mu=1.0)
        """
        arrays: dict[str, Any] = {"score": self.scores, "member": self.members}
        if self.ids is not None:
            arrays["id"] = self.ids
        if self.runs is not None:
            arrays["run"] = self.runs
        for name, value in (self.transcript or {}).items():
            arrays[f"{TRANSCRIPT}{name}"] = np.asarray(value)
        arrays["header"] = np.array(self._header())
        with replacing(path) as file:
            np.savez(file, **arrays)

    def _header(self) -> str:
        from tightaudit import __version__

        if self.claim is not None and self.claim.name not in CLAIMS:
            raise InputError("claim", str(self.claim), "a claim with a text form, to be saved with the run")
        return json.dumps(
            {
                "format": FORMAT,
                "version": __version__,
                "independent": self.independent,
                "claim": None if self.claim is None else str(self.claim),
                "family": None if self.family is None else str(self.family),
                "threshold": self.threshold,
                "seed": self.seed,
                "remarks": self.remarks,
                "checkup": None if self.checkup is None else self.checkup.to_dict(),
            }
        )


def _kept(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody else can change."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def known_from_header(text: str, source: str) -> dict[str, Any]:
    """What the header of a saved run says, as arguments of `Run`.

    >>> known_from_header('{"format": "tightaudit.run/1", "claim": "laplace(mu=1)"}', "run.npz")["claim"]
    Laplace(mu=1.0)
    """
    place = Place(f"{source}, the header")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(place, text, "a JSON object") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(place, text, f"a JSON object with format {FORMAT!r}")
    unknown = [key for key in header if key not in ("format", "version", *_KNOWN)]
    if unknown:
        raise InputError(place, unknown[0], f"{', '.join(_KNOWN)} and nothing else")
    known: dict[str, Any] = {key: header.get(key) for key in _KNOWN}
    for key, read in (("claim", as_claim), ("family", as_family)):
        if known[key] is not None:
            known[key] = read(known[key], argument=Place(f"{place}: {key}"))
    remarks = header.get("remarks") or []
    if not isinstance(remarks, list):
        raise InputError(Place(f"{place}: remarks"), remarks, "a list of sentences")
    checkup = header.get("checkup")
    if checkup is not None:
        checkup = Checkup.of_dict(checkup, Place(f"{place}: checkup"))
    return {
        **known,
        "independent": header.get("independent", False),
        "remarks": tuple(remarks),
        "checkup": checkup,
    }
