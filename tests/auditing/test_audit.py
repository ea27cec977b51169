"""The table of beliefs: what each row rests on, and what the headline may say."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightaudit as ta
from tightaudit.auditing.question import Question
from tightaudit.auditing.rows import table_of_beliefs
from tightaudit.claims.parts.typical import typical_claim
from tightaudit.planning.release import Planned, Setting
from tightaudit.render.wording import finding, notes

DELTA = 1e-5


def scores_of(mu: float, n: int = 2000, seed: int = 5) -> tuple[Any, Any]:
    coins = ta.draw_coins(n, seed=seed)
    return mu * coins.members + np.random.default_rng(seed).standard_normal(n), coins.members


STRONG = scores_of(3.0)


def test_four_rows_strongest_belief_first() -> None:
    report = ta.audit(*STRONG, delta=DELTA, claim=ta.Gaussian(1.0))
    beliefs = [(row.beliefs.independent, str(row.beliefs.family)) for row in report.rows]
    assert beliefs == [(True, "gaussian"), (True, "None"), (False, "gaussian"), (False, "None")]
    names = ["rank-weighted", "exact", "any-dependence", "any-dependence"]
    assert [row.method.name for row in report.rows] == names
    assert [str(row.tested).split("(")[0] for row in report.rows] == ["gaussian", "approx-dp"] * 2
    for row in report.rows:
        alone = ta.lower_bound(row.evidence, row.bound.family, delta=DELTA, method=row.method)
        assert row.bound.epsilon == alone.epsilon
        assert row.tested is not None
        assert row.p_value == ta.p_value(row.evidence, row.tested, method=row.method)


def test_no_shape_is_tested_at_the_claims_epsilon() -> None:
    report = ta.audit(*STRONG, delta=DELTA, claim=ta.Gaussian(1.0))
    assert isinstance(report.rows[1].tested, ta.ApproxDP)
    assert report.rows[1].tested.claimed_epsilon == ta.Gaussian(1.0).epsilon(DELTA)


@pytest.mark.parametrize(("delta", "family"), [(DELTA, "gaussian"), (0.0, "laplace")])
def test_an_approx_dp_claim_has_all_rows_with_the_family_named(delta: float, family: str) -> None:
    report = ta.audit(*STRONG, claim_epsilon=1.0, delta=delta)
    assert [row.beliefs.independent for row in report.rows] == [True, True, False, False]
    named = [None if row.beliefs.family is None else str(row.beliefs.family) for row in report.rows]
    assert named == [family, None] * 2
    # The family was not stated to hold: what decides does not believe in it.
    assert (report.decides.headline, report.decides.deciding) == (3, 3)
    assert f"Rows with the curve {family} hold only if" in str(report)


def test_an_approx_dp_claim_with_the_family_of_no_shape_has_two_rows() -> None:
    report = ta.audit(*STRONG, claim_epsilon=1.0, delta=DELTA, family="approx-dp")
    assert [row.beliefs.family for row in report.rows] == [None, None]


def test_an_approx_dp_claim_with_a_family_tests_its_member() -> None:
    report = ta.audit(*STRONG, claim=ta.ApproxDP(1.0, DELTA), family=ta.Laplace.family())
    assert len(report.rows) == 4
    tested = report.rows[0].tested
    assert isinstance(tested, ta.Laplace)
    assert tested.epsilon(DELTA) == pytest.approx(1.0, abs=1e-6)
    assert tested.epsilon(DELTA) <= 1.0
    # The member stands for the claim only if the shape is believed, so it does not decide about the claim.
    assert report.claim_row is report.rows[3]
    known = ta.audit(*STRONG, claim=ta.ApproxDP(1.0, DELTA), family=ta.Laplace.family(), family_known=True)
    assert known.claim_row is known.rows[2]


@pytest.mark.parametrize(
    ("independent", "family_known", "row"),
    [(False, False, 3), (True, False, 1), (False, True, 2), (True, True, 0)],
)
def test_the_headline_rests_on_what_was_stated(independent: bool, family_known: bool, row: int) -> None:
    report = ta.audit(*STRONG, delta=DELTA, independent=independent, family_known=family_known)
    assert report.headline is report.rows[row]
    assert report.verdict == finding(report.rows[row])


@pytest.mark.parametrize(("independent", "row"), [(False, 2), (True, 0)])
def test_a_claim_is_decided_by_its_own_p_value(independent: bool, row: int) -> None:
    report = ta.audit(*STRONG, delta=DELTA, claim=ta.Gaussian(1.0), independent=independent)
    assert report.claim_row is report.rows[row]
    assert report.violated
    assert "inconsistent with the claim gaussian(mu=1)" in report.verdict
    assert ("if outcomes are independent" in report.verdict) == independent


def test_a_true_claim_stands() -> None:
    report = ta.audit(*scores_of(1.0), delta=DELTA, claim=ta.Gaussian(1.0), independent=True)
    assert report.violated is False
    assert "does not contradict" in report.verdict
    assert "no proof of privacy" in report.verdict


def test_one_method_alone() -> None:
    report = ta.audit(*STRONG, delta=DELTA, method=ta.OrderStatistics(tail="hoeffding"))
    assert {row.method for row in report.rows} == {ta.OrderStatistics(tail="hoeffding")}
    assert report.headline is None
    assert "they all need independent outcomes" in report.verdict
    assert "Caution: order-statistics" in str(report)
    everything = ta.audit(*STRONG, delta=DELTA, method="bits", independent=True)
    assert everything.rows[0].counts == (2000,)


def test_best_pays_for_its_choice() -> None:
    data, claim = scores_of(3.0, n=500), ta.Gaussian(3.0)
    report = ta.audit(*data, delta=DELTA, claim=claim, released="best", independent=True)
    # The first row weighs all guesses, and has no count to choose.
    assert report.rows[0].counts == (500,)
    assert report.rows[0].cost is None
    for place, row in list(enumerate(report.rows))[1:]:
        assert row.counts == (250, 62)
        alone = [
            ta.audit(*data, delta=DELTA, claim=claim, released=count).rows[place] for count in row.counts
        ]
        assert row.p_value == pytest.approx(min(1.0, 2 * min(one.p_value or 0.0 for one in alone)))
        assert (row.bound.epsilon or 0.0) < max(one.bound.epsilon or 0.0 for one in alone)
        assert row.cost is not None
        assert row.cost > 0
    assert "trying several cost" in " ".join(str(report).split())


@pytest.mark.parametrize(("release", "counts"), [(500, 500), (0.1, 200), ("0.1", 200), ("500", 500)])
def test_release_as_count_or_fraction(release: Any, counts: int) -> None:
    report = ta.audit(*STRONG, delta=DELTA, released=release)
    assert {row.counts for row in report.rows} == {(counts,)}


@pytest.mark.parametrize("release", [0, -1, 1.0, 1.5, "many", "1.5", "0", True, float("nan"), 2001, "-3"])
def test_bad_release(release: Any) -> None:
    with pytest.raises(ta.InputError, match="released="):
        ta.audit(*STRONG, delta=DELTA, released=release)


def test_the_plan_knows_what_each_method_wants() -> None:
    """The recursion is best near 2·√n; a count of independent errors wants half, weighted ranks want all."""
    for n, low, high in ((10_000, 200, 500), (100_000, 500, 1000), (1_000_000, 1000, 2000)):
        rows = table_of_beliefs(Question.of(claim="gaussian(mu=1)", delta=DELTA), n, Planned())
        assert rows[0].counts == (n,)
        setting = Setting(n, ta.Exact(), ta.Gaussian.family(), ta.Gaussian(1.0), 0.05)
        assert Planned().counts(setting) == (n // 2,)
        assert low <= rows[2].counts[0] <= high


@pytest.mark.parametrize(
    "claim",
    [ta.Laplace(1.0), ta.SubsampledGaussian(1.0, 0.5), ta.ApproxDP(1.0, 1e-5), ta.ApproxDP(0.0, 0.1),
     ta.PublishedSampling(1.0, 0.1), ta.Tabulated([0.0, 0.3, 1.0], [1.0, 0.3, 0.0]), ta.Gaussian(60.0)],
)  # fmt: skip
def test_every_claim_can_be_audited(claim: ta.Claim) -> None:
    delta = DELTA if claim.point is None else claim.point[1]
    report = ta.audit(*scores_of(1.0, n=200), delta=delta, claim=claim)
    for row in report.rows:
        assert row.p_value is not None
        assert 0 <= row.p_value <= 1
    assert report.violated is not None


@pytest.mark.parametrize(
    ("scores", "members", "warning"),
    [
        ([1.0] * 50, [1, 0] * 25, "All scores are equal"),
        (list(range(50)), [1] * 50, "Every canary is a member"),
        (list(range(50)), [0] * 50, "No canary is a member"),
        ([float("inf"), float("-inf")] * 25, [1, 0] * 25, "50 scores are infinite"),
        (list(range(200)), [1] * 150 + [0] * 50, "150 of 200 canaries are members"),
    ],
)
def test_odd_but_legitimate_input_is_audited_with_a_warning(
    scores: list[float], members: list[int], warning: str, tmp_path: Path
) -> None:
    report = ta.audit(scores, members, delta=DELTA)
    assert any(warning in given for given in report.warnings)
    assert all(row.bound.epsilon is not None and row.bound.epsilon >= 0 for row in report.rows)
    assert warning.split()[0] in str(report)
    report.to_html(tmp_path / "report.html")
    assert warning in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_pass_that_could_not_have_failed_says_so() -> None:
    report = ta.audit([2.0, 1.0, -1.0], [1, 1, 0], delta=DELTA, claim="gaussian(mu=1)", independent=True)
    assert report.violated is False
    assert report.visible.epsilon is None
    assert "It could not have: 3 canaries are too few to show any leak." in report.verdict
    assert "Could have detected: nothing." in str(report)


def test_scores_the_wrong_way_round_are_suspected() -> None:
    scores, members = scores_of(2.0, 1000)
    report = ta.audit(-np.asarray(scores), members, delta=DELTA, claim="gaussian(mu=1)", independent=True)
    (warning,) = report.warnings
    errors, released = max((row.evidence.errors, row.evidence.released) for row in report.rows)
    assert warning.startswith(
        f"{errors} of {released:,} guesses are wrong; are the scores the wrong way round?"
    )
    assert not ta.audit(scores, members, delta=DELTA).warnings


def test_scores_that_say_nothing_are_not_suspected() -> None:
    """By chance one audit in 500 would be, having two counts that hardly depend on each other."""
    audits = [ta.audit(*scores_of(0.0, 200, seed), delta=DELTA, method="exact") for seed in range(20)]
    assert sum(bool(report.warnings) for report in audits) <= 1


def test_a_claim_unlike_the_one_the_run_was_set_up_for_is_remarked_on() -> None:
    scores, members = scores_of(2.0, 1000)
    run = ta.Run(scores, members, claim=ta.Gaussian(2.0), independent=True)
    meant = ta.audit(run, delta=DELTA, claim="gaussian(mu=1)")
    (warning,) = meant.warnings
    assert "The run was set up for gaussian(mu=2), which is ε = 9.997" in warning
    assert "gaussian(mu=1), is ε = 4.377" in warning
    assert "leaks more than claimed" in warning
    assert "leaks less" in ta.audit(run, delta=DELTA, claim_epsilon=20.0).warnings[0]
    assert not ta.audit(run, delta=DELTA).warnings
    assert not ta.audit(run, delta=DELTA, claim_epsilon=9.99).warnings


@pytest.mark.parametrize("released", ["planned", "best"])
def test_an_epsilon_that_is_far_exceeded_is_rejected(released: str) -> None:
    """The number released that promises the largest bound could not reject it, even without an error."""
    gross = ta.audit(*scores_of(30.0), delta=DELTA, claim_epsilon=4.0, independent=True, released=released)
    honest = ta.audit(*scores_of(0.5), delta=DELTA, claim_epsilon=4.0, independent=True, released=released)
    assert gross.violated
    assert honest.violated is False
    # It is known before the errors are.
    assert gross.visible == honest.visible
    assert gross.visible.epsilon is not None


def test_what_more_would_have_to_be_known_is_said() -> None:
    report = ta.audit(*scores_of(1.3), delta=DELTA, claim_epsilon=4.0, independent=True)
    assert report.violated is False
    text = " ".join(str(report).split())
    assert "state it with family_known=True (--family-known): then" in text
    known = ta.audit(*scores_of(1.3), delta=DELTA, claim_epsilon=4.0, independent=True, family_known=True)
    assert known.violated


def test_coins_can_be_given_as_they_were_drawn() -> None:
    coins = ta.draw_coins(100, seed=5)
    scores = np.arange(100.0)
    assert (
        ta.audit(scores, coins, delta=DELTA).epsilon == ta.audit(scores, coins.members, delta=DELTA).epsilon
    )
    with pytest.raises(ta.InputError, match="independent=no: expected True, False or the reason"):
        ta.audit(scores, coins, delta=DELTA, independent="no")


def test_verdict_and_bound_are_told_apart() -> None:
    """The bound for any curve is below the claimed ε although the claim is rejected: the text says why."""
    report = ta.audit(*scores_of(2.0, 1000), delta=DELTA, claim="gaussian(mu=1.5)", independent=True)
    assert report.violated
    assert report.epsilon is not None
    assert report.epsilon < 7.05
    text = " ".join(str(report).split())
    assert f"Claimed ε = 7.051 at δ = 1e-05; audited ε ≥ {math.floor(1000 * report.epsilon) / 1000}" in text
    assert "The test of the claimed curve itself does (row ◀, p = " in text
    assert report.plot_data.trade_offs.deciding is not None


def test_a_path_and_yes_or_no_scores_can_be_audited(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("loss,member\n" + "0.5,1\n-0.5,0\n" * 20)
    by_path = ta.audit(path, delta=DELTA, columns=ta.Columns(score="loss"))
    assert by_path.run.n == 40
    yes_or_no = ta.audit(np.array([True, False] * 20), [1, 0] * 20, delta=DELTA)
    assert [row.epsilon for row in yes_or_no.rows] == [row.epsilon for row in by_path.rows]


@pytest.mark.parametrize(("independent", "method"), [(True, "exact"), (True, None), (False, None)])
def test_what_could_have_been_seen_is_seen_so_often(independent: bool, method: str | None) -> None:
    """Simulated: the mechanism named contradicts the claim as often as said, a milder one does not."""
    claim, n, audits = ta.Gaussian(1.0), 400, 300
    report = ta.audit(*scores_of(1.0, n), delta=DELTA, claim=claim, independent=independent, method=method)
    seen = report.visible.mechanism
    assert isinstance(seen, ta.Gaussian)
    assert report.claim_row is not None
    test = report.claim_row.bound.test

    @lru_cache
    def rejected(statistic: int) -> bool:
        return test.excess(claim, statistic, 0.05) <= 0

    def rate(mu: float) -> float:
        found = (ta.release(*scores_of(mu, n, seed), released=n) for seed in range(audits))
        return sum(rejected(test.statistic(evidence.top(test.released))) for evidence in found) / audits

    # Two standard deviations of 300 audits are 0.025.
    assert rate(seen.mu) >= 0.95 - 0.025
    assert rate((seen.mu + 1) / 2) < 0.95


def test_fair_coins_are_not_suspected() -> None:
    suspected = [
        any(
            "split at least this" in text
            for text in ta.audit(*scores_of(0.0, 100, seed), delta=DELTA).warnings
        )
        for seed in range(20)
    ]
    assert not any(suspected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": None}, "delta=None"),
        ({"delta": 2.0}, "delta=2.0: expected a number in [0, 1]"),
        (
            {"delta": 0.0, "family": "gaussian"},
            "delta=0.0: expected a δ at which claims of the family gaussian have a finite ε",
        ),
        ({"claim": ta.ApproxDP(1.0, 1e-6)}, "delta=1e-05: expected 1e-06"),
        ({"claim": "gaussian"}, "claim=gaussian: expected a claim with all its parameters; missing: mu"),
        ({"family": ta.Gaussian(1.0)}, "family=gaussian(mu=1): expected a family"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"independent": 1}, "independent=1"),
        ({"independent": " "}, "independent=: expected True, False or the reason"),
        ({"family_known": 1}, "family_known=1"),
        ({"guessing": "psychic"}, "guessing=psychic"),
        ({"guessing": "threshold"}, "threshold=None"),
        ({"members": None}, "members=None"),
        ({"members": [0.5] * 2000}, "members=0.5"),
        ({"data": "scores.csv"}, "members=given: expected none"),
        ({"data": "scores.csv", "members": None}, "scores.csv: found no such file"),
        ({"columns": ta.Columns(score="loss")}, "columns="),
        ({"method": "magic"}, "method=magic"),
        ({"family": ta.SubsampledGaussian.family(mu=0.01), "claim": ta.ApproxDP(9.0, DELTA)}, "claim=ε=9"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"data": STRONG[0], "members": STRONG[1], "delta": DELTA}
    with pytest.raises(ta.InputError) as caught:
        ta.audit(**(arguments | change))
    assert message in str(caught.value)


def test_a_claim_of_no_loss_is_tested_at_its_least_private_member() -> None:
    """All of 0-loss at δ = 0.3 is allowed up to μ = 0.7706; testing a smaller μ would accuse the innocent."""
    report = ta.audit(*STRONG, claim=ta.ApproxDP(0.0, 0.3), family=ta.Gaussian.family())
    tested = report.rows[0].tested
    assert isinstance(tested, ta.Gaussian)
    assert tested.mu == pytest.approx(0.77064, abs=1e-5)


def test_unfair_coins_are_named_even_when_all_fell_the_same_way() -> None:
    report = ta.audit(np.arange(200.0), np.ones(200), delta=DELTA, guessing="one-sided")
    assert any("split at least this" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("family", "delta"),
    [
        (ta.SubsampledGaussian.family(mu=0.5), DELTA),
        (ta.SubsampledGaussian.family(q=1e-6), DELTA),
        (ta.Gaussian.family(), 1.0),
        (ta.Laplace.family(), 0.0),
    ],
)
def test_families_without_a_typical_member_can_be_planned(family: ta.Family, delta: float) -> None:
    assert len(ta.audit(*scores_of(1.0, n=100), delta=delta, family=family).rows) == 4


def test_extreme_approx_dp_claims_can_be_planned() -> None:
    for claim in (ta.ApproxDP(700.0, 0.0), ta.ApproxDP(1.0, 1.0)):
        assert ta.audit(*scores_of(1.0, n=100), claim=claim).violated is False


@pytest.mark.parametrize(
    ("n", "delta", "epsilon", "least"), [(10_000, 0.01, 4.0, 3.2), (1000, 0.01, 1.0, 0.58)]
)
def test_a_large_delta_is_planned_for(n: int, delta: float, epsilon: float, least: float) -> None:
    """Where δ·n guesses are certain, the independent row without a shape wants few released."""
    typical = typical_claim(ta.ApproxDP(epsilon, delta), None, delta)
    family = ta.ApproxDP.family(delta=delta)
    (count,) = Planned().counts(Setting(n, ta.Exact(), family, typical, 0.05))
    errors = round(ta.expected_errors(typical, n=n, released=count))
    bound = ta.lower_bound(ta.Evidence(n, count, errors), family, delta=delta)
    assert bound.epsilon is not None
    assert bound.epsilon >= least


def test_a_hopeless_claim_is_not_planned_with_everything_released() -> None:
    setting = Setting(1000, ta.AnyDependence(), ta.Gaussian.family(), ta.Gaussian(0.1), 0.05)
    (count,) = Planned().counts(setting)
    assert count == 63


def test_the_verdict_does_not_round_a_claim() -> None:
    report = ta.audit(*STRONG, claim=ta.ApproxDP(1.99996, DELTA))
    assert "ε ≤ 1.99996 at" in report.verdict


def test_rank_weighting_needs_ranks_in_order_of_confidence() -> None:
    for guessing, claim, name in (
        ("two-sided", ta.Gaussian(1.0), "rank-weighted"),
        ("two-sided", ta.SubsampledGaussian(1.0, 0.5), "exact"),
        ("threshold", ta.SubsampledGaussian(1.0, 0.5), "rank-weighted"),
        ("one-sided", ta.Gaussian(1.0), "exact"),
    ):
        threshold = 0.5 if guessing == "threshold" else None
        rule: Any = guessing
        report = ta.audit(*STRONG, delta=DELTA, claim=claim, guessing=ta.Guessing(rule, threshold))
        assert report.rows[0].method.name == name


def test_one_sided_guessing_releases_no_guess_that_must_be_wrong() -> None:
    bits = ta.draw_coins(1000, seed=3).members
    report = ta.audit(
        bits.astype(float), bits, delta=DELTA, claim=ta.Laplace(1.0), guessing="one-sided", independent=True
    )
    assert report.violated
    assert all(row.counts[0] <= 500 for row in report.rows)


def test_a_family_in_other_words_is_the_one_the_run_knows() -> None:
    run = ta.Run(*scores_of(2.0, n=300), family=ta.SubsampledGaussian.family(q=0.5))
    for text in (None, "subsampled-gaussian(q=.5)"):
        assert ta.audit(run, delta=DELTA, family=text).question.family_known
    assert not ta.audit(run, delta=DELTA, family="gaussian").question.family_known


def test_a_claim_that_stands_holds_back_a_larger_bound() -> None:
    """Two rows would be two chances to be wrong: the bound beside a claim that stands is not above it."""
    report = ta.audit(*scores_of(1.0), delta=DELTA, claim="gaussian(mu=1)", independent=True)
    assert report.violated is False
    assert report.headline is not None
    larger = replace(report.headline.bound, epsilon=6.0)
    rows = tuple(replace(row, bound=larger) if row is report.headline else row for row in report.rows)
    held = replace(report, rows=rows)
    assert held.held_back
    assert held.epsilon == ta.Gaussian(1.0).epsilon(DELTA) == held.to_dict()["epsilon"]
    assert "no more is said beside a claim that stands" in " ".join(str(held).split())
    assert "not contradict" in held.verdict


@pytest.mark.parametrize(
    ("claim", "n"),
    [
        (ta.SubsampledGaussian(3.0, 0.1), 1000),
        (ta.SubsampledGaussian(5.0, 0.1), 3000),
        (ta.DpSgd(0.2, 0.1, 1), 1000),
    ],
    ids=str,
)
def test_a_planned_test_can_reject(claim: ta.Claim, n: int) -> None:
    """Guesses that carry a weight may be so few that to be right about all of them proves nothing."""
    question = Question.of(claim=claim, delta=DELTA)
    deciding = table_of_beliefs(question, n, Planned())[0]
    assert deciding.tests_claim_itself
    assert deciding.tests[0].p_value(claim, 0) <= 0.05
    report = ta.audit(*scores_of(30.0, n=n), delta=DELTA, claim=claim, independent=True)
    assert report.violated


def test_a_stronger_belief_with_a_smaller_bound_is_explained() -> None:
    random = np.random.default_rng(5)
    members = random.random(300) < 0.5
    report = ta.audit(random.laplace(size=300) + members, members, delta=DELTA, claim="laplace(mu=1)")
    believing, believing_less = report.rows[0], report.rows[2]
    assert believing.beliefs.independent
    assert not believing_less.beliefs.independent
    assert believing.bound.size < believing_less.bound.size
    said = "A row that believes more may have the smaller bound"
    assert any(note.startswith(said) for note in notes(report))
    plain = ta.audit(*STRONG, delta=DELTA, claim=ta.Gaussian(1.0))
    assert not any(note.startswith(said) for note in notes(plain))


def test_all_numbers_that_were_tried_are_listed() -> None:
    """Of rows that tried several, each set once; a row that releases everything tried none."""
    report = ta.audit(*STRONG, delta=DELTA, claim=ta.Gaussian(1.0), released="best")
    (said,) = (note for note in notes(report) if note.startswith("Released: "))
    tried = {row.counts for row in report.rows if len(row.counts) > 1}
    assert tried
    assert "best of 1 " not in said
    for counts in tried:
        assert f"best of {len(counts)} counts ({', '.join(f'{count:,}' for count in counts)})" in said
