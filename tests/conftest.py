"""Claims that the laws are tried on, and property tests that try the same cases every time."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from joblib.externals.loky import get_reusable_executor

import tightaudit as ta
from tightaudit.claims.base import CLAIMS
from tightaudit.claims.published_sampling import PublishedSampling
from tightaudit.methods.base import METHODS
from tightaudit.simulate.mechanisms.base import MECHANISMS
from tightaudit.support.checks import FloatArray

if TYPE_CHECKING:
    from playwright.sync_api import Browser

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


def laplace_like(alpha: FloatArray) -> FloatArray:
    """The Laplace trade-off function as a plain callable, for `Tabulated.from_function`."""
    return np.asarray(ta.Laplace(1.0).f(alpha))


SAMPLE_CLAIMS: list[ta.Claim] = [
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
    *(ta.as_claim(CLAIMS[name].example) for name in CLAIMS if not CLAIMS[name].grain),
]
"""Claims that every law is tried on: some that are telling, and the example of each that there is.

Those known on a grid only are too rough for the tolerances, and slow; they have tests of their own.
"""

SAMPLE_FAMILIES: list[ta.Family] = [
    ta.Gaussian.family(),
    ta.Laplace.family(),
    ta.ApproxDP.family(delta=1e-5),
    ta.ApproxDP.family(delta=0.1),
    ta.SubsampledGaussian.family(q=0.5),
    ta.SubsampledGaussian.family(q=0.01),
    ta.SubsampledGaussian.family(mu=2.0),
    PublishedSampling.family(q=0.3),
    PublishedSampling.family(mu=2.0),
    *(ta.as_claim(CLAIMS[name].example).own_family() for name in CLAIMS if not CLAIMS[name].grain),
]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How far results are from what others have published, from the tests that compare them."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name} from {value}")


@pytest.fixture
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose packages count as installed; nothing of them is left when the test is over."""
    registries: list[Any] = [CLAIMS, METHODS, MECHANISMS]
    for registry in registries:
        list(registry)
        monkeypatch.setattr(registry, "_members", dict(registry._members))
        monkeypatch.setattr(registry, "_unread", [registry._load_plugins])
    # Processes that calibrations left waiting look for modules where they were when they started.
    get_reusable_executor().shutdown(wait=True)
    place = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(str(place))
    known = set(sys.modules)
    yield place
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(place)):
            del sys.modules[name]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, for the tests that look at a page as its reader does."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium on this machine; the page was not opened in a browser")
    from playwright.sync_api import sync_playwright  # the tests that `make oldest` runs do without

    with sync_playwright() as driver:
        # A container's root user has no sandbox.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = driver.chromium.launch(executable_path=program, args=arguments)
        yield opened
        opened.close()
