"""JAX-Privacy's auditor and tightaudit on the scores of the same run: `pytest examples`.

One step of private training with JAX-Privacy's own clipping and noise. Each canary has a feature of its own
and so a gradient coordinate of its own: outcomes are independent.
`python examples/test_jax_privacy_scores.py` prints the bounds side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tightaudit as ta

jax_privacy = pytest.importorskip("jax_privacy", reason="needs jax_privacy")
# JAX-Privacy 2.0 clips with a function of optax that optax is about to rename.
pytestmark = pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")

CANARIES, CLIP_NORM, DELTA, LEVEL, SEED = 2000, 1.0, 1e-5, 0.05, 3


def train(noise: float, claimed_noise: float) -> ta.Run:
    """One noised gradient step on the canaries that are in; each one's score is its own coordinate."""
    coins = ta.draw_coins(CANARIES, seed=SEED)
    features = np.eye(CANARIES, dtype=np.float32)[coins.members]
    labels = np.full(len(features), 10.0, dtype=np.float32)

    def loss(weights: Any, features: Any, labels: Any) -> Any:
        return ((features @ weights - labels) ** 2).sum()

    gradients = jax_privacy.clipped_grad(loss, l2_clip_norm=CLIP_NORM, batch_argnums=(1, 2))
    privatizer = jax_privacy.noise_addition.gaussian_privatizer(stddev=noise, prng_key=SEED)
    weights = np.zeros(CANARIES, dtype=np.float32)
    released, _ = privatizer.update(gradients(weights, features, labels), privatizer.init(weights))
    return ta.Run(
        scores=-np.asarray(released),
        members=coins.members,
        independent="each canary has a coordinate and a noise draw of its own",
        claim=ta.Gaussian(CLIP_NORM / claimed_noise),
        seed=coins.seed,
    )


def auditor_of(run: ta.Run) -> Any:
    return jax_privacy.auditing.CanaryScoreAuditor(run.scores[run.members], run.scores[~run.members])


def threshold_of(run: ta.Run, released: int) -> Any:
    """The threshold at which JAX-Privacy guesses "in" so many times."""
    return jax_privacy.auditing.Explicit(float(np.sort(run.scores)[-released]))


def one_sided_bound(run: ta.Run, family: ta.Family, method: str, released: int) -> float:
    evidence = ta.release(run.scores, run.members, released=released, guessing="one-sided")
    return ta.lower_bound(evidence, family, delta=DELTA, confidence=1 - LEVEL, method=method).epsilon or 0.0


def side_by_side(run: ta.Run, released: int) -> str:
    auditor, fixed = auditor_of(run), threshold_of(run, released)
    approximate, gaussian = ta.ApproxDP.family(delta=DELTA), ta.Gaussian.family()
    rows = [
        (
            f"Steinke et al., {released} highest",
            auditor.epsilon_one_run(LEVEL, DELTA, threshold_strategy=fixed),
            one_sided_bound(run, approximate, "steinke", released),
        ),
        (
            f"Mahloujifar et al., {released} highest",
            auditor.epsilon_one_run_fdp(LEVEL, DELTA, threshold_strategy=fixed),
            one_sided_bound(run, gaussian, "fdp-recursion", released),
        ),
    ]
    lines = [f"{'lower bound on ε':34} {'JAX-Privacy':>11} {'tightaudit':>10}"]
    lines += [f"{name:34} {theirs:11.4f} {own:10.4f}" for name, theirs, own in rows]
    return "\n".join([*lines, "", str(ta.audit(run, delta=DELTA, confidence=1 - LEVEL))])


@pytest.fixture(scope="module")
def honest() -> ta.Run:
    return train(noise=1.0, claimed_noise=1.0)


@pytest.mark.parametrize("released", [20, 200, 400, 1000])
def test_the_same_threshold_gives_the_same_bounds(honest: ta.Run, released: int) -> None:
    auditor, fixed = auditor_of(honest), threshold_of(honest, released)
    theirs = auditor.epsilon_one_run(LEVEL, DELTA, threshold_strategy=fixed)
    own = one_sided_bound(honest, ta.ApproxDP.family(delta=DELTA), "steinke", released)
    assert own == pytest.approx(theirs, abs=1e-5)
    theirs = auditor.epsilon_one_run_fdp(LEVEL, DELTA, threshold_strategy=fixed)
    own = one_sided_bound(honest, ta.Gaussian.family(), "fdp-recursion", released)
    assert own == pytest.approx(theirs, abs=1e-5)


def test_knowing_that_outcomes_are_independent_tells_more(honest: ta.Run) -> None:
    auditor = auditor_of(honest)
    strongest = ta.audit(honest, delta=DELTA).rows[0].bound.epsilon
    assert strongest is not None
    assert strongest > 1.0 + auditor.epsilon_one_run_fdp(LEVEL, DELTA)
    assert strongest > 1.0 + auditor.epsilon_one_run(LEVEL, DELTA)


def test_scores_of_members_and_others_are_all_that_is_needed(honest: ta.Run) -> None:
    inside, outside = honest.scores[honest.members], honest.scores[~honest.members]
    scores = np.concatenate([inside, outside])
    members = np.repeat([True, False], [inside.size, outside.size])
    again = ta.audit(scores, members, delta=DELTA, claim=honest.claim)
    before = ta.audit(honest, delta=DELTA)
    assert [row.bound.epsilon for row in again.rows] == [row.bound.epsilon for row in before.rows]


def test_honest_noise_stands(honest: ta.Run) -> None:
    assert ta.audit(honest, delta=DELTA, confidence=1 - 1e-6).violated is False


def test_half_the_noise_is_caught() -> None:
    run = train(noise=0.5, claimed_noise=1.0)
    assert ta.audit(run, delta=DELTA, confidence=1 - 1e-6).violated is True


def test_the_table_names_both(honest: ta.Run) -> None:
    text = side_by_side(honest, released=400)
    assert "JAX-Privacy tightaudit" in " ".join(text.split())


if __name__ == "__main__":
    print(side_by_side(train(noise=1.0, claimed_noise=1.0), released=400))
