"""Calls of a mechanism on one of two inputs, chosen by secret coins, each call with randomness of its own."""

import inspect
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed

from tightaudit.evidence.coins import stream
from tightaudit.support.checks import BoolArray
from tightaudit.support.errors import InputError
from tightaudit.support.parallel import results
from tightaudit.support.progress import Progress

_CALL_STREAM, _BATCH_STREAM, _COIN_STREAM = 201, 202, 203
_PER_CHUNK = 5_000
_FEW = 2_000
"""Calls that are not worth a second process."""

Mechanism = Callable[..., Any]


def call_generator(seed: int, call: int) -> np.random.Generator:
    """The random generator that one call was given, to repeat it.

    >>> float(call_generator(1, 5).random()) == float(call_generator(1, 5).random())
    True
    """
    return stream(seed, _CALL_STREAM, call)


@dataclass(frozen=True)
class Called:
    """What came back, call by call, and the secret coins that chose between the two inputs."""

    outputs: Any
    """A list, or an array with the calls along its first axis."""
    coins: BoolArray
    seed: int

    def __len__(self) -> int:
        return self.coins.size

    def part(self, start: int, end: int) -> "Called":
        """Some of the calls."""
        return Called(self.outputs[start:end], self.coins[start:end], self.seed)

    def followed_by(self, more: "Called") -> "Called":
        """These calls and more of them."""
        if isinstance(self.outputs, np.ndarray):
            outputs: Any = np.concatenate([self.outputs, more.outputs])
        else:
            outputs = [*self.outputs, *more.outputs]
        return Called(outputs, np.concatenate([self.coins, more.coins]), more.seed)


def call(
    mechanism: Mechanism,
    pair: tuple[Any, Any],
    calls: int,
    *,
    seed: int,
    vectorized: bool = False,
    workers: int = -1,
    progress: Progress | None = None,
) -> Called:
    """Flip a fair coin per call, and call the mechanism on the first or the second input.

    >>> called = call(lambda data, rng: data + rng.normal(), (0.0, 1.0), 4, seed=1)
    >>> len(called), len(called.outputs)
    (4, 4)
    """
    _require_arguments(mechanism, 3 if vectorized else 2)
    coins = stream(seed, _COIN_STREAM).random(calls) < 0.5
    chunks = [(start, min(start + _PER_CHUNK, calls)) for start in range(0, calls, _PER_CHUNK)]
    if vectorized:
        return Called(_vectorized(mechanism, pair, coins, seed, progress), coins, seed)
    jobs = [delayed(_chunk)(mechanism, pair, coins[start:end], seed, start) for start, end in chunks]
    parts = _done(jobs, workers if calls > _FEW else 1, progress)
    return Called([output for part in parts for output in part], coins, seed)


def _require_arguments(mechanism: object, count: int) -> None:
    expected = "a function of data and rng" + (
        ", and of the number of outputs to return" if count == 3 else ""
    )
    if not callable(mechanism):
        raise InputError("mechanism", type(mechanism).__name__, expected)
    try:
        inspect.signature(mechanism).bind(*range(count))
    except TypeError:
        raise InputError(
            "mechanism", f"{name_of(mechanism)}{inspect.signature(mechanism)}", expected
        ) from None
    except ValueError:
        return


def _done(jobs: Sequence[Any], workers: int, progress: Progress | None) -> list[Any]:
    try:
        return _parallel(jobs, workers, progress)
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
        # Raised where a mechanism cannot be handed to another process; its own errors are InputErrors here.
        if "pickle" not in str(error).lower():
            raise
        return _parallel(jobs, 1, progress)


def _parallel(jobs: Sequence[Any], workers: int, progress: Progress | None) -> list[Any]:
    found = []
    for part in results(jobs, n_jobs=workers, return_as="generator"):
        found.append(part)
        if progress is not None:
            progress(len(found), len(jobs))
    return found


def _chunk(mechanism: Mechanism, pair: tuple[Any, Any], coins: BoolArray, seed: int, first: int) -> list[Any]:
    found = []
    for number, coin in enumerate(coins.tolist(), start=first):
        try:
            found.append(mechanism(pair[coin], call_generator(seed, number)))
        except Exception as error:
            raise _failed(mechanism, error, f"call {number}", f"call_generator({seed}, {number})") from error
    return found


def _vectorized(
    mechanism: Mechanism, pair: tuple[Any, Any], coins: BoolArray, seed: int, progress: Progress | None
) -> Any:
    """Many calls in one go: the outputs of each input are put where its coins are."""
    whole: Any = None
    for place, data in enumerate(pair):
        who = np.flatnonzero(coins == bool(place))
        generator = stream(seed, _BATCH_STREAM, place)
        try:
            outputs = mechanism(data, generator, who.size)
        except Exception as error:
            raise _failed(
                mechanism, error, f"{who.size} calls on input {place + 1}", f"seed={seed}"
            ) from error
        outputs = np.asarray(outputs)
        if outputs.ndim == 0 or len(outputs) != who.size:
            found = f"an array of shape {outputs.shape}"
            raise InputError("mechanism", found, f"one output per call along the first axis, {who.size}")
        if whole is None:
            whole = np.empty((coins.size, *outputs.shape[1:]), dtype=outputs.dtype)
        if outputs.shape[1:] != whole.shape[1:] or outputs.dtype.kind != whole.dtype.kind:
            found = f"outputs like {outputs[:1]!r} after outputs like {whole[:1]!r}"
            raise InputError("mechanism", found, "outputs of one type and shape")
        whole[who] = outputs
        if progress is not None:
            progress(place + 1, 2)
    return whole


def _failed(mechanism: Mechanism, error: Exception, which: str, repeat: str) -> InputError:
    expected = f"an output; {which} raised it, and {repeat} repeats it"
    return InputError("mechanism", f"{name_of(mechanism)}: {type(error).__name__}: {error}", expected)


def name_of(mechanism: object) -> str:
    """What a mechanism is called in messages and reports."""
    return getattr(mechanism, "__name__", type(mechanism).__name__)
