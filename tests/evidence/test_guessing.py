"""Coins, guesses and releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tightaudit as ta


def test_coins_are_fair_seeded_and_recorded() -> None:
    coins = ta.draw_coins(100_000, seed=11)
    assert coins.members.dtype == np.bool_
    assert abs(coins.members.mean() - 0.5) < 4 * 0.5 / np.sqrt(100_000)
    assert np.array_equal(ta.draw_coins(100_000, seed=11).members, coins.members)
    assert not np.array_equal(ta.draw_coins(100_000, seed=12).members, coins.members)
    fresh = ta.draw_coins(1000)
    assert np.array_equal(ta.draw_coins(1000, seed=fresh.seed).members, fresh.members)
    assert fresh.seed != ta.draw_coins(1000).seed


def test_two_sided_guesses_alternate_between_the_ends() -> None:
    scores = np.arange(10.0)
    members = np.array([0, 1, 0, 0, 0, 1, 1, 1, 0, 1])
    evidence = ta.release(scores, members, released=4)
    # The two lowest are guessed 0 (one wrong), the two highest 1 (one wrong).
    assert evidence.errors == 2
    assert evidence.top(2).errors == 0
    assert evidence.top(10).errors == 1 + 1
    assert evidence.guessing == ta.Guessing("two-sided")


def test_one_sided_guesses_are_all_for_in() -> None:
    evidence = ta.release([5.0, 4.0, 3.0, 2.0], [1, 0, 1, 0], released=3, guessing="one-sided")
    assert evidence.errors_by_rank is not None
    assert evidence.errors_by_rank.tolist() == [False, True, False, True]
    assert evidence.errors == 1


def test_threshold_guesses_go_by_distance() -> None:
    evidence = ta.release(
        [0.6, -3.0, 0.5, 9.0], [1, 1, 0, 1], released=2, guessing=ta.Guessing("threshold", 0.5)
    )
    assert evidence.errors_by_rank is not None
    # 9.0 guessed 1 (right), -3.0 guessed 0 (wrong), 0.6 guessed 1 (right), 0.5 not above: 0 (right).
    assert evidence.errors_by_rank.tolist() == [False, True, False, False]
    assert (evidence.errors, evidence.guessing) == (1, ta.Guessing("threshold", 0.5))


def test_infinite_scores_sort() -> None:
    evidence = ta.release([np.inf, -np.inf, 0.0, 1.0], [1, 0, 1, 0], released=2)
    assert evidence.errors == 0


@pytest.mark.parametrize("guessing", ["two-sided", "one-sided", "threshold"])
def test_ties_are_broken_by_the_seed_and_not_by_position(guessing: Any) -> None:
    n = 2000
    members = np.arange(n) < n // 2
    threshold = -1.0 if guessing == "threshold" else None
    counts = []
    for seed in range(60):
        evidence = ta.release(
            np.zeros(n), members, released=n // 4, guessing=ta.Guessing(guessing, threshold, seed)
        )
        again = ta.release(
            np.zeros(n), members, released=n // 4, guessing=ta.Guessing(guessing, threshold, seed)
        )
        assert evidence.errors_by_rank is not None
        assert np.array_equal(evidence.errors_by_rank, again.errors_by_rank)  # type: ignore[arg-type]
        counts.append(evidence.errors)
    # Useless scores are right half the time, whatever the order of the canaries.
    assert np.mean(counts) == pytest.approx(n / 8, abs=5 * np.sqrt(n / 16 / 60))
    assert len(set(counts)) > 10


@pytest.mark.parametrize("n", [4001, 4000])
def test_one_seed_for_coins_and_ties_tells_nothing(n: int) -> None:
    """If ties were drawn from the stream of the coins, constant scores would reveal them."""
    rates = []
    for seed in range(40):
        members = ta.draw_coins(n, seed=seed).members
        for guessing in ("two-sided", "one-sided"):
            evidence = ta.release(np.zeros(n), members, released=n, guessing=ta.Guessing(guessing, seed=seed))
            rates.append(evidence.top(n // 2).errors / (n // 2))
    assert np.mean(rates) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(80 * n / 2))


@given(st.integers(1, 60), st.integers(0, 2**32), st.data())
@settings(max_examples=60, deadline=None)
def test_releases_nest(n: int, seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    scores, members = rng.integers(0, 5, n).astype(float), rng.random(n) < 0.5
    released = data.draw(st.integers(1, n))
    evidence = ta.release(scores, members, released=n, guessing=ta.Guessing(seed=seed))
    part = evidence.top(released)
    assert part == ta.release(scores, members, released=released, guessing=ta.Guessing(seed=seed))
    assert evidence.errors - part.errors <= n - released
    assert part.top(n).errors == evidence.errors


def test_scores_join_bits_by_id() -> None:
    scores, score_ids = [3.0, 2.0, 1.0], ["c", "b", "a"]
    members, member_ids = [0, 1, 1], ["a", "b", "c"]
    joined = ta.release(
        scores, members, score_ids=score_ids, member_ids=member_ids, released=3, guessing="one-sided"
    )
    assert joined.errors_by_rank is not None
    assert joined.errors_by_rank.tolist() == [False, False, True]
    numbers = ta.release(
        scores,
        members,
        score_ids=np.array([3, 2, 1]),
        member_ids=np.array([1, 2, 3]),
        released=3,
        guessing="one-sided",
    )
    assert numbers.errors == joined.errors


GOOD: dict[str, Any] = {"scores": [1.0, 2.0], "members": [0, 1], "released": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [1.0, float("nan")]}, "scores=nan: expected numbers (first NaN at position 1)"),
        ({"scores": []}, "scores=array of shape (0,)"),
        ({"scores": [[1.0, 2.0]]}, "scores=array of shape (1, 2)"),
        ({"scores": ["a", "b"]}, "real numbers"),
        ({"scores": [[1.0, 2.0], [3.0]]}, "rows of equal length"),
        ({"scores": np.ma.array([1.0, 2.0], mask=[True, False])}, "without a mask"),
        ({"guessing": np.array([1.0, 2.0])}, "guessing="),
        ({"score_ids": [1, None], "member_ids": [1, 2]}, "score_ids=None: expected an id that is also in"),
        ({"score_ids": [[1], [2]], "member_ids": [1, 2]}, "score_ids=[1]: expected an id that is also in"),
        ({"score_ids": 5, "member_ids": [1, 2]}, "a sequence of ids"),
        ({"scores": [1 + 2j, 0]}, "real numbers"),
        ({"members": [0, 2]}, "members=2.0: expected 0 or 1 (position 1)"),
        ({"members": [0.5, 1]}, "members=0.5: expected 0 or 1 (position 0)"),
        ({"members": [0]}, "members=1 values: expected one per score, 2"),
        ({"members": [None, 1]}, "real numbers"),
        ({"released": 3}, "released=3: expected at most n=2"),
        ({"released": 0}, "released=0: expected an integer of at least 1"),
        ({"released": 1.0}, "released=1.0: expected an integer"),
        ({"released": True}, "released=True: expected an integer"),
        ({"guessing": "best"}, "guessing=best: expected one of two-sided, one-sided, threshold"),
        ({"guessing": "threshold"}, "threshold=None"),
        ({"score_ids": ["a", "b"]}, "member_ids=None: expected ids on both sides"),
        ({"score_ids": ["a", "a"], "member_ids": ["a", "b"]}, "score_ids=a: expected each id once"),
        ({"score_ids": ["a", "c"], "member_ids": ["a", "b"]}, "score_ids=c: expected an id that is also in"),
        ({"score_ids": ["a"], "member_ids": ["a", "b"]}, "score_ids=1 ids: expected one per value, 2"),
        (
            {"members": [0, 1, 1], "score_ids": ["a", "b"], "member_ids": ["a", "b", "c"]},
            "member_ids=c: expected an id with a score",
        ),
    ],
)
def test_bad_input_is_turned_away(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.release(**(GOOD | change))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("n", "released", "errors", "message"),
    [
        (0, 1, 0, "n=0"),
        (-5, 1, 0, "n=-5"),
        (10, 11, 0, "released=11: expected at most n=10"),
        (10, 5, 6, "errors=6: expected at most released=5"),
        (10, 5, -1, "errors=-1"),
        (10.5, 5, 1, "n=10.5"),
        (10, 5, 1.5, "errors=1.5"),
        (10, "5", 1, "released=5"),
        (10, 5, float("nan"), "errors=nan"),
        (10, 0, 0, "released=0"),
        (10**16, 5, 0, "n=10000000000000000: expected at most 1e+15"),
    ],
)
def test_impossible_counts(n: Any, released: Any, errors: Any, message: str) -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.Evidence(n=n, released=released, errors=errors)
    assert message in str(caught.value)


def test_a_count_too_long_to_print() -> None:
    with pytest.raises(ta.InputError) as caught:
        ta.Evidence(10**5000, 5, 0)
    assert "n=a int too long to print: expected at most" in str(caught.value)


def test_counts_cannot_be_released_anew() -> None:
    with pytest.raises(ta.InputError, match="made from counts"):
        ta.Evidence(10, 5, 1).top(3)


def test_errors_by_rank_must_fit_the_counts() -> None:
    with pytest.raises(ta.InputError, match="errors_by_rank=2 values"):
        ta.Evidence(3, 2, 1, np.array([True, False]))
    with pytest.raises(ta.InputError, match="errors=0"):
        ta.Evidence(2, 1, 0, np.array([True, False]))


def test_errors_by_rank_cannot_change_afterwards() -> None:
    mine = np.array([True, False, True])
    evidence = ta.Evidence(3, 1, 1, mine)
    mine[0] = False
    assert evidence.top(1).errors == 1
    assert evidence.errors_by_rank is not None
    with pytest.raises(ValueError, match="read-only"):
        evidence.errors_by_rank[0] = False


def test_how_guesses_were_made_is_checked() -> None:
    with pytest.raises(ta.InputError, match="guessing=1"):
        ta.Guessing("1")  # type: ignore[arg-type]
    with pytest.raises(ta.InputError, match="seed=-1"):
        ta.Guessing(seed=-1)
    for threshold in (0.5, float("inf")):
        with pytest.raises(ta.InputError, match="threshold="):
            ta.Guessing("two-sided", threshold)
    with pytest.raises(ta.InputError, match="threshold=inf"):
        ta.Guessing("threshold", float("inf"))


def test_numpy_integers_are_counts() -> None:
    evidence = ta.Evidence(np.int64(10), np.int32(5), np.uint8(1))  # type: ignore[arg-type]
    assert (type(evidence.n), evidence.released, evidence.errors) == (int, 5, 1)


@pytest.mark.parametrize("n", [0, -1, 1.5, "7"])
def test_bad_number_of_coins(n: Any) -> None:
    with pytest.raises(ta.InputError, match="n="):
        ta.draw_coins(n)
