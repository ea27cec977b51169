"""What both kinds of canaries share: the claim from the engine, refusals, checkpoints, coins."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.schedulers import ExponentialGradClip, ExponentialNoise
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping
from opacus.utils.batch_memory_manager import BatchMemoryManager
from tests.canaries.opacus.trainings import Training
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tightaudit as ta
from tightaudit.canaries.bank import Bank, Coin
from tightaudit.canaries.opacus import RecordCanaries, WhiteBoxCanaries

pytestmark = pytest.mark.filterwarnings("ignore")
N = 300
KINDS = [RecordCanaries, WhiteBoxCanaries]
Kind = type[RecordCanaries] | type[WhiteBoxCanaries]


def audited(canaries: RecordCanaries | WhiteBoxCanaries, share: float) -> None:
    """An honest training stands, without a fault, and with at least this share of its ε certified.

    At 99.9%: the same draws of noise serve many tests here, and should not fail one in twenty of them all.
    """
    run = canaries.run()
    assert run.checkup is not None
    assert run.checkup.faults == ()
    report = ta.audit(run, delta=1e-5, confidence=0.999)
    assert report.violated is False
    assert report.epsilon is not None
    assert report.epsilon > share * canaries.claim.epsilon(1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coin", ["canary", "participation"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "ghost"},
        {"mode": "functorch"},
        {"clipping": "per_layer"},
        {"maker": torch.optim.Adam},
        {"maker": torch.optim.RMSprop},
        {"reduction": "sum"},
        {"accountant": "rdp"},
        {"norm": 20.0},
    ],
    ids=str,
)
def test_an_honest_training_stands_and_has_no_fault(kind: Kind, coin: Coin, options: dict[str, Any]) -> None:
    canaries = kind(N, seed=3, coin=coin)
    training = Training(canaries, **options)
    training.train(12)
    # With a norm per layer the bank's two tensors have only a part of it.
    part = options.get("clipping") == "per_layer" and kind is RecordCanaries and coin == "canary"
    audited(canaries, 0.1 if part else 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_virtual_steps_count_once(kind: Kind) -> None:
    canaries = kind(N, seed=3)
    training = Training(canaries)
    for _ in range(12):
        with BatchMemoryManager(
            data_loader=training.loader, max_physical_batch_size=32, optimizer=training.optimizer
        ) as loader:
            for batch in loader:
                training.step(*batch)
    assert canaries.steps == 60
    assert str(canaries.claim) == "dp-sgd(sigma=1,q=0.2,steps=60)"
    audited(canaries, 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_schedule_is_claimed_as_it_was(kind: Kind) -> None:
    """Noise and clipping norm change in every epoch; contributions and noise stay as asked for."""
    canaries = kind(N, seed=3)
    training = Training(canaries, sigma=1.5)
    noise = ExponentialNoise(training.optimizer, gamma=0.97)
    norm = ExponentialGradClip(training.optimizer, gamma=0.9)
    for _ in range(12):
        training.train(1)
        noise.step()
        norm.step()
    claim = canaries.claim
    assert isinstance(claim, ta.DpSgdSchedule)
    assert claim.steps == (5,) * 12
    assert claim.sigma == pytest.approx([1.5 * 0.97**k for k in range(12)])
    assert claim.epsilon(1e-5) == pytest.approx(training.engine.get_epsilon(1e-5), rel=0.01)
    audited(canaries, 0.5)


def test_two_backward_passes_in_a_step_are_accounted_for_as_opacus_does() -> None:
    """At twice the rate: canaries are sampled at that rate, and the claim says so."""
    canaries = WhiteBoxCanaries(N, seed=3)
    training = Training(canaries)
    training.model.allow_grad_accumulation()  # which Opacus forbids with Poisson sampling
    for _ in range(30):
        batches = iter(training.loader)
        training.optimizer.zero_grad()
        for _ in range(2):
            training.backward(*next(batches))
        training.optimizer.step()
    assert str(canaries.claim) == "dp-sgd(sigma=1,q=0.4,steps=30)"
    sampled = np.mean([step.sampled.mean() for step in canaries.bank.transcript])
    assert sampled == pytest.approx(0.4, abs=4 * (0.24 / (30 * N)) ** 0.5)
    audited(canaries, 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_can_end_before_the_training(kind: Kind) -> None:
    canaries = kind(N, seed=3, coin="participation", first_steps=20)
    training = Training(canaries)
    training.train(12)
    assert canaries.steps == 20
    assert str(canaries.claim) == "dp-sgd-participation(factor=1,seen=1,sigma=1,q=0.2,steps=60)"
    audited(canaries, 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_gives_the_same_coins_and_scores(kind: Kind, tmp_path: Any) -> None:
    """Half of a training, then the rest of it in other hands: as if nothing had happened."""
    whole = Training(kind(N, seed=3))
    torch.manual_seed(2)
    whole.train(4)
    halves = Training(kind(N, seed=3))
    torch.manual_seed(2)
    halves.train(2)
    assert halves.canaries is not None
    state = {
        "model": halves.model.state_dict(),
        "accountant": halves.engine.accountant.state_dict(),
        "canaries": halves.canaries.state_dict(),
        "random": torch.get_rng_state(),
    }
    torch.save(state, tmp_path / "checkpoint.pt")
    rest = Training(kind(N, seed=99), attach=False)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    rest.model.load_state_dict(state["model"])
    rest.engine.accountant.load_state_dict(state["accountant"])
    assert rest.canaries is not None
    with pytest.raises(ta.InputError, match=r"10 steps in its history: expected .* load the canaries' state"):
        rest.canaries.attach(rest.engine, rest.optimizer)
    rest.canaries.load_state_dict(state["canaries"])
    rest.canaries.attach(rest.engine, rest.optimizer)
    torch.set_rng_state(state["random"])
    rest.train(2)
    assert whole.canaries is not None
    one, other = whole.canaries.run(), rest.canaries.run()
    assert (one.members == other.members).all()
    assert (one.scores == other.scores).all()
    assert one.seed == other.seed == 3
    assert one.checkup == other.checkup
    with pytest.raises(ta.InputError, match="expected 7, as attached"):
        kind(7).load_state_dict(state["canaries"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_run_has_the_transcript_and_the_checkup(kind: Kind, tmp_path: Any) -> None:
    training = Training(kind(N, seed=3))
    training.train(2)
    assert training.canaries is not None
    training.canaries.run().save(tmp_path / "run.npz")
    read = ta.read_run(tmp_path / "run.npz")
    assert read.checkup == training.canaries.checkup()
    assert read.transcript is not None
    assert (Bank.of(read.transcript).scores() == read.scores).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_audited_is_refused_before_training(kind: Kind) -> None:
    training = Training(None)
    training.train(1)
    canaries = kind(10)
    if isinstance(canaries, RecordCanaries):
        canaries.wrap(nn.Linear(2, 2))
    with pytest.raises(ta.InputError, match="engine=NoneType"):
        canaries.attach(None, training.optimizer)
    with pytest.raises(ta.InputError, match="the one that make_private returned"):
        canaries.attach(training.engine, training.optimizer.original_optimizer)
    with pytest.raises(ta.InputError, match="one with 5 steps in its history"):
        canaries.attach(training.engine, training.optimizer)
    with pytest.raises(ta.InputError, match="accounted for by this engine"):
        canaries.attach(PrivacyEngine(), training.optimizer)
    with pytest.raises(ta.InputError, match=r"canaries\.attach\(engine, optimizer\) before training"):
        canaries.run()
    adaptive = Training(
        None,
        clipping="adaptive",
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.2,
        max_clipbound=10.0,
        min_clipbound=0.1,
        unclipped_num_std=5.0,
    )
    with pytest.raises(ta.InputError, match=r"AdaClipDPOptimizer: expected .* not adaptive clipping"):
        canaries.attach(adaptive.engine, adaptive.optimizer)
    assert canaries.steps == 0


def test_the_ghost_adaptive_engine_is_refused() -> None:
    engine, model = PrivacyEngineAdaptiveClipping(), nn.Linear(2, 300)
    data = DataLoader(TensorDataset(torch.randn(20, 2), torch.zeros(20).long()), batch_size=5)
    _, optimizer, _, _ = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=data,
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
        target_unclipped_quantile=0.5,
    )
    with pytest.raises(
        ta.InputError, match=r"engine=PrivacyEngineAdaptiveClipping: expected .* not adaptive"
    ):
        WhiteBoxCanaries(10).attach(engine, optimizer)


@pytest.mark.parametrize("kind", KINDS)
def test_canaries_are_attached_once_and_can_be_detached(kind: Kind) -> None:
    canaries = kind(N, seed=3)
    training = Training(canaries)
    before = dict(vars(training.optimizer))
    with pytest.raises(ta.InputError, match="detach them first"):
        canaries.attach(training.engine, training.optimizer)
    with pytest.raises(ta.InputError, match="detach them first"):
        WhiteBoxCanaries(10).attach(training.engine, training.optimizer)
    canaries.detach()
    assert not any(name in vars(training.optimizer) for name in ("add_noise", "clip_and_accumulate"))
    training.train(1)
    assert canaries.steps == 0
    assert before.keys() >= vars(training.optimizer).keys()


def test_an_optimizer_of_ones_own_is_welcome() -> None:
    class Mine(DPOptimizer):  # type: ignore[misc]
        pass

    training = Training(WhiteBoxCanaries(N, seed=3), attach=False)
    training.optimizer.__class__ = Mine
    assert training.canaries is not None
    training.canaries.attach(training.engine, training.optimizer)
    training.train(1)
    assert training.canaries.steps == 5


def test_what_is_relied_on_inside_opacus() -> None:
    """Names that Opacus does not promise."""
    training = Training(None)
    inputs, labels = training.data.tensors
    training.optimizer.zero_grad()
    training.backward(inputs, labels)
    parameter = training.optimizer.params[0]
    assert training.optimizer._get_flat_grad_sample(parameter).shape == (len(inputs), *parameter.shape)
    training.optimizer.clip_and_accumulate()
    assert parameter.grad_sample._processed
    assert parameter.summed_grad.shape == parameter.shape
    assert training.optimizer.pre_step.__self__ is training.optimizer
    assert Training(None, clipping="per_layer").optimizer.max_grad_norms == [0.7] * 4
    training.optimizer.step_hook(training.optimizer)
    assert training.engine.accountant.history == [(1.0, 0.2, 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_give_coins_again(kind: Kind) -> None:
    one, two, other = (kind(N, seed=seed).bank.members for seed in (3, 3, 4))
    assert (one == two).all()
    assert not (one == other).all()


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_may_be_empty(kind: Kind, mode: str) -> None:
    canaries = kind(N, seed=3)
    training = Training(canaries, mode=mode, per_step=2)
    training.train(1)
    assert canaries.steps > 100
    assert canaries.checkup().faults == ()


def test_before_clipping_a_step_may_have_no_canary() -> None:
    canaries = WhiteBoxCanaries(3, seed=3, insertion="before-clipping")
    Training(canaries).train(4)
    assert canaries.steps == 20


def test_a_hook_may_look_at_the_optimizer() -> None:
    training = Training(WhiteBoxCanaries(N, seed=3), attach=False)
    told = training.optimizer.step_hook
    training.optimizer.attach_step_hook(lambda o: (told(o), o.param_groups[0]["lr"]))
    assert training.canaries is not None
    training.canaries.attach(training.engine, training.optimizer)
    training.train(1)
    assert str(training.canaries.claim) == "dp-sgd(sigma=1,q=0.2,steps=5)"


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_batches_that_are_skipped_do_not_count(mode: str) -> None:
    canaries = RecordCanaries(N, seed=3)
    training = Training(canaries, mode=mode)
    for _ in range(12):
        for number, batch in enumerate(training.loader):
            training.optimizer.zero_grad()
            training.backward(*batch)
            if number % 3:  # as for a loss that is not finite
                training.optimizer.step()
    assert canaries.checkup().faults == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_that_is_scaled_on_its_way_is_a_note(kind: Kind) -> None:
    canaries = kind(N, seed=3)
    training = Training(canaries, attach=False)
    scale_grad = training.optimizer.scale_grad

    def half() -> None:
        scale_grad()
        for parameter in training.optimizer.params:
            parameter.grad *= 0.5

    training.optimizer.scale_grad = half
    canaries.attach(training.engine, training.optimizer)
    training.train(12)
    checkup = canaries.checkup()
    assert checkup.faults == ()
    (note,) = checkup.notes
    assert re.match(r"contributions and noise are both 0\.(49|5)", note.fault)


def test_noise_of_zero_is_refused() -> None:
    with pytest.raises(ta.InputError, match=r"noise_multiplier=0\.0"):
        Training(WhiteBoxCanaries(N), sigma=0.0)


def test_steps_that_nobody_accounts_for_are_told() -> None:
    canaries = RecordCanaries(N, seed=3)
    training = Training(canaries)
    training.optimizer.attach_step_hook(lambda _: None)
    training.train(1)
    assert [check.fault for check in canaries.checkup().faults] == ["5 steps were taken and 0 accounted for"]
    with pytest.raises(ta.InputError, match="written down by the accountant"):
        canaries.run()


def test_a_clipping_norm_that_changes_keeps_all_participations() -> None:
    canaries = WhiteBoxCanaries(N, seed=3, coin="participation")
    training = Training(canaries, sigma=0.9, norm=1.3)
    training.train(1)
    training.optimizer.max_grad_norm = 1.0
    training.train(1)
    run = canaries.run()
    assert run.n == 10 * N
    assert "seen=0.9," in str(run.claim)


def test_how_many_steps_to_audit_is_part_of_the_state() -> None:
    canaries = RecordCanaries(N, seed=3, first_steps=3)
    Training(canaries).train(1)
    with pytest.raises(ta.InputError, match="first_steps=3: expected None, as attached"):
        RecordCanaries(N, seed=3).load_state_dict(canaries.state_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_looks_at_a_training_and_not_again_after_a_checkpoint(kind: Kind) -> None:
    said: list[str] = []
    canaries = kind(N, seed=1)
    looking = canaries.looks(every=4, until=10, delta=1e-5, say=said.append)
    Training(canaries).train(1)
    assert [look.step for look in looking.taken] == [4]
    resumed = kind(N, seed=1)
    resumed.load_state_dict(canaries.state_dict())
    again = resumed.looks(every=4, until=10, delta=1e-5, say=said.append)
    assert [look.step for look in again.taken] == [4]
    training = Training(resumed, attach=False)
    training.engine.accountant.history = [(1.0, 0.2, 5)]
    resumed.attach(training.engine, training.optimizer)
    training.train(1)
    assert [look.step for look in again.taken] == [4, 8, 10]
    assert [line.split(":")[0] for line in said] == [
        "look 1 of 3, after 4 steps",
        "look 2 of 3, after 8 steps",
        "look 3 of 3, after 10 steps",
    ]
    assert again.report is not None
    assert again.report.question.confidence == pytest.approx(0.96)
    with pytest.raises(ta.InputError, match="as fixed before the first look"):
        resumed.looks(every=5, until=10, delta=1e-5)
    kept = kind(N, seed=1)
    kept.load_state_dict(canaries.state_dict())
    assert kept.state_dict()["looks"] == canaries.state_dict()["looks"]
    with pytest.raises(ta.InputError, match="steps up to 3, the last that is audited"):
        kind(N, seed=1, first_steps=3).looks(at=(2, 5), delta=1e-5)


def test_a_training_is_stopped_when_a_look_rejects() -> None:
    class StoppedError(Exception):
        pass

    def stop(report: ta.Report) -> None:
        raise StoppedError(report.verdict)

    canaries = RecordCanaries(N, seed=1, first_steps=10)
    looking = canaries.looks(at=(5, 10), delta=1e-5, on_rejection=stop, say=lambda _: None)
    training = Training(canaries)
    training.optimizer.noise_multiplier = 1.0
    add_noise = training.optimizer.add_noise

    def silent() -> None:
        training.optimizer.noise_multiplier = 0.05
        add_noise()
        training.optimizer.noise_multiplier = 1.0

    training.optimizer.add_noise = silent
    with pytest.raises(StoppedError, match="inconsistent with the claim"):
        training.train(4)
    assert len(looking.taken) == 1
