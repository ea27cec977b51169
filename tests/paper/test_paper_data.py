"""What docs/paper.md says of the figures is what their data say."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[2] / "docs" / "paper"
VARYING = {
    "gaussian-independent": 0.95,
    "laplace-independent": 0.95,
    "gaussian-two-sided": 0.95,
    "subsampled-gaussian": 0.85,
}
"""Figures that vary n at r = n/5, and the share of ε that the paper's method reaches at the largest n."""
AUDITS = (*VARYING, "randomized-response", "fixed-released", "varying-released")


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((PAPER / f"{name}.csv").read_text(encoding="utf-8").splitlines()))


def means(name: str, panel: str, method: str) -> dict[int, float]:
    return {
        int(row["x"]): float(row["mean"])
        for row in rows(name)
        if (row["panel"], row["method"]) == (panel, method)
    }


def panels(name: str) -> list[tuple[str, float]]:
    return list(dict.fromkeys((row["panel"], float(row["true_epsilon"])) for row in rows(name)))


@pytest.mark.parametrize(("name", "share"), VARYING.items())
def test_the_papers_method_is_tight_at_a_million_canaries(name: str, share: float) -> None:
    for panel, true in panels(name):
        found = means(name, panel, "order-statistics")
        assert max(found) == 10**6
        assert found[10**6] >= share * true


@pytest.mark.parametrize("name", ["gaussian-independent", "gaussian-two-sided", "subsampled-gaussian"])
def test_the_papers_method_is_above_steinkes_where_it_finds_half(name: str) -> None:
    for panel, true in panels(name):
        ours, theirs = (means(name, panel, method) for method in ("order-statistics", "steinke"))
        assert all(ours[n] > theirs[n] for n in ours if ours[n] >= true / 2)


def test_with_a_large_delta_steinkes_method_finds_nothing() -> None:
    ours, theirs = (means("randomized-response", "δ = 0.01", m) for m in ("order-statistics", "steinke"))
    assert all(ours[n] > theirs[n] for n in ours if ours[n] >= 1.6)
    assert all(theirs[n] == 0 for n in theirs if n > 100)


@pytest.mark.parametrize("name", AUDITS)
def test_no_mean_is_above_the_truth_by_more_than_its_error_bar(name: str) -> None:
    for row in rows(name):
        assert float(row["mean"]) <= float(row["true_epsilon"]) + float(row["standard_deviation"]), row


@pytest.mark.parametrize("name", ["gaussian-independent", "gaussian-two-sided"])
def test_methods_are_in_order_on_average(name: str) -> None:
    for panel, _ in panels(name):
        paper, exact, weighted = (
            sum(means(name, panel, method).values())
            for method in ("order-statistics", "exact", "rank-weighted")
        )
        assert paper <= exact <= weighted
