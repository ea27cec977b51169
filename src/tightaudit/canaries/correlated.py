"""Noise that is correlated between steps (matrix factorization, DP-FTRL).

Released is x = g + C⁻¹z, z independent with one standard deviation s. Cx = Cg + z: seen through C, the noise
is white, and a canary that took part in the steps u has left Cu. See docs/correlated-noise.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import chdtrc

from tightaudit.canaries.transcript import Transcript
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError

_BLOCK = 4096
"""Entries that are transformed at a time."""
_CLEARLY = 1e-3
"""The p-value from which noise is scored by the correlation that was seen instead of the one that was said.

Any value is valid: controls decide, and they know nothing of the coins.
"""
_VALUES_PER_STEP = 2
"""Control values per step from which their covariance is worth using."""
_LEAST = 1e-3
"""As a share of the noise: less counts as none."""


def as_strategy(matrix: FloatArray) -> FloatArray:
    """A strategy matrix that noise can be seen through, or an error.

    >>> as_strategy(np.array([[1.0, 0.0], [0.5, 1.0]])).shape
    (2, 2)
    """
    found = np.asarray(matrix, dtype=np.float64)
    expected = "a square lower triangular matrix of finite numbers, positive on the diagonal"
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise InputError("strategy", f"array of shape {found.shape}", expected)
    if not np.isfinite(found).all() or (np.diag(found) <= 0).any():
        raise InputError("strategy", "one with other values on its diagonal", expected)
    if np.abs(np.triu(found, 1)).max() > 1e-6 * np.abs(found).max():
        raise InputError("strategy", "one with values above its diagonal", expected)
    return np.tril(found)


def through(transcript: Transcript, matrix: FloatArray) -> Transcript:
    """The transcript with each step a combination of the steps, by the rows of a matrix."""
    fields = transcript.fields()
    steps, _, entries = fields["released"].shape
    seen = np.empty_like(fields["released"])
    for start in range(0, entries, _BLOCK):
        part = fields["released"][:, :, start : start + _BLOCK]
        mixed = matrix @ part.reshape(steps, -1).astype(np.float64)
        seen[:, :, start : start + _BLOCK] = mixed.reshape(part.shape)
    share = fields["share"] if fields["share"].ndim == 1 else matrix @ fields["share"]
    return Transcript.of({**fields, "released": seen, "share": share})


@dataclass(frozen=True)
class Whiteness:
    """Whether noise is independent from step to step, at entries that never carry a canary."""

    deviations: FloatArray
    """Of the noise of each step."""
    correlations: FloatArray
    """Between steps."""
    values: int
    """In each step."""

    @classmethod
    def of(cls, transcript: Transcript, entries: BoolArray | slice) -> "Whiteness":
        """At these entries, which carry no canary in any step."""
        noise = np.stack([step.released[:, entries].reshape(-1) for step in transcript])
        deviations = np.sqrt(np.mean(noise**2, axis=1))
        deviations = np.maximum(deviations, _LEAST * max(deviations.max(), np.finfo(float).tiny))
        scaled = noise / deviations[:, None]
        return cls(deviations, scaled @ scaled.T / noise.shape[1], noise.shape[1])

    @property
    def excess(self) -> float:
        """The mean squared correlation of two steps over what chance makes of it: about 1."""
        pairs = len(self.deviations) * (len(self.deviations) - 1) / 2
        return self.values * float(np.sum(np.tril(self.correlations, -1) ** 2)) / pairs if pairs else 1.0

    @property
    def p_value(self) -> float:
        """Schott's test (2005), whose law holds for many steps too; by χ², which is right for few as well."""
        pairs = len(self.deviations) * (len(self.deviations) - 1) / 2
        return float(chdtrc(pairs, pairs * self.excess)) if pairs else 1.0

    def root(self) -> FloatArray | None:
        """A matrix that makes this noise white, if it is not and the values suffice to tell which."""
        steps = len(self.deviations)
        if self.p_value > _CLEARLY or self.values < _VALUES_PER_STEP * steps:
            return None
        factor = np.linalg.cholesky(self.correlations + _LEAST**2 * np.eye(steps))
        return np.asarray(solve_triangular(factor, np.diag(1 / self.deviations), lower=True))


def whitening(transcript: Transcript, strategy: FloatArray | None, first: int) -> FloatArray | None:
    """What makes the noise of a transcript white: the strategy, or what the controls show if that differs.

    To whiten by the strategy alone would hide that another one was used; so would taking noise to be
    independent that is not. Controls are the entries from `first` on. None if the noise is white as it is.
    """
    if strategy is None:
        return Whiteness.of(transcript, slice(first, None)).root() if len(transcript) else None
    said = strategy[: len(transcript), : len(transcript)]
    seen = Whiteness.of(through(transcript, said), slice(first, None)).root()
    return said if seen is None else seen @ said


def matched(white: FloatArray) -> FloatArray:
    """For each step, what best shows a contribution in it: 1 on average if there was one, else 0.

    >>> matched(np.array([[2.0, 0.0], [0.0, 1.0]]))
    array([[1., 0.],
           [0., 1.]])
    """
    precision = white.T @ white
    return np.asarray(precision / np.diag(precision)[:, None])


def worth_keeping(lengths: FloatArray) -> Iterator[int]:
    """The canaries that together say most, by how far in and out are apart for each, μ.

    A claim is about the worst pattern; canaries with a lesser one dilute it, fewer canaries blur it. The
    best mean μ less its 95% error, 2·1.645/√n, decides. No coin has a say in it.

    >>> list(worth_keeping(np.array([1.0] * 1000 + [0.1] * 1000)))[-1]
    999
    """
    order = np.argsort(-lengths, kind="stable")
    counts = np.arange(1, lengths.size + 1)
    best = np.argmax(np.cumsum(lengths[order]) / counts - 2 * 1.645 / np.sqrt(counts))
    # Canaries that are as long as the last one kept stay as well.
    yield from np.flatnonzero(lengths >= lengths[order[best]] * (1 - 1e-9)).tolist()
