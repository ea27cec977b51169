"""Claims: trade-off functions with their privacy curves and channels, and families of them."""

from __future__ import annotations

from tightaudit.tradeoffs.registry import TRADEOFFS

TRADEOFFS.discover(__name__, list(__path__))
