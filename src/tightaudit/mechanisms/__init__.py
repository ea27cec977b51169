"""Mechanisms to audit: each names the claim it truly satisfies and whether outcomes are independent."""

from __future__ import annotations

from tightaudit.mechanisms.base import MECHANISMS

MECHANISMS.discover(__name__, list(__path__))
