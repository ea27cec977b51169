"""Where claims are found by name."""

from __future__ import annotations

from tightaudit.registry import Registry
from tightaudit.tradeoffs.base import TradeOff

TRADEOFFS: Registry[type[TradeOff]] = Registry("null", plugins="tightaudit.tradeoffs")
