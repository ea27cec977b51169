"""The mechanism and the method that the pages on adding them write down, installed as written there."""

from __future__ import annotations

import doctest
import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.claims import test_laws as laws
from tests.conftest import SAMPLE_CLAIMS
from tests.docs.pages import ROOT, files_of, install_package_of

import tightaudit as ta
from tightaudit.cli.option_groups import completing
from tightaudit.simulate.calibration import Audits, calibrate
from tightaudit.simulate.mechanisms.base import as_mechanism

ADDING_A_MECHANISM, ADDING_A_METHOD = (
    ROOT / "docs" / f"adding-a-{what}.md" for what in ("mechanism", "method")
)
EVERY_LAW = [
    law
    for name, law in vars(laws).items()
    if name.startswith("test_")
    and any(
        mark.name == "parametrize" and mark.args[1] is SAMPLE_CLAIMS
        for mark in getattr(law, "pytestmark", [])
    )
]


@pytest.fixture
def truncated_laplace(plug_ins: Path) -> ModuleType:
    install_package_of(ADDING_A_MECHANISM, plug_ins)
    return importlib.import_module("truncated_laplace")


@pytest.fixture
def beta_cut(plug_ins: Path) -> ModuleType:
    install_package_of(ADDING_A_METHOD, plug_ins)
    return importlib.import_module("beta_cut")


@pytest.mark.parametrize("page", [ADDING_A_MECHANISM, ADDING_A_METHOD], ids=lambda page: page.stem)
def test_docstrings(page: Path, plug_ins: Path) -> None:
    modules = install_package_of(page, plug_ins)
    assert len(modules) == 1
    assert all(len(text.splitlines()) > 20 for name, text in files_of(page).items() if name.endswith(".py"))
    for name in modules:
        results = doctest.testmod(importlib.import_module(name))
        assert results.attempted > 0
        assert results.failed == 0


def test_all_are_listed(plug_ins: Path) -> None:
    install_package_of(ADDING_A_MECHANISM, plug_ins)
    install_package_of(ADDING_A_METHOD, plug_ins)
    assert completing("claims")("trunc") == completing("mechanisms")("trunc") == ["truncated-laplace"]
    assert completing("methods")("beta") == ["beta-cut"]


@pytest.mark.parametrize(("mu", "tail"), [(1.0, 0.01), (0.05, 0.3), (4.0, 1e-6), (0.5, 0.5)])
def test_the_claim_obeys_every_law(truncated_laplace: ModuleType, mu: float, tail: float) -> None:
    assert len(EVERY_LAW) >= 8
    for law in EVERY_LAW:
        law(truncated_laplace.TruncatedLaplace(mu, tail))


@pytest.mark.parametrize("tail", [1e-6, 0.01, 0.5])
def test_the_family_grows_less_private(truncated_laplace: ModuleType, tail: float) -> None:
    laws.test_families_grow_less_private(truncated_laplace.TruncatedLaplace.family(tail=tail))


def test_the_claim_is_that_of_the_densities(truncated_laplace: ModuleType) -> None:
    """Both densities on a fine grid of outputs, their ratio, and the test that follows from it."""
    mu, tail = 1.3, 0.02
    claim = truncated_laplace.TruncatedLaplace(mu, tail)
    ends = np.linspace(-claim.bound, claim.bound + 1, 2_000_001)
    middle = (ends[1:] + ends[:-1]) / 2

    def masses(shift: float) -> Any:
        density = np.where(np.abs(middle - shift) <= claim.bound, np.exp(-mu * np.abs(middle - shift)), 0.0)
        return density / density.sum()

    p, q = masses(0.0), masses(1.0)
    for epsilon in (0.0, 0.4, 1.0, 1.3, 2.0):
        found = np.sum(np.maximum(q - np.exp(epsilon) * p, 0))
        assert claim.delta(epsilon) == pytest.approx(found, abs=1e-5)
    assert claim.error_mass(0.0) == pytest.approx(np.sum(np.minimum(p, q)) / 2, abs=1e-5)


def test_the_mechanism_has_that_noise(truncated_laplace: ModuleType) -> None:
    known = as_mechanism("truncated-laplace(mu=2,tail=0.05)")
    claim = truncated_laplace.TruncatedLaplace(2.0, 0.05)
    noise = known.scores(np.zeros((1, 200_000), dtype=np.bool_), np.random.default_rng(0))[0]
    assert np.abs(noise).max() <= claim.bound
    # A share with a standard error of 5e-4.
    assert np.mean(noise > claim.bound - 1) == pytest.approx(0.05, abs=2.5e-3)
    assert np.mean(np.abs(noise) > 0.5) == pytest.approx(
        1 - (1 - np.exp(-1.0)) / (1 - np.exp(-2 * claim.bound)), abs=5e-3
    )


@pytest.mark.usefixtures("truncated_laplace")
def test_no_method_rejects_the_true_claim_too_often() -> None:
    known = as_mechanism("truncated-laplace(mu=1.5,tail=0.02)")
    result = calibrate(known, Audits(n=200, released=40, times=400), bounds=False, workers=1)
    assert [row.method for row in result.rejections if row.exceeds] == []
    audits = Audits(n=200, released=40, methods=("exact",), times=400)
    false = "truncated-laplace(mu=0.5,tail=0.02)"
    result = calibrate(known, audits, claim=false, bounds=False, workers=1)
    assert result.rejections[0].rate > 0.5


@pytest.mark.usefixtures("beta_cut")
@pytest.mark.parametrize(
    "text",
    ["gaussian(mu=1)", "laplace(mu=1)", "randomized-response(epsilon=1,delta=0.01)", "gaussian(mu=3)"],
)
@pytest.mark.parametrize("released", [40, 200])
def test_the_method_does_not_reject_too_often(text: str, released: int) -> None:
    audits = Audits(n=200, released=released, methods=("beta-cut",), times=400)
    result = calibrate(text, audits, bounds=False, workers=1)
    assert not result.rejections[0].exceeds


def test_the_method_is_never_below_the_exact_law(beta_cut: ModuleType) -> None:
    for claim in SAMPLE_CLAIMS:
        for n, released in ((1000, 200), (300, 300), (50, 1)):
            for errors in {0, released // 10, released // 3, released}:
                evidence = ta.Evidence(n, released, errors)
                exact = ta.p_value(evidence, claim)
                assert ta.p_value(evidence, claim, method=beta_cut.BetaCut()) >= exact * (1 - 1e-9)


@pytest.mark.usefixtures("beta_cut")
def test_reports_name_the_method(tmp_path: Path) -> None:
    coins = ta.draw_coins(300, seed=1)
    scores = 2 * coins.members + np.random.default_rng(1).standard_normal(300)
    report = ta.audit(scores, coins.members, delta=1e-5, method="beta-cut")
    report.to_json(tmp_path / "audit.json")
    report.to_html(tmp_path / "audit.html")
    rows = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))["rows"]
    assert {row["method"] for row in rows} == {"beta-cut"}
    assert all(row["beliefs"]["independent_outcomes"] for row in rows)
    assert "beta-cut" in str(report)
    assert "docs/adding-a-method.md" in (tmp_path / "audit.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("truncated_laplace")
def test_reports_name_the_claim(tmp_path: Path) -> None:
    known = as_mechanism("truncated-laplace(mu=2,tail=0.01)")
    coins = ta.draw_coins(500, seed=1)
    scores = known.scores(coins.members[None, :], np.random.default_rng(1))[0]
    report = ta.audit(scores, coins.members, delta=0.01, claim=known.claim, independent=True)
    report.to_json(tmp_path / "audit.json")
    report.to_html(tmp_path / "audit.html")
    found = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert found["claim"]["text"] == "truncated-laplace(mu=2,tail=0.01)"
    assert found["rows"][0]["family"] == "truncated-laplace(tail=0.01)"
    assert found["claim"]["epsilon"] == pytest.approx(2.0)
    assert "truncated-laplace(mu=2,tail=0.01)" in (tmp_path / "audit.html").read_text(encoding="utf-8")
