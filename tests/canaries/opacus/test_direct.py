"""Canaries inserted directly into the gradients of real Opacus optimizers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opacus.optimizers import FSDPOptimizerFastGradientClipping
from tests.canaries.opacus.trainings import Training
from torch.utils.data import DataLoader

import tightaudit as ta
from tightaudit.canaries.bank import Coin
from tightaudit.canaries.opacus import WhiteBoxCanaries
from tightaudit.canaries.opacus.direct import Insertion

pytestmark = pytest.mark.filterwarnings("ignore")
N = 300
WAYS: tuple[Insertion, ...] = ("after-clipping", "before-clipping")


def canaries_of(training: Training) -> WhiteBoxCanaries:
    assert isinstance(training.canaries, WhiteBoxCanaries)
    return training.canaries


@pytest.mark.parametrize("insertion", WAYS)
def test_what_is_released_is_the_canary_and_noise(insertion: Insertion) -> None:
    """With almost no noise: one clipping norm where a sampled member is, nothing elsewhere."""
    training = Training(WhiteBoxCanaries(N, seed=3, insertion=insertion), sigma=1e-5)
    training.train(2)
    bank = canaries_of(training).bank
    assert bank.steps == 10
    for step in bank.transcript:
        expected = np.append(step.sampled * bank.members, np.zeros(bank.design.controls))
        assert step.released[0] == pytest.approx(expected, abs=1e-3)
    rates = [step.sampled.mean() for step in bank.transcript]
    assert np.mean(rates) == pytest.approx(0.2, abs=4 * (0.16 / (10 * N)) ** 0.5)


@pytest.mark.parametrize("insertion", WAYS)
@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_the_model_is_the_one_without_canaries(insertion: Insertion, mode: str) -> None:
    """Two trainings with the same noise, with canaries and without: the same network, to rounding."""
    if (mode, insertion) == ("ghost", "before-clipping"):
        pytest.skip("refused, see below")
    networks = []
    for canaries in (WhiteBoxCanaries(N, seed=3, insertion=insertion), None):
        training = Training(canaries, mode=mode, norm=5.0)
        torch.manual_seed(1)
        training.train(2)
        networks.append(torch.cat([p.detach().reshape(-1) for p in training.plain.parameters()]))
    assert torch.allclose(networks[0], networks[1], atol=1e-5)


def test_clipping_that_does_not_clip_is_seen_by_canaries_before_it() -> None:
    def unclipped(training: Training) -> None:
        def clip() -> None:
            for p in training.optimizer.params:
                p.summed_grad = training.optimizer._get_flat_grad_sample(p).sum(dim=0)

        training.optimizer.clip_and_accumulate = clip

    for insertion, faults in (("after-clipping", []), ("before-clipping", ["contributions are 10 C"])):
        training = Training(WhiteBoxCanaries(N, seed=3, insertion=insertion), attach=False)  # type: ignore[arg-type]
        unclipped(training)
        canaries_of(training).attach(training.engine, training.optimizer)
        training.train(4)
        assert [check.fault for check in canaries_of(training).checkup().faults] == faults


def test_a_score_is_chosen_by_name() -> None:
    training = Training(WhiteBoxCanaries(N, seed=3))
    training.train(12)
    canaries = canaries_of(training)
    likelihood, sums = canaries.run(), canaries.run("sum")
    assert (likelihood.threshold, sums.threshold) == (0.0, None)
    assert sums.scores[sums.members].mean() > sums.scores[~sums.members].mean()
    assert str(likelihood.family) == "dp-sgd(q=0.2,steps=60)"
    with pytest.raises(ta.InputError, match="score=best"):
        canaries.run("best")


def test_a_shuffled_loader_is_named() -> None:
    training = Training(WhiteBoxCanaries(N, seed=3))
    training.loader = DataLoader(training.data, batch_size=60, shuffle=True)
    training.train(8)
    (fault,) = canaries_of(training).checkup().faults
    assert fault.fault.startswith("batches have a fixed size")
    assert ta.audit(canaries_of(training).run(), delta=1e-5).faulted


def test_attaching_leaves_the_random_numbers_of_training_alone() -> None:
    states = []
    for canaries in (WhiteBoxCanaries(N, seed=3), None):
        training = Training(canaries)
        torch.manual_seed(1)
        training.train(1)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_what_cannot_be_done_is_refused_before_training() -> None:
    for options, why in (
        ({"mode": "ghost"}, "ghost clipping has no gradient per example"),
        ({"clipping": "per_layer"}, "no layer has the whole of it"),
    ):
        with pytest.raises(ta.InputError, match=why):
            Training(WhiteBoxCanaries(N, insertion="before-clipping"), **options)  # type: ignore[arg-type]
    with pytest.raises(ta.InputError, match="n=493: expected at most 492: one of the model's 692"):
        Training(WhiteBoxCanaries(493))
    with pytest.raises(ta.InputError, match="insertion=sideways"):
        WhiteBoxCanaries(10, insertion="sideways")  # type: ignore[arg-type]
    assert Training(WhiteBoxCanaries(492)).canaries is not None
    sharded = Training(WhiteBoxCanaries(N), attach=False)
    sharded.optimizer.__class__ = FSDPOptimizerFastGradientClipping
    with pytest.raises(ta.InputError, match="with FSDP, use RecordCanaries"):
        canaries_of(sharded).attach(sharded.engine, sharded.optimizer)


def test_a_mistake_planted_over_the_canaries_is_refused_at_once() -> None:
    training = Training(WhiteBoxCanaries(N, seed=3))
    training.optimizer.add_noise = type(training.optimizer).add_noise.__get__(training.optimizer)
    with pytest.raises(ta.InputError, match="attach them last"):
        training.train(1)


def test_a_rate_that_changes_is_refused_at_once() -> None:
    training = Training(WhiteBoxCanaries(N, seed=3))
    hook = training.engine.accountant.get_optimizer_hook_fn(sample_rate=0.5)
    training.optimizer.attach_step_hook(hook)
    with pytest.raises(ta.InputError, match=r"sample_rate=0\.5: expected 0\.2"):
        training.train(1)


@pytest.mark.parametrize("coin", ["canary", "participation"])
def test_ghost_clipping_has_no_batch_sizes_to_check(coin: Coin) -> None:
    training = Training(WhiteBoxCanaries(120, seed=3, coin=coin), mode="ghost")
    training.train(8)
    names = [check.name for check in canaries_of(training).checkup().checks]
    assert not any(name.startswith("batch size") for name in names)
