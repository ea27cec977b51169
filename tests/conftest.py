"""Claims that every law is tried on, and property tests that try the same cases every time."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import settings

import tightaudit as ta
from tightaudit.checks import FloatArray
from tightaudit.tradeoffs.published_sampling import PublishedSampling

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


def laplace_like(alpha: FloatArray) -> FloatArray:
    """The Laplace trade-off function as a plain callable, for `Tabulated.from_function`."""
    return np.asarray(ta.Laplace(1.0).f(alpha))


CLAIMS: list[ta.TradeOff] = [
    ta.Gaussian(0.05),
    ta.Gaussian(1.0),
    ta.Gaussian(4.0),
    ta.Gaussian(10.0),
    ta.Laplace(0.05),
    ta.Laplace(0.8),
    ta.Laplace(10.0),
    ta.ApproxDP(0.0, 0.0),
    ta.ApproxDP(0.0, 0.3),
    ta.ApproxDP(1.0, 0.0),
    ta.ApproxDP(1.0, 0.01),
    ta.ApproxDP(5.0, 0.5),
    ta.SubsampledGaussian(1.0, 1.0),
    ta.SubsampledGaussian(0.8, 0.5),
    ta.SubsampledGaussian(3.0, 0.001),
    ta.SubsampledGaussian(10.0, 0.3),
    PublishedSampling(1.0, 0.2),
    PublishedSampling(3.0, 1.0),
    ta.Tabulated([0.0, 0.1, 0.4, 1.0], [0.9, 0.5, 0.2, 0.0]),
    ta.Tabulated.from_function(laplace_like),
    ta.PrivacyLoss([2.0, 0.5, -0.5, -2.0, math.inf], [0.2, 0.3, 0.3, 0.02, 0.18]),
]

FAMILIES: list[ta.Family] = [
    ta.Gaussian.family(),
    ta.Laplace.family(),
    ta.ApproxDP.family(delta=1e-5),
    ta.ApproxDP.family(delta=0.1),
    ta.SubsampledGaussian.family(q=0.5),
    ta.SubsampledGaussian.family(q=0.01),
    ta.SubsampledGaussian.family(mu=2.0),
    PublishedSampling.family(q=0.3),
    PublishedSampling.family(mu=2.0),
]
