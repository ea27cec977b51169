"""A privatizer that keeps what it releases at the bank in its own state: nothing leaves the compiled step."""

from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jax import numpy as jnp

from tightaudit.canaries.bank import Design
from tightaudit.canaries.jax.planted import TENSORS, bank_of
from tightaudit.support.errors import InputError


class Watched(NamedTuple):
    """The privatizer's state, and what was seen of each step."""

    inner: Any
    step: jax.Array
    coins: jax.Array
    """A fingerprint of the secret bits: a state belongs to canaries of one seed."""
    sampled: jax.Array
    """Steps × canaries: how often each was in the batch."""
    size: jax.Array
    """For each step, the records in the batch; 0 where it is not known which rows are padding."""
    released: jax.Array
    """Steps × tensors × entries."""


def watch(
    privatizer: object, design: Design, steps: int, fingerprint: int
) -> optax.GradientTransformationExtraArgs:
    """The privatizer, keeping what it releases at the bank in the first steps."""
    if not isinstance(privatizer, optax.GradientTransformation):
        expected = "a privatizer, such as jax_privacy.noise_addition.gaussian_privatizer(...)"
        raise InputError("privatizer", type(privatizer).__name__, expected)
    inner = optax.with_extra_args_support(privatizer)

    def init(params: Any) -> Watched:
        bank_of(params, design, "params")
        return Watched(
            inner=inner.init(params),
            step=jnp.zeros((), jnp.int32),
            coins=jnp.asarray(fingerprint, jnp.uint32),
            sampled=jnp.zeros((steps, design.n), jnp.uint8),
            size=jnp.zeros(steps, jnp.int32),
            released=jnp.zeros((steps, TENSORS, design.entries), jnp.float32),
        )

    def update(
        updates: Any,
        state: Watched,
        params: Any = None,
        *,
        ids: Any = None,
        is_padding_example: Any = None,
        **extra: Any,
    ) -> tuple[Any, Watched]:
        bank_of(updates, design, "gradients")
        if ids is None:
            raise InputError(
                "ids", None, "the ids of the batch: privatizer.update(gradients, state, ids=ids)"
            )
        noisy, following = inner.update(updates, state.inner, params, **extra)
        real_rows = jnp.ones(jnp.shape(ids), bool) if is_padding_example is None else ~is_padding_example
        canary = (ids >= 0) & real_rows
        sampled = jnp.zeros(design.n, jnp.uint8).at[jnp.maximum(ids, 0)].add(canary.astype(jnp.uint8))
        size = 0 if is_padding_example is None else jnp.sum(real_rows)
        at, released = state.step, jnp.stack(noisy.bank).astype(jnp.float32)
        return noisy, Watched(
            inner=following,
            step=at + 1,
            coins=state.coins,
            sampled=state.sampled.at[at].set(sampled, mode="drop"),
            size=state.size.at[at].set(size, mode="drop"),
            released=state.released.at[at].set(released, mode="drop"),
        )

    return optax.GradientTransformationExtraArgs(init, update)


def watched_in(state: object, fingerprint: int) -> Watched:
    """What a privatizer of these canaries has kept, wherever it is in an optimizer's state."""
    found = [
        leaf
        for leaf in jax.tree.leaves(state, is_leaf=lambda part: isinstance(part, Watched))
        if isinstance(leaf, Watched)
    ]
    if len(found) != 1:
        expected = "the state that the watched privatizer returned, or an optimizer's state with it inside"
        raise InputError("state", f"one with {len(found)} watched privatizers", expected)
    if int(np.asarray(found[0].coins)) != fingerprint:
        expected = "one of canaries with this seed; to go on from a checkpoint, make them with the same seed"
        raise InputError("state", "one of canaries with another seed", expected)
    return found[0]
