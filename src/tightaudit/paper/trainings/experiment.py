"""The paper's experiment: train at several ε, audit each training in every way, keep what is finished.

The folder holds `<setup>.json` for each finished ε, with the canaries' scores beside it as a saved run, and a
checkpoint of the training that is under way. A training that was killed goes on where it stopped, and leaves
the same files: nothing in them tells how long it took.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tightaudit.bounds.one_run import Bound, lower_bound
from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.family import Family
from tightaudit.claims.gaussian import Gaussian
from tightaudit.evidence.counts import Evidence
from tightaudit.evidence.guessing import release
from tightaudit.evidence.run import Run
from tightaudit.methods.rank_weighted import RankWeighted
from tightaudit.paper.stored import digest_of_file, is_whole, keep_fields, kept_fields
from tightaudit.paper.trainings.data import Images
from tightaudit.paper.trainings.training import Recipe, Trained, train
from tightaudit.render.json.bound import bound_fields
from tightaudit.support import checks
from tightaudit.support.errors import InputError
from tightaudit.support.progress import Progress

SCORES = ("log-likelihood-ratio", "sum")
METHODS = ("order-statistics", "exact", "steinke", "fdp-recursion")


@dataclass(frozen=True)
class Experiment:
    """All that decides the outcome of one training and its audit, but for ε."""

    images: Images
    recipe: Recipe
    delta: float
    released: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        checks.between("delta", self.delta)
        checks.confidence(self.confidence)
        released = checks.count("released", self.released, minimum=1)
        if released > self.recipe.canaries:
            raise InputError("released", released, f"at most {self.recipe.canaries}, the number of canaries")

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
        checkpoint = path.with_suffix(".checkpoint")
        kept = kept_fields(path)
        digests = {} if kept is None else kept.get("scores", {})
        if kept is not None and all(is_whole(_scores(path, each), digests.get(each)) for each in SCORES):
            checkpoint.unlink(missing_ok=True)  # left if the training was killed between the two
            return kept
        sigma = self.recipe.sigma(self.images, epsilon, self.delta)
        trained = train(
            self.images, self.recipe, sigma, delta=self.delta, checkpoint=checkpoint, progress=progress
        )
        found = self._fields(epsilon, sigma, trained, path)
        keep_fields(path, found)
        checkpoint.unlink()
        return found

    def _fields(self, epsilon: float, sigma: float, trained: Trained, path: Path) -> dict[str, Any]:
        assert trained.canaries is not None
        bounds, digests = [], {}
        for score in SCORES:
            run = trained.canaries.run(score)
            run.save(_scores(path, score))
            digests[score] = digest_of_file(_scores(path, score))
            bounds += [{"score": score, **bound_fields(bound)} for bound in self.bounds(run)]
        return {
            **self.setup(epsilon),
            "sigma": sigma,
            "claim": str(trained.canaries.claim),
            "claim_epsilon": trained.canaries.claim.epsilon(self.delta),
            "accountant_epsilon": trained.accountant_epsilon,
            "accuracy": trained.accuracy,
            "scores": digests,
            "bounds": bounds,
        }

    def bounds(self, run: Run) -> Iterator[Bound]:
        """Every method on the same scores; the paper's and its peers' with a Gaussian curve too."""
        family = run.family
        assert family is not None
        evidence = release(run.scores, run.members, released=run.n, guessing=run.guessing)
        families: dict[str, tuple[Family, ...]] = {
            "steinke": (ApproxDP.family(delta=self.delta),),
            "exact": (family,),
        }
        for method in METHODS:
            for searched in families.get(method, (Gaussian.family(), family)):
                yield self._bound(evidence.top(self.released), searched, method)
        yield self._bound(evidence, family, RankWeighted())

    def _bound(self, evidence: Evidence, family: Family, method: str | RankWeighted) -> Bound:
        return lower_bound(evidence, family, delta=self.delta, confidence=self.confidence, method=method)


def _scores(result: Path, score: str) -> Path:
    """The saved run of a score, beside its result."""
    return result.with_suffix(f".{score}.npz")
