"""The paper's experiment: train at several ε, audit each training in every way, keep what is finished.

The folder holds `<setup>.json` for each finished ε, with the canaries' scores beside it as a saved run, and a
checkpoint of the training that is under way. A training that was killed goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tightaudit.bounds import Bound, lower_bound
from tightaudit.dpsgd.data import Images
from tightaudit.dpsgd.training import Recipe, Trained, train
from tightaudit.dpsgd.white_box import Score
from tightaudit.game import Evidence, release
from tightaudit.progress import Progress
from tightaudit.pvalues.rank_weighted import RankWeighted
from tightaudit.report.fields import bound_fields
from tightaudit.run import Run
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import Family
from tightaudit.tradeoffs.gaussian import Gaussian
from tightaudit.writing import replacing

SCORES: tuple[Score, ...] = ("log-likelihood-ratio", "sum")
METHODS = ("order-statistics", "exact", "steinke", "fdp-recursion")


@dataclass(frozen=True)
class Experiment:
    """All that decides the outcome of one training and its audit, but for ε."""

    images: Images
    recipe: Recipe
    delta: float
    released: int
    confidence: float = 0.95

    def setup(self, epsilon: float) -> dict[str, Any]:
        """The setup as plain values."""
        return {
            "data": self.images.name,
            "examples": len(self.images.train),
            **asdict(self.recipe),
            "epsilon": epsilon,
            "delta": self.delta,
            "released": self.released,
            "confidence": self.confidence,
        }

    def path(self, folder: Path, epsilon: float) -> Path:
        """Where the result for an ε is kept: another setup has another name."""
        text = json.dumps(self.setup(epsilon), sort_keys=True)
        return (
            folder / f"{self.images.name}-{epsilon:g}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
        )

    def result(self, folder: Path, epsilon: float, progress: Progress | None = None) -> dict[str, Any]:
        """The result for an ε: read if it is there, else trained and written."""
        path = self.path(folder, epsilon)
        if path.exists():
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
        checkpoint = path.with_suffix(".checkpoint")
        sigma = self.recipe.sigma(self.images, epsilon, self.delta)
        trained = train(
            self.images, self.recipe, sigma, delta=self.delta, checkpoint=checkpoint, progress=progress
        )
        found = self._fields(epsilon, sigma, trained, path)
        with replacing(path) as file:
            file.write(json.dumps(found, indent=2).encode())
        checkpoint.unlink()
        return found

    def _fields(self, epsilon: float, sigma: float, trained: Trained, path: Path) -> dict[str, Any]:
        assert trained.canaries is not None
        bounds = []
        for score in SCORES:
            run = trained.canaries.run(score)
            run.save(path.with_suffix(f".{score}.npz"))
            bounds += [{"score": score, **bound_fields(bound)} for bound in self.bounds(run)]
        return {
            **self.setup(epsilon),
            "sigma": sigma,
            "claim": str(trained.canaries.claim),
            "claim_epsilon": trained.canaries.claim.epsilon(self.delta),
            "accountant_epsilon": trained.accountant_epsilon,
            "accuracy": trained.accuracy,
            "seconds": trained.seconds,
            "bounds": bounds,
        }

    def bounds(self, run: Run) -> Iterator[Bound]:
        """Every method on the same scores; the paper's and its peers' with a Gaussian curve too."""
        shape = run.shape
        assert shape is not None
        evidence = _guesses(run)
        families: dict[str, tuple[Family, ...]] = {
            "steinke": (ApproxDP.family(delta=self.delta),),
            "exact": (shape,),
        }
        for method in METHODS:
            for family in families.get(method, (Gaussian.family(), shape)):
                yield self._bound(evidence.release(self.released), family, method)
        yield self._bound(evidence, shape, RankWeighted())

    def _bound(self, evidence: Evidence, family: Family, method: str | RankWeighted) -> Bound:
        return lower_bound(evidence, family, delta=self.delta, confidence=self.confidence, method=method)


def _guesses(run: Run) -> Evidence:
    if run.threshold is None:
        return release(run.scores, run.members, released=run.n)
    return release(run.scores, run.members, released=run.n, guessing="threshold", threshold=run.threshold)
