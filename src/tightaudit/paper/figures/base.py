"""What every figure is made of: cells to compute, rows of data, a drawing."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tightaudit.support.registry import Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Row: TypeAlias = dict[str, Any]
"""One point of a line, as it goes into the CSV."""
Results: TypeAlias = Mapping[str, Any]
"""What came out of each cell, by its key."""

VERSION = 1
"""Part of every key: to be raised when a change makes results that were stored before wrong."""


@dataclass(frozen=True)
class Cell(ABC):
    """One piece of work, the same wherever it runs: its fields are all that decides its result."""

    kind: ClassVar[str]

    @property
    def setup(self) -> dict[str, Any]:
        """Everything the result depends on."""
        return {"kind": self.kind, "version": VERSION, **asdict(self)}

    @property
    def key(self) -> str:
        """A name that differs whenever the setup does."""
        text = json.dumps(self.setup, sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"

    @abstractmethod
    def compute(self) -> dict[str, Any]:
        """The result, as plain values."""


class PaperFigure(ABC):
    """One figure of the paper."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def cells(self) -> list[Cell]:
        """What has to be computed."""

    @abstractmethod
    def rows(self, results: Results) -> list[Row]:
        """The data of the figure, a row per point."""

    @abstractmethod
    def draw(self, rows: Sequence[Row]) -> Drawing:
        """The picture, from the data alone."""


FIGURES: Registry[type[PaperFigure]] = Registry("figure", folder="tightaudit.paper.figures")
