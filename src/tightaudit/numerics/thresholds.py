"""The scores that separate strata of ranks, as a Markov chain on nodes.

n uniform scores are sorted, best first, and cut into strata of fixed sizes. The threshold below a stratum
is the best score after it. The first threshold is a Beta variable and each next one is the last times a Beta
variable of its own, so the mean of a product of functions of neighbours is found by going through the chain
from its end: functions are kept as their values on Chebyshev nodes and carried on by interpolation and
Gauss–Legendre quadrature. The chain knows the sizes, and where functions of a threshold have kinks.

Scores are measured from the top: `top` is the share of scores above one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from tightaudit.numerics.beta import gauss_legendre, logit_density, logit_spread, offset_range
from tightaudit.support.checks import FloatArray

_DROP = 42.0
"""Nats below the peak of a density past which a threshold is not followed: less than 1e-17 lies there."""
_LAYERS = np.array([-0.5, -0.05, -0.005, 0.005, 0.05, 0.5])


@dataclass(frozen=True)
class Panels:
    """How finely a threshold is followed."""

    nodes: int
    """Nodes per panel."""
    widest: float = 20.0
    """Spreads of the density that one panel may cover."""


@dataclass(frozen=True)
class Threshold:
    """One Beta(a, b) threshold in logits, as offsets from ln(a/b), on panels between the kinks."""

    a: float
    b: float
    edges: FloatArray
    kink_tops: FloatArray
    panels: Panels

    @staticmethod
    def of(
        a: float, b: float, ends: tuple[float, float], kinks: FloatArray, jumps: FloatArray, panels: Panels
    ) -> Threshold:
        """The threshold, followed between the ends, with panel edges at those kinks that it can reach."""
        low, high = ends
        offsets, steep = (np.log1p(-tops) - np.log(tops) - np.log(a / b) for tops in (kinks, jumps))
        reached = (offsets > low) & (offsets < high)
        spread = float(logit_spread(np.asarray(a), np.asarray(b)))
        # Around a jump a function may change within a narrow layer.
        layers = (steep[(steep > low) & (steep < high)][:, None] + spread * _LAYERS).ravel()
        inside = np.unique(np.clip(np.append(offsets[reached], layers), low, high))
        edges = np.unique(np.concatenate([[low], inside, [high]]))
        return Threshold(a, b, _subdivided(edges, panels.widest * spread), kinks[reached], panels)

    @property
    def nodes(self) -> int:
        """Nodes per panel."""
        return self.panels.nodes

    @cached_property
    def offsets(self) -> FloatArray:
        """Chebyshev nodes of every panel; none lies on an edge, where a function may jump."""
        middle, half = 0.5 * (self.edges[1:] + self.edges[:-1]), 0.5 * np.diff(self.edges)
        return (middle[:, None] + half[:, None] * _chebyshev(self.nodes)[0]).ravel()

    @cached_property
    def top(self) -> FloatArray:
        """Share of scores above, at the nodes."""
        return expit(-(np.log(self.a / self.b) + self.offsets))

    @cached_property
    def rest(self) -> FloatArray:
        """Share of scores below, at the nodes."""
        return expit(np.log(self.a / self.b) + self.offsets)

    def interpolation(self, offsets: FloatArray) -> FloatArray | csr_array:
        """The matrix that takes values at the nodes to values at the offsets (barycentric formula).

        Sparse if there are several panels, each of which needs its own nodes only.
        """
        at = np.clip(offsets.ravel(), self.edges[0], self.edges[-1])
        panel = np.clip(np.searchsorted(self.edges, at, side="right") - 1, 0, self.edges.size - 2)
        columns = panel[:, None] * self.nodes + np.arange(self.nodes)
        distance = at[:, None] - self.offsets[columns]
        on_node = distance == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            share = _chebyshev(self.nodes)[1] / distance
            share /= share.sum(axis=1, keepdims=True)
        hit = on_node.any(axis=1)
        share[hit] = on_node[hit]
        if self.edges.size == 2:
            return share
        rows = np.arange(0, at.size * self.nodes + 1, self.nodes)
        return csr_array((share.ravel(), columns.ravel(), rows), shape=(at.size, self.offsets.size))


@dataclass(frozen=True)
class Step:
    """From one threshold to the next: points for each node, their weights, and what lies between."""

    weights: FloatArray
    """A row per node of the earlier threshold, summing to 1."""
    interpolation: FloatArray | csr_array
    """From the nodes of the later threshold to the points, row by row."""
    gap: FloatArray
    """Share of scores between the two thresholds, at the points."""


@dataclass(frozen=True)
class Chain:
    """All thresholds of strata of the given sizes among n scores."""

    thresholds: tuple[Threshold, ...]
    steps: tuple[Step, ...]
    start: Step | None
    """From nothing to the first threshold; None if there is none, everything being one stratum."""

    @staticmethod
    def of(n: int, sizes: tuple[int, ...], kinks: FloatArray, panels: Panels, *, jumps: FloatArray) -> Chain:
        """The chain; strata that reach rank n have no threshold below the last.

        `kinks` and those of them that are `jumps` are shares of scores above.

        >>> chain = Chain.of(100, (20, 30, 50), np.empty(0), Panels(40), jumps=np.empty(0))
        >>> len(chain.thresholds), bool(np.allclose(chain.steps[0].weights.sum(axis=1), 1))
        (2, True)
        """
        ranks = np.cumsum(sizes)
        below = [int(rank) for rank in ranks if rank < n]
        laws = [(float(n - rank), float(rank + 1)) for rank in below]
        ratios = [(float(n - rank), float(size)) for rank, size in zip(below[1:], sizes[1:], strict=False)]
        ends = _ends(tuple(laws + ratios))
        thresholds = tuple(
            Threshold.of(*law, reached, kinks, jumps, panels)
            for law, reached in zip(laws, ends[: len(laws)], strict=True)
        )
        steps = tuple(
            _step(earlier, later, *ratio, reached)
            for (earlier, later), ratio, reached in zip(
                pairwise(thresholds), ratios, ends[len(laws) :], strict=True
            )
        )
        return Chain(thresholds, steps, _start(thresholds[0]) if thresholds else None)


def _start(first: Threshold) -> Step:
    offsets, weights = _quadrature(first.edges[None, :], first.nodes)
    weights = weights * logit_density(np.asarray(first.a), np.asarray(first.b), offsets)
    gap = expit(-(np.log(first.a / first.b) + offsets))
    return Step(weights, first.interpolation(offsets), gap)


def _step(earlier: Threshold, later: Threshold, a: float, b: float, ends: tuple[float, float]) -> Step:
    """The next threshold is the last one times a Beta(a, b) variable, followed between the ends."""
    low, high = ends
    center = np.log(a / b)
    # Where the next threshold meets a kink, seen from each node; not at all if the last is past it.
    missing = later.kink_tops[None, :] - earlier.top[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log((1 - later.kink_tops)[None, :]) - np.log(missing)
        kinks = np.where(missing > 0, ratio - center, high)
    spread = float(logit_spread(np.asarray(a), np.asarray(b)))
    even = _subdivided(np.array([low, high]), later.panels.widest * spread)[1:-1]
    inner = even[None, :].repeat(earlier.top.size, axis=0)
    inside = np.clip(np.concatenate([kinks, inner], axis=1), low, high)
    first, last = (np.full((earlier.top.size, 1), end) for end in ends)
    edges = np.concatenate([first, np.sort(inside, axis=1), last], axis=1)
    offsets, weights = _quadrature(edges, later.nodes)
    weights = weights * logit_density(np.asarray(a), np.asarray(b), offsets)
    gap = earlier.rest[:, None] * expit(-(center + offsets))
    top, rest = earlier.top[:, None] + gap, earlier.rest[:, None] * expit(center + offsets)
    places = np.log(rest) - np.log(top) - np.log(later.a / later.b)
    return Step(weights, later.interpolation(places), gap)


def _quadrature(edges: FloatArray, points: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights between the edges of each row, side by side."""
    nodes, weights = gauss_legendre(points)
    half = 0.5 * np.diff(edges, axis=1)[:, :, None]
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, None]
    shape = (edges.shape[0], -1)
    return (middle + half * nodes).reshape(shape), (half * weights).reshape(shape)


@lru_cache(maxsize=16)
def _ends(laws: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """The ends of Beta densities; the chains of a search differ in kinks only, and ask for the same ones."""
    a, b = np.array(laws).reshape(-1, 2).T
    low, high = offset_range(a, b, np.asarray(_DROP)).tolist()
    return list(zip(low, high, strict=True))


def _subdivided(edges: FloatArray, widest: float) -> FloatArray:
    pieces = [
        np.linspace(start, end, int(np.ceil((end - start) / widest)) + 1)[:-1]
        for start, end in pairwise(edges.tolist())
    ]
    return np.append(np.concatenate(pieces), edges[-1])


@lru_cache(maxsize=8)
def _chebyshev(nodes: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev nodes on (-1, 1), ascending, and their barycentric weights."""
    angles = (2 * np.arange(nodes) + 1) * np.pi / (2 * nodes)
    return np.cos(angles)[::-1], (np.sin(angles) * (-1.0) ** np.arange(nodes))[::-1]
