"""The figures of the paper, one module each, drawn from data computed here."""

from tightaudit.figures.base import FIGURES

FIGURES.discover(__name__, list(__path__))

__all__ = ["FIGURES"]
