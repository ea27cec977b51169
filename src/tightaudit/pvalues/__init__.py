"""P-values: one method per module, each with the beliefs it rests on."""

from __future__ import annotations

from tightaudit.pvalues.base import METHODS

METHODS.discover(__name__, list(__path__))
