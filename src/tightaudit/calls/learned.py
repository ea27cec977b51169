"""A score that is learned: log-odds of the coin, from calls that are not audited afterwards.

By default a few classifiers are fitted to most of the calls that are for fitting, and the rest of them decide
between the classifiers. Whatever is learned, the audit is valid: it looks at other calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from tightaudit.support.errors import InputError
from tightaudit.support.extras import needs

if TYPE_CHECKING:
    from tightaudit.support.checks import BoolArray, FloatArray

_FOR_CHOOSING = 0.25
"""The share of the calls for fitting that decides between classifiers."""
_MOST_OUTPUTS = 4096
_LARGEST_ODDS = 40.0
_QUANTILES = 33
_FEWEST_RELEASED = 20
_MOST_FOR_ONE = 400_000
"""Calls that are enough to fit the slower classifiers."""


@dataclass(frozen=True)
class Learned:
    """A fitted classifier, as a score."""

    estimator: Any
    name: str

    def scores(self, features: FloatArray) -> FloatArray:
        """Log-odds that the second input was used."""
        found = _log_odds(self.estimator, features)
        if found.shape != (len(features),) or not np.isfinite(found).all():
            expected = "one finite log-odds or probability per call, from predict_proba or decision_function"
            raise InputError("estimator", f"scores of shape {found.shape} from {self.name}", expected)
        return found


def fitted(features: FloatArray, coins: BoolArray, estimator: Any | None, *, seed: int) -> Learned:
    """The estimator given, or the best of a few, fitted to these calls."""
    if estimator is not None:
        if not hasattr(estimator, "fit") or not (
            hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
        ):
            expected = "a classifier with fit, and predict_proba or decision_function"
            raise InputError("estimator", type(estimator).__name__, expected)
        estimator.fit(features, coins)
        return Learned(estimator, type(estimator).__name__)
    held = max(1, round(_FOR_CHOOSING * len(coins)))
    train, choose = slice(0, len(coins) - held), slice(len(coins) - held, None)
    best: tuple[float, Learned] | None = None
    for name, made in _usual(features[train], seed):
        made.fit(features[train], coins[train])
        learned = Learned(made, name)
        found = promise(learned.scores(features[choose]), coins[choose])
        if best is None or found > best[0]:
            best = found, learned
    assert best is not None
    return best[1]


def promise(scores: FloatArray, coins: BoolArray, *, planned: int | None = None) -> float:
    """The ε that scores promise, roughly: the best over how many of them are released, less errors.

    One error is that of what is seen here, the other that of the audit to come, of as many calls as planned.
    """
    order = np.argsort(-np.abs(scores), kind="stable")
    wrong = ((scores > 0) != coins)[order]
    errors, best, count = np.cumsum(wrong), 0.0, len(order)
    while count >= _FEWEST_RELEASED:
        rate = (errors[count - 1] + 1) / (count + 2)
        later = count if planned is None else count * planned / len(order)
        upper = rate + math.sqrt(rate * (1 - rate)) * (1 / math.sqrt(count) + 2 / math.sqrt(later))
        if upper < 0.5:
            best = max(best, math.log((1 - upper) / upper))
        count //= 2
    return best


def _usual(features: FloatArray, seed: int) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    if len(np.unique(features[: 4 * _MOST_OUTPUTS], axis=0)) <= _MOST_OUTPUTS // 4:
        found.append(("a table of frequencies", Frequencies()))
    with needs("learn", "a learned score"):
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression

    def boosted(leaves: int, rounds: int) -> Any:
        return HistGradientBoostingClassifier(
            max_iter=rounds,
            max_leaf_nodes=leaves,
            min_samples_leaf=max(20, len(features) // 500),
            l2_regularization=1.0,
            early_stopping=False,
            random_state=seed % 2**32,
        )

    found.append(("gradient boosting", _Fewer(boosted(15, 60))))
    found.append(("gradient boosting of stumps", _Fewer(boosted(2, 100))))
    found.append(("logistic regression on ranks", _Fewer(_OnRanks(LogisticRegression(max_iter=200)))))
    return found


class _Fewer:
    """An estimator that is fitted to no more calls than it needs."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def fit(self, features: FloatArray, coins: BoolArray) -> _Fewer:
        self._estimator.fit(features[:_MOST_FOR_ONE], coins[:_MOST_FOR_ONE])
        return self

    def decision_function(self, features: FloatArray) -> FloatArray:
        return _log_odds(self._estimator, features)


class Frequencies:
    """For mechanisms with few outputs: how often each came from either input."""

    def fit(self, features: FloatArray, coins: BoolArray) -> Frequencies:
        keys = _keys(features)
        known, place = np.unique(keys, return_inverse=True)
        inside = np.bincount(place, weights=coins, minlength=known.size)
        outside = np.bincount(place, weights=~coins, minlength=known.size)
        # An output that was hardly seen has odds near 1: otherwise chance would make it a sure guess.
        errors = np.sqrt(1 / (inside + 0.5) + 1 / (outside + 0.5))
        odds = np.log((inside + 0.5) / (outside + 0.5))
        self._known = known
        self._odds = np.sign(odds) * np.maximum(np.abs(odds) - errors, 0.0) + 1e-3 * odds
        return self

    def decision_function(self, features: FloatArray) -> FloatArray:
        keys = _keys(features)
        at = np.minimum(np.searchsorted(self._known, keys), self._known.size - 1)
        return np.where(self._known[at] == keys, self._odds[at], 0.0)


class _OnRanks:
    """A linear classifier on each column's rank among the values that were fitted, which outliers leave."""

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier

    def fit(self, features: FloatArray, coins: BoolArray) -> _OnRanks:
        edges = np.quantile(features[:100_000], np.linspace(0, 1, _QUANTILES), axis=0)
        self._edges = [np.unique(column) for column in edges.T]
        ranks = self._ranks(features)
        self._mean, self._spread = ranks.mean(axis=0), ranks.std(axis=0)
        self._spread[self._spread == 0] = 1.0
        self._classifier.fit(self._scaled(features), coins)
        return self

    def decision_function(self, features: FloatArray) -> FloatArray:
        return np.asarray(self._classifier.decision_function(self._scaled(features)))

    def _scaled(self, features: FloatArray) -> FloatArray:
        return np.asarray((self._ranks(features) - self._mean) / self._spread)

    def _ranks(self, features: FloatArray) -> FloatArray:
        """For each column its rank, whether that is above the middle, and the value in the usual range."""
        found = []
        for column, edges in zip(features.T, self._edges, strict=True):
            rank = np.interp(column, edges, np.linspace(-1, 1, edges.size)) if edges.size > 1 else 0 * column
            found += [rank, np.sign(rank), np.clip(column, edges[min(1, edges.size - 1)], edges[-2:][0])]
        return np.column_stack(found)


def _keys(features: FloatArray) -> Any:
    rows = np.ascontiguousarray(features)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)


def _log_odds(estimator: Any, features: FloatArray) -> FloatArray:
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(features), dtype=np.float64)
    chance = np.asarray(estimator.predict_proba(features), dtype=np.float64)
    if chance.ndim == 2:
        chance = chance[:, -1]
    with np.errstate(divide="ignore"):
        return np.clip(np.log(chance) - np.log1p(-chance), -_LARGEST_ODDS, _LARGEST_ODDS)


def smallest_visible(calls: int, level: float) -> float:
    """The ε that so many calls could just show if every one of them counts: about 3.3/√n at 5%.

    >>> round(smallest_visible(10_000, 0.05), 4)
    0.0329
    """
    return float(-2 * ndtri(level) / math.sqrt(calls))
