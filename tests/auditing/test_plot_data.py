"""The data of the pictures: what a plot shows is in the report, and is what it says."""

from __future__ import annotations

import numpy as np
import pytest

import tightaudit as ta

COINS = ta.draw_coins(1000, seed=3)
SCORES = 2 * COINS.members + np.random.default_rng(3).standard_normal(1000)
REPORT = ta.audit(SCORES, COINS.members, delta=1e-5, claim="gaussian(mu=1)", independent=True)


def test_every_score_is_in_the_histogram_or_outside() -> None:
    shown = REPORT.plot_data.scores
    assert shown is not None
    inside = np.histogram(SCORES[COINS.members], shown.edges)[0]
    assert shown.members == inside.tolist()
    assert sum(shown.members) + sum(shown.non_members) + shown.outside == 1000


def test_the_achieved_trade_off_is_that_of_the_scores() -> None:
    achieved = REPORT.plot_data.trade_offs.achieved
    assert achieved is not None
    for alarm, miss in list(zip(achieved.x, achieved.y, strict=True))[::17]:
        called = round(alarm * (~COINS.members).sum() + (1 - miss) * COINS.members.sum())
        highest = np.argsort(-SCORES)[:called]
        assert miss == pytest.approx(1 - COINS.members[highest].sum() / COINS.members.sum())


def test_the_rejected_curve_is_the_headlines() -> None:
    rejected, headline = REPORT.plot_data.trade_offs.rejected, REPORT.headline
    assert rejected is not None
    assert headline is not None
    assert headline.bound.rejected is not None
    assert rejected.y == pytest.approx(headline.bound.rejected.f(np.array(rejected.x)))


def test_explored_bounds_are_those_of_the_quick_methods() -> None:
    for row, curve in zip(REPORT.rows, REPORT.plot_data.bounds, strict=True):
        assert len(curve.x) == len(curve.y) >= 1
        if row.method.releases_all:
            assert (curve.x, curve.y) == ([1000.0], [row.epsilon])
            continue
        count = int(curve.x[2])
        alone = ta.lower_bound(
            REPORT.evidence.top(count), row.bound.family, delta=1e-5, method=row.method.quick
        )
        assert curve.y[2] == pytest.approx(alone.epsilon, rel=5e-3)


def test_drawing_changes_nothing_and_json_has_it_all() -> None:
    fields = REPORT.to_dict()["plot_data"]
    assert set(fields) == {"scores", "trade_offs", "bounds"}
    assert len(fields["bounds"]) == len(REPORT.rows)
