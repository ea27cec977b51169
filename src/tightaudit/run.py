"""What one run left behind, kept together in one file.

The file is an uncompressed NPZ with the arrays `score` (float64), `member` (bool), `id` if there are ids
(text or integers), and `header`: one string of JSON with

    format       "tightaudit.run/1"
    version      of tightaudit that wrote it
    independent  whether outcomes are known to be independent
    why          the reason, or null
    claim        the claim as text, such as "gaussian(mu=1)", or null
    shape        the family its privacy curve is known to be of, such as "dp-sgd(q=0.1,steps=200)", or null
    threshold    the score above which a canary is guessed to be in, fixed in advance, or null
    seed         of the coins, or null

Nothing in it is pickled, and nothing is unpickled when it is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightaudit import checks
from tightaudit.checks import BoolArray, FloatArray
from tightaudit.errors import InputError
from tightaudit.pairing import Ids, require_unique
from tightaudit.tradeoffs.base import Family, TradeOff
from tightaudit.tradeoffs.registry import TRADEOFFS
from tightaudit.tradeoffs.text import null
from tightaudit.writing import replacing

FORMAT = "tightaudit.run/1"
LONGEST_ID = 1000


@dataclass(frozen=True, eq=False)
class Run:
    """Scores and secret bits of one run, and what the maker of the canaries knows about them.

    >>> run = Run(scores=[2.5, -1.0, 0.3], members=[1, 0, 0], ids=["a", "b", "c"])
    >>> run.n, run.independent
    (3, False)
    """

    scores: FloatArray
    members: BoolArray
    """The secret coins: whether each canary was in."""
    ids: NDArray[Any] | None = None
    independent: bool = False
    """Whether each canary's outcome is known to depend on its own bit and its own noise alone."""
    why: str | None = None
    """Why outcomes are independent."""
    claim: TradeOff | None = None
    shape: Family | None = None
    """The family the privacy curve is known to be of, if it is."""
    threshold: float | None = None
    """The score above which a canary is guessed to be in, fixed in advance: 0 for a privacy loss."""
    seed: int | None = None
    """Seed of the coins."""
    source: str | None = None
    """Where the run was read from."""

    def __post_init__(self) -> None:
        scores, members = checks.vector("scores", self.scores), checks.bits("members", self.members)
        if members.size != scores.size:
            raise InputError("members", f"{members.size} values", f"one per score, {scores.size}")
        object.__setattr__(self, "scores", _kept(scores))
        object.__setattr__(self, "members", _kept(members))
        if self.ids is not None:
            ids = text_or_integers("ids", self.ids)
            require_unique("ids", ids, scores.size)
            object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "independent", checks.flag("independent", self.independent))
        if self.claim is not None and not isinstance(self.claim, TradeOff):
            raise InputError("claim", self.claim, "a claim with all its parameters, such as Gaussian(1.0)")
        if self.shape is not None and not isinstance(self.shape, Family):
            raise InputError("shape", self.shape, "a family, such as Gaussian.family()")
        if self.threshold is not None:
            object.__setattr__(self, "threshold", checks.number("threshold", self.threshold))
        if self.seed is not None:
            object.__setattr__(self, "seed", checks.seed(self.seed))
        for name in ("why", "source"):
            if not isinstance(getattr(self, name), str | None):
                raise InputError(name, getattr(self, name), "text or None")

    @property
    def n(self) -> int:
        """The number of canaries."""
        return int(self.scores.size)

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
        arrays["header"] = np.array(self._header())
        with replacing(path) as file:
            np.savez(file, **arrays)

    def _header(self) -> str:
        from tightaudit import __version__

        claim = None if self.claim is None else str(self.claim)
        if self.claim is not None and self.claim.name not in TRADEOFFS:
            raise InputError("claim", claim, "a claim with a text form, to be saved with the run")
        return json.dumps(
            {
                "format": FORMAT,
                "version": __version__,
                "independent": self.independent,
                "why": self.why,
                "claim": claim,
                "shape": None if self.shape is None else str(self.shape),
                "threshold": self.threshold,
                "seed": self.seed,
            }
        )


def _kept(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody else can change."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def known_from_header(text: str) -> dict[str, Any]:
    """What the header of a saved run says, as arguments of `Run`.

    >>> known_from_header('{"format": "tightaudit.run/1", "claim": "laplace(mu=1)"}')["claim"]
    Laplace(mu=1.0)
    """
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("header", text, "a JSON object") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError("header", text, f"a JSON object with format {FORMAT!r}")
    why, claim_text, shape_text = (_text_or_null(header, key) for key in ("why", "claim", "shape"))
    claim, shape = (None if text is None else null(text) for text in (claim_text, shape_text))
    if claim is not None and not isinstance(claim, TradeOff):
        raise InputError("header: claim", claim_text, "a claim with all its parameters")
    if shape is not None and not isinstance(shape, Family):
        raise InputError("header: shape", shape_text, "a family: a claim with one parameter left out")
    return {
        "independent": checks.flag("header: independent", header.get("independent", False)),
        "why": why,
        "claim": claim,
        "shape": shape,
        "threshold": header.get("threshold"),
        "seed": header.get("seed"),
    }


def _text_or_null(header: dict[str, Any], key: str) -> str | None:
    value = header.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f"header: {key}", value, "text or null")
    return value


def text_or_integers(name: str, ids: Ids) -> NDArray[Any]:
    """Ids as an array of integers or of text, which a file can hold without pickling.

    >>> text_or_integers("ids", ["a", "b"]).dtype.kind
    'U'
    """
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuU":
        array = ids
        if ids.dtype.kind == "U" and ids.dtype.itemsize > 4 * LONGEST_ID:
            raise InputError(name, "a longer one", f"ids of at most {LONGEST_ID} characters")
    else:
        try:
            values = list(ids.tolist() if isinstance(ids, np.ndarray) else ids)
        except TypeError:
            raise InputError(name, ids, "a sequence of texts or of integers") from None
        kind = str if values and isinstance(values[0], str) else int
        for at, value in enumerate(values):
            if not isinstance(value, kind if kind is str else int | np.integer) or isinstance(value, bool):
                raise InputError(name, value, f"texts only, or integers only (position {at})")
            if isinstance(value, str) and len(value) > LONGEST_ID:
                raise InputError(name, value, f"ids of at most {LONGEST_ID} characters (position {at})")
        try:
            array = np.array(values, dtype=np.str_ if kind is str else np.int64)
        except OverflowError:
            raise InputError(name, "an integer beyond 64 bits", "integers of at most 64 bits") from None
    if array.ndim != 1:
        raise InputError(name, f"array of shape {array.shape}", "a one-dimensional array")
    return array
