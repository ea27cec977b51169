"""The bank as leaves of a parameter tree: canaries pull at their entries of it and at nothing else."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from tightaudit.canaries.bank import Design
from tightaudit.support.checks import BoolArray
from tightaudit.support.errors import InputError

TENSORS = 2
REAL = -1
"""The id of a record that is no canary."""
_LONG = 1e4
"""Large enough that the gradient of a canary is longer than any clipping norm; half precision can hold it."""


class Planted(NamedTuple):
    """Parameters with a bank beside them."""

    model: Any
    bank: tuple[jax.Array, ...]


def plant(params: Any, design: Design) -> Planted:
    """Parameters with a bank, as precise as the parameters: noise in too low a precision is then seen."""
    leaves = [leaf for leaf in jax.tree.leaves(params) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]
    if not leaves:
        raise InputError("params", "a tree without parameters", "the tree of your model's parameters")
    dtype = jnp.result_type(leaves[0])
    return Planted(params, tuple(jnp.zeros(design.entries, dtype) for _ in range(TENSORS)))


def bank_of(tree: Any, design: Design, name: str) -> tuple[Any, ...]:
    """The bank in a tree of parameters or of gradients."""
    if not isinstance(tree, Planted):
        raise InputError(
            name, f"a {type(tree).__name__} without the bank", "the tree that canaries.plant gave"
        )
    shapes = {np.shape(tensor) for tensor in tree.bank}
    if shapes != {(design.entries,)}:
        expected = f"the bank of these canaries, of {design.entries} entries each"
        raise InputError(name, f"a bank of other shapes, {sorted(shapes)}", expected)
    return tree.bank


def loss_with_canaries(
    loss: Callable[..., Any], design: Design, members: BoolArray, *, has_aux: bool
) -> Callable[..., Any]:
    """A loss that also takes ids, and is flat for a canary but for its own entries of the bank."""
    inside = jnp.asarray(members)

    @wraps(loss)
    def with_canaries(params: Any, *given: Any, ids: Any = None, **named: Any) -> Any:
        bank = bank_of(params, design, "params")
        if ids is None:
            raise InputError("ids", None, "the ids of the batch: gradients(params, inputs, ids=ids)")
        returned = loss(params.model, *given, **named)
        value = returned[0] if has_aux else returned
        place = jnp.maximum(ids, 0)
        entry = sum(tensor[place] for tensor in bank)
        pull = jnp.where((ids >= 0) & inside[place], _LONG * (entry - jax.lax.stop_gradient(entry)), 0)
        value = jnp.where(jnp.any(ids >= 0), jnp.sum(pull).astype(jnp.result_type(value)), value)
        return (value, returned[1]) if has_aux else value

    return with_canaries


def join(data: Any, n: int) -> tuple[Any, Any]:
    """Data with a slot per canary in front, and the ids of all records.

    Slots come first: the index -1, with which JAX-Privacy pads batches, is then a real record.
    """
    leaves = jax.tree.leaves(data)
    lengths = {len(leaf) if np.ndim(leaf) else 0 for leaf in leaves}
    if len(lengths) != 1 or lengths == {0}:
        expected = "arrays with the same number of records along their first axis, at least one"
        raise InputError("data", f"arrays with {sorted(lengths)} records", expected)
    (real,) = lengths

    def with_slots(leaf: Any) -> Any:
        kept = np.asarray(leaf)
        return np.concatenate([np.broadcast_to(kept[:1], (n, *kept.shape[1:])), kept])

    ids = np.concatenate([np.arange(n), np.full(real, REAL)]).astype(np.int32)
    return jax.tree.map(with_slots, data), ids
