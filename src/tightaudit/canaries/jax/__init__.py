"""Canaries as records in trainings with JAX-Privacy, with independent or correlated noise (extra `jax`)."""

from tightaudit.support.extras import needs

with needs("jax", "canaries in JAX-Privacy"):
    from tightaudit.canaries.jax.records import RecordCanaries

from tightaudit.canaries.participation import Pattern

__all__ = ["Pattern", "RecordCanaries"]
