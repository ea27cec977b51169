"""Small plots as inline SVG.

A report has to follow the reader's colour scheme and needs no plotting library for it: the colours here are
classes that the page's style sheet fills in. Every text passes through an XML library, escaped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np

from tightaudit.support.checks import FloatArray

WIDTH, HEIGHT = 460.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 26.0, 12.0, 44.0
_TICKS = 5
_LEGEND_LINE = 17.0


@dataclass(frozen=True)
class Axis:
    """One direction of a plot: its label, its ends, and whether equal steps are equal ratios."""

    label: str
    low: float
    high: float
    logarithmic: bool = False

    def position(self, values: FloatArray) -> FloatArray:
        """Where values lie between the ends, as fractions."""
        low, high = self.low, self.high
        if self.logarithmic:
            values, low, high = np.log(values), math.log(low), math.log(high)
        return (np.asarray(values) - low) / (high - low)

    def ticks(self) -> FloatArray:
        """Round numbers along the axis.

        >>> Axis("ε", 0.0, 4.4).ticks()
        array([0., 1., 2., 3., 4.])
        """
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            powers = np.arange(first, last + 1, max(1, (last - first) // _TICKS))
            return np.asarray(10.0**powers, dtype=np.float64)
        rough = (self.high - self.low) / _TICKS
        scale = 10.0 ** math.floor(math.log10(rough))
        step = next(scale * round_ for round_ in (1, 2, 5, 10) if scale * round_ >= rough * 0.999)
        count = np.arange(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)
        return np.asarray(step * count, dtype=np.float64)


@dataclass
class Plot:
    """A plot that is filled mark by mark; `name` is its text for those who cannot see it.

    >>> plot = Plot("A line", Axis("x", 0, 1), Axis("y", 0, 1))
    >>> plot.line([0, 1], [0, 1], "one", "<b>")
    >>> "&lt;b&gt;" in plot.to_svg()
    True
    """

    name: str
    x: Axis
    y: Axis
    _marks: list[ElementTree.Element] = field(default_factory=list)
    _legend: list[tuple[str, str, str]] = field(default_factory=list)

    def line(self, x: Sequence[float], y: Sequence[float], style: str, label: str | None = None) -> None:
        """Points joined by a line."""
        self._mark("polyline", f"line {style}", points=self._points(x, y))
        if label is not None:
            self._legend.append(("line", f"line {style}", label))

    def area(self, x: Sequence[float], y: Sequence[float], style: str, label: str | None = None) -> None:
        """A filled shape with the given corners."""
        self._mark("polygon", f"area {style}", points=self._points(x, y))
        if label is not None:
            self._legend.append(("area", f"area {style}", label))

    def dot(self, x: float, y: float, style: str, name: str | None = None) -> None:
        """One marked point, its name beside it if it belongs to no line."""
        across, down = (float(place[0]) for place in self._place([x], [y]))
        self._mark("circle", f"dot {style}", cx=_short(across), cy=_short(down), r="5")
        if name is not None:
            side, anchor = (-10, "end") if across > WIDTH / 2 else (10, "start")
            place = {"x": _short(across + side), "y": _short(down + 4), "text-anchor": anchor}
            self._mark("text", "name", **place).text = name

    def to_svg(self) -> str:
        """The plot as one SVG element."""
        lines = len(self._legend)
        height = HEIGHT + _LEGEND_LINE * lines
        box = f"0 0 {_short(WIDTH)} {_short(height)}"
        root = ElementTree.Element("svg", {"viewBox": box, "role": "img", "class": "plot"})
        root.set("xmlns", "http://www.w3.org/2000/svg")
        ElementTree.SubElement(root, "title").text = self.name
        self._draw_axes(root)
        root.extend(self._marks)
        for at, entry in enumerate(self._legend):
            self._draw_legend(root, HEIGHT + _LEGEND_LINE * at, *entry)
        return ElementTree.tostring(root, encoding="unicode")

    def _mark(self, tag: str, style: str, **attributes: str) -> ElementTree.Element:
        self._marks.append(ElementTree.Element(tag, {"class": style, **attributes}))
        return self._marks[-1]

    def _place(self, x: Sequence[float], y: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        across = _LEFT + self.x.position(np.asarray(x, dtype=float)) * (WIDTH - _LEFT - _RIGHT)
        up = self.y.position(np.asarray(y, dtype=float)) * (HEIGHT - _TOP - _BOTTOM)
        return across, HEIGHT - _BOTTOM - up

    def _points(self, x: Sequence[float], y: Sequence[float]) -> str:
        return " ".join(f"{_short(a)},{_short(b)}" for a, b in zip(*self._place(x, y), strict=True))

    def _draw_axes(self, root: ElementTree.Element) -> None:
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        for value in self.x.ticks():
            across = _short(self._place([value], [self.y.low])[0][0])
            _line(root, "grid", across, _short(_TOP), across, _short(bottom))
            _text(root, "tick", across, _short(bottom + 16), _number(value), "middle")
        for value in self.y.ticks():
            down = self._place([self.x.low], [value])[1][0]
            _line(root, "grid", _short(_LEFT), _short(down), _short(right), _short(down))
            _text(root, "tick", _short(_LEFT - 6), _short(down + 4), _number(value), "end")
        _text(root, "axis", _short((_LEFT + right) / 2), _short(HEIGHT - 6), self.x.label, "middle")
        label = _text(root, "axis", "14", _short((_TOP + bottom) / 2), self.y.label, "middle")
        label.set("transform", f"rotate(-90 14 {_short((_TOP + bottom) / 2)})")

    def _draw_legend(self, root: ElementTree.Element, down: float, kind: str, style: str, label: str) -> None:
        middle = _short(down + 7)
        if kind == "line":
            _line(root, style, _short(_LEFT), middle, _short(_LEFT + 26), middle)
        else:
            corner = {"x": _short(_LEFT), "y": _short(down + 1), "width": "26", "height": "12"}
            ElementTree.SubElement(root, "rect", {"class": style, **corner})
        _text(root, "legend", _short(_LEFT + 34), _short(down + 11), label, "start")


def _line(root: ElementTree.Element, style: str, x1: str, y1: str, x2: str, y2: str) -> None:
    ElementTree.SubElement(root, "line", {"class": style, "x1": x1, "y1": y1, "x2": x2, "y2": y2})


def _text(
    root: ElementTree.Element, style: str, x: str, y: str, text: str, anchor: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(root, "text", {"class": style, "x": x, "y": y, "text-anchor": anchor})
    element.text = text
    return element


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.6g}".replace("-", "−")


def _short(value: float) -> str:
    return f"{value:.1f}"
