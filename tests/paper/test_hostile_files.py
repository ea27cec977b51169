"""Damaged stores are computed again; what is no data set is refused in one line."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import sys
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tightaudit as ta
from tightaudit.cli.main import main
from tightaudit.paper.figures.base_pairs import BasePairCell
from tightaudit.paper.figures.parts.store import CellStore
from tightaudit.paper.stored import keep_bytes
from tightaudit.paper.trainings import data, training
from tightaudit.paper.trainings.data import load
from tightaudit.paper.trainings.experiment import Experiment
from tightaudit.paper.trainings.training import Recipe, train

BATCHES = (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda raw: raw[: len(raw) // 2],
    "empty": lambda _: b"",
    "another": lambda _: b"{}",
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_cell_counts_as_missing(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    store, cell = CellStore(tmp_path), BasePairCell("gaussian(mu=1)", points=3)
    store.put(cell, {"atom": 0.25})
    (path,) = tmp_path.glob("*.json")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match="is damaged, so what it held is computed again") as said:
        assert store.get(cell) is None
    assert len(said) == 1
    store.put(cell, {"atom": 0.25})
    assert store.get(cell) == {"atom": 0.25}


class _StoppedError(Exception):
    pass


def _stop_after(steps: int) -> Callable[[int, int], None]:
    def progress(done: int, _: int) -> None:
        if done > steps:
            raise _StoppedError

    return progress


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Four steps an epoch, and a checkpoint after every step."""
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1.0)
    recipe = Recipe(steps=9, canaries=60, batch_size=50, optimizer="adam", learning_rate=1e-3)
    return Experiment(load("digits").first(200), recipe, 1e-5, 20)


@pytest.fixture
def without_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is the same with them, and takes ten times as long."""
    monkeypatch.setattr(Experiment, "bounds", lambda *_: iter(()))


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("planting", ["gradient", "records"])
def test_a_training_stopped_in_mid_epoch_goes_on_byte_for_byte(
    planting: Any, tmp_path: Path, experiment: Experiment
) -> None:
    recipe = Recipe(steps=9, canaries=60, batch_size=50, planting=planting)
    straight = train(experiment.images, recipe, 1.0, delta=1e-5)
    for steps in (2, 4, 6):
        checkpoint = tmp_path / f"{steps}.checkpoint"
        with pytest.raises(_StoppedError):
            train(
                experiment.images,
                recipe,
                1.0,
                delta=1e-5,
                checkpoint=checkpoint,
                progress=_stop_after(steps),
            )
        assert checkpoint.exists()
        torch.manual_seed(99)  # a new process knows nothing of the old one's generator
        resumed = train(experiment.images, recipe, 1.0, delta=1e-5, checkpoint=checkpoint)
        assert straight.canaries is not None
        assert resumed.canaries is not None
        assert resumed.canaries.run().scores.tobytes() == straight.canaries.run().scores.tobytes()
        assert resumed.accuracy == straight.accuracy


@pytest.mark.usefixtures("without_bounds")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_results_and_checkpoints_are_computed_again(
    damage: Callable[[bytes], bytes], tmp_path: Path, experiment: Experiment
) -> None:
    expected = experiment.result(tmp_path, 8.0)
    files, path = _files(tmp_path), experiment.path(tmp_path, 8.0)
    path.write_bytes(damage(path.read_bytes()))
    path.with_suffix(".checkpoint").write_bytes(damage(b"what torch would not read"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        assert experiment.result(tmp_path, 8.0) == expected
    damaged = [str(each.message) for each in said if "is damaged" in str(each.message)]
    assert [message.split(" is ")[0] for message in damaged] == [
        str(path),
        str(path.with_suffix(".checkpoint")),
    ]
    assert _files(tmp_path) == files


@pytest.mark.usefixtures("without_bounds")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_damaged_and_lost_scores_are_computed_again(tmp_path: Path, experiment: Experiment) -> None:
    expected = experiment.result(tmp_path, 8.0)
    files = _files(tmp_path)
    for name in [name for name in files if name.endswith(".npz")]:
        for damage, said in ((lambda path: path.write_bytes(b""), "damaged"), (Path.unlink, "missing")):
            damage(tmp_path / name)
            with pytest.warns(UserWarning, match=f"{name} is {said}, so what it held is computed again"):
                assert experiment.result(tmp_path, 8.0) == expected
            assert _files(tmp_path) == files


@pytest.mark.usefixtures("without_bounds")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_checkpoint_beside_a_finished_result_is_removed(tmp_path: Path, experiment: Experiment) -> None:
    experiment.result(tmp_path, 8.0)
    expected, files = experiment.result(tmp_path, 8.0), _files(tmp_path)
    experiment.path(tmp_path, 8.0).with_suffix(".checkpoint").write_bytes(b"left by a kill")
    assert experiment.result(tmp_path, 8.0) == expected
    assert _files(tmp_path) == files


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_whole_checkpoint_that_pytorch_cannot_read_is_computed_again(
    tmp_path: Path, experiment: Experiment
) -> None:
    checkpoint = tmp_path / "training.checkpoint"
    expected = train(experiment.images, experiment.recipe, 1.0, delta=1e-5).accuracy
    other = io.BytesIO()
    torch.save({"steps": 3}, other)
    for content in (b"bytes of another program", other.getvalue()):
        keep_bytes(checkpoint, content)
        with pytest.warns(UserWarning, match="is damaged, so what it held is computed again"):
            found = train(experiment.images, experiment.recipe, 1.0, delta=1e-5, checkpoint=checkpoint)
        assert found.accuracy == expected


def _batch(**changed: Any) -> bytes:
    fields = {b"data": np.zeros((4, 3072), np.uint8), b"labels": [0, 1, 2, 3]}
    return pickle.dumps(fields | {key.encode(): value for key, value in changed.items()}, protocol=2)


def _folder(place: Path, content: bytes, names: tuple[str, ...] = BATCHES) -> Path:
    place.mkdir()
    for name in names:
        (place / name).write_bytes(content)
    return place


def _file(place: Path, content: bytes) -> Path:
    place.write_bytes(content)
    return place


def _tar(place: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(place, "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return place


def _extended_tar(place: Path) -> Path:
    """A kilobyte whose extended header tarfile reads for minutes."""
    with gzip.open(place, "wb") as archive:
        header = tarfile.TarInfo("././@PaxHeader")
        header.type, header.size = tarfile.XHDTYPE, 2**20
        archive.write(header.tobuf() + b"9" * header.size + tarfile.TarInfo("a").tobuf() + bytes(1024))
    return place


def _truncated_tar(place: Path) -> Path:
    content = _tar(place, dict.fromkeys(BATCHES, os.urandom(5000))).read_bytes()
    return _file(place, content[: len(content) // 2])


def _loop(place: Path) -> Path:
    place.symlink_to(place)
    return place


def _folder_of_folders(place: Path) -> Path:
    for name in BATCHES:
        (place / name).mkdir(parents=True)
    return place


class _Call:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch called",)


HOSTILE: dict[str, Callable[[Path], Path]] = {
    "nothing": lambda place: place,
    "empty file": lambda place: _file(place, b""),
    "text": lambda place: _file(place, b"score,member\n1,1\n" * 1000),
    "noise": lambda place: _file(place, np.random.default_rng(1).bytes(5000)),
    "truncated archive": _truncated_tar,
    "only the first bytes of gzip": lambda place: _file(place, b"\x1f\x8b"),
    "archive that unpacks to too much": lambda place: _file(place, gzip.compress(bytes(2**20)) * 20),
    "archive with a long extended header": _extended_tar,
    "archive of other files": lambda place: _tar(place, {"readme.txt": b"hello"}),
    "archive of many files": lambda place: _tar(place, {str(k): b"" for k in range(200)}),
    "empty folder": lambda place: _folder(place, b"", ()),
    "folder of folders": _folder_of_folders,
    "empty batches": lambda place: _folder(place, b""),
    "text as batches": lambda place: _folder(place, b"hello\n"),
    "truncated batches": lambda place: _folder(place, _batch()[:-100]),
    "binary rows cut short": lambda place: _folder(place, bytes(3000), tuple(f"{n}.bin" for n in BATCHES)),
    "labels beyond ten": lambda place: _folder(place, _batch(labels=[0, 1, 2, 10])),
    "negative labels": lambda place: _folder(place, _batch(labels=[0, 1, 2, -1])),
    "too few labels": lambda place: _folder(place, _batch(labels=[0])),
    "labels that are text": lambda place: _folder(place, _batch(labels=["a"] * 4)),
    "pixels of another shape": lambda place: _folder(place, _batch(data=np.zeros((4, 100), np.uint8))),
    "pixels of another type": lambda place: _folder(place, _batch(data=np.zeros((4, 3072)))),
    "a list": lambda place: _folder(place, pickle.dumps([1, 2], protocol=2)),
    "a call": lambda place: _folder(place, pickle.dumps({b"data": _Call()}, protocol=2)),
    "a module": lambda place: _folder(place, b"\x80\x02cnumpy.f2py.__main__\nmain\n."),
    "a link to itself": _loop,
}


def _refused(name: str, place: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["dpsgd", "--epsilon", "8", "--data", name, "--data-from", str(place), "--out", str(folder)])
    err = capsys.readouterr().err
    assert (stopped.value.code, err.count("\n")) == (2, 1), err
    assert "data-from" in err


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_data_set_is_refused_in_one_line(
    make: Callable[[Path], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(data, "_LARGEST_ARCHIVE", 2**23)
    place = make(tmp_path / "hostile")
    _refused("cifar10", place, tmp_path / "out", capsys)
    _refused("fashion-mnist", place, tmp_path / "out", capsys)
    assert "numpy.f2py.__main__" not in sys.modules
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\x08",
        bytes([0, 0, 9, 3]) + bytes(12),
        bytes([0, 0, 8, 1]) + bytes(12),
        bytes([0, 0, 8, 3]) + np.array([1, 28, 27], ">i4").tobytes() + bytes(756),
        bytes([0, 0, 8, 3]) + np.array([2, 28, 28], ">i4").tobytes() + bytes(784),
        bytes([0, 0, 8, 3]) + np.array([-1, 28, 28], ">i4").tobytes() + bytes(784),
    ],
)
def test_idx_files_that_are_none(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _refused(
        "fashion-mnist", _folder(tmp_path / "idx", content, ("train-images-idx3-ubyte",)), tmp_path, capsys
    )


def test_a_batch_written_by_pickle_is_read_as_it_is(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, size=(4, 3072), dtype=np.uint8)
    for array in (pixels, np.asfortranarray(pixels)):
        found = load("cifar10", _folder(tmp_path / str(array.flags.c_contiguous), _batch(data=array)))
        expected = pixels.reshape(4, 3, 32, 32).astype(np.float32) / np.float32(127.5) - 1
        assert np.array_equal(found.test.tensors[0].numpy(), expected)
        assert found.test.tensors[1].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("epsilon", ["nan", "0", "-1", "inf", "8,nan"])
def test_an_epsilon_that_is_none_is_refused_before_anything_is_trained(
    epsilon: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "result", lambda *_: pytest.fail("trained"))
    with pytest.raises(SystemExit) as stopped:
        main(["dpsgd", f"--epsilon={epsilon}", "--out", str(tmp_path / "out")])
    assert stopped.value.code == 2
    assert "epsilon=" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["dpsgd", "demo"])
def test_seeds_that_pytorch_does_not_take(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main([command, "--seed", str(2**64)])
    err = capsys.readouterr().err
    assert (stopped.value.code, err.count("\n")) == (2, 1)
    assert "less than 2^64" in err
    with pytest.raises(ta.InputError, match="less than 2"):
        Recipe(seed=2**64)


def test_the_tables_say_what_they_rest_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ["dpsgd", "--epsilon", "8", "--steps", "3", "--canaries", "60", "--examples", "200"]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--batch-size", "50", "--out", str(tmp_path)])
    assert not stopped.value.code
    out = capsys.readouterr().out
    assert "…" not in out
    assert all(len(line) <= 80 for line in out.splitlines())
    for method in ("order-statistics", "exact", "steinke", "fdp-recursion", "rank-weighted"):
        assert method in out
    said = " ".join(out.split())
    assert "a lower bound with 95% confidence" in said
    assert "The largest of several rows is not a bound" in said
    (result,) = (json.loads(path.read_text()) for path in tmp_path.glob("*.json"))
    assert out.count("independent  ") == sum(
        bound["assumes"]["independent_outcomes"] for bound in result["bounds"]
    )
