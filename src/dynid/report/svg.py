"""A figure as an SVG picture for notebooks and papers, drawn as `templates/plots.js` draws it in pages.

Colours are those of the light page (`templates/style.css`). Coordinates are pixels, x to the right, y down.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.report.axes import Tree, labelled, range_x, range_y, unpacked
from dynid.report.page import source

_WIDTH = 940  # of a picture
_CHAR, _FONT = 6.9, 11.5  # width of a letter, and its height
_GAP, _TITLE, _LEGEND = 14, 22, 26  # between panels, above a panel, above all


@cache
def colours() -> dict[str, str]:
    """Palette of the light page: name -> hexadecimal colour."""
    light = source("style.css").split("@media")[0]
    return dict(re.findall(r"--(?:p-)?([a-z]+): (#[0-9a-f]{3,6});", light))


def svg_text(spec: Tree, label: str) -> str:
    """The picture of a figure.

    Args:
        spec: Its panels, and the series that they share.
        label: Description for screen readers.
    """
    n = max(1, int(spec.get("columns", 1)))
    width = (_WIDTH - _GAP * (n - 1)) / n
    panels = [_Panel.of(item, width, spec.get("shared", {})) for item in spec["panels"]]
    keys = _legend(spec["panels"])
    mark = hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:10]
    parts, y = list(_keys(keys)) if keys else [], _LEGEND if keys else 0.0
    for start in range(0, len(panels), n):
        row = panels[start : start + n]
        title = _TITLE if any(cell.tree.get("title") for cell in row) else 0.0
        for k, panel in enumerate(row):
            x, drawn = k * (width + _GAP), "".join(panel.drawn(f"{mark}-{start + k}"))
            if panel.tree.get("title"):
                badge = f" ({panel.tree['badge']})" if panel.tree.get("badge") else ""
                parts.append(_text(x + 4, y + 15, panel.tree["title"] + badge, "ink", weight=600))
            parts.append(f'<g transform="translate({x:.1f} {y + title:.1f})">{drawn}</g>')
        y += title + max(cell.height for cell in row) + _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y:.0f}" width="{_WIDTH}" role="img" '
        f'aria-label={quoteattr(label)} font-family="system-ui, sans-serif" font-size="{_FONT}" '
        f'style="max-width:100%;height:auto"><rect width="100%" height="100%" fill="{colours()["paper"]}"/>'
    )
    return head + "".join(parts) + "</svg>\n"


@dataclass(frozen=True)
class _Panel:
    """One coordinate system with its places in pixels; numbers of logarithmic axes are decades."""

    tree: Tree
    series: list[dict[str, Any]]
    rx: tuple[float, float]
    ry: tuple[float, float]
    width: float
    left: float
    inner_x: float
    inner_y: float
    bottom: float
    slanted: bool

    top = 8.0

    @classmethod
    def of(cls, tree: Tree, width: float, shared: Tree) -> _Panel:
        x, y = tree["x"], tree["y"]
        series = [unpacked(curve, x, y, shared) for curve in tree["series"]]
        rx = range_x(x, series)
        ry = range_y(y, series, rx, tree.get("marks", ()))
        rows = len(y.get("names", ()))
        square = min(width, max(620.0, rows * 12.0 + 110.0))
        height = square if tree.get("square") else float(tree.get("height", 190))
        height = max(90.0, rows * tree.get("row", 18) + 60.0) if rows and not tree.get("square") else height
        names = x.get("names", ())
        longest = max([1, *(len(label) for _, label in labelled(y, ry, height / 45, 5))])
        left = min((20.0 if y.get("title") else 6.0) + longest * _CHAR + 8.0, 0.42 * width)
        inner = width - left - 12.0
        slanted = any(len(name) * _CHAR > inner / len(names) for name in names)
        most = min(14, max(len(name) for name in names)) if slanted else 0
        bottom = (most * _CHAR * 0.8 + 14.0 if slanted else 20.0) + (17.0 if x.get("title") else 0.0)
        inner_y = max(40.0, height - cls.top - bottom)
        return cls(tree, series, rx, ry, width, left, inner, inner_y, bottom, slanted)

    @property
    def height(self) -> float:
        """In pixels."""
        return self.top + self.inner_y + self.bottom

    def px(self, v: Any) -> Any:
        return self.left + (v - self.rx[0]) / (self.rx[1] - self.rx[0]) * self.inner_x

    def py(self, v: Any) -> Any:
        return self.top + (self.ry[1] - v) / (self.ry[1] - self.ry[0]) * self.inner_y

    def drawn(self, name: str) -> Iterator[str]:
        """Elements of the panel, grid first.

        Args:
            name: Unlike that of any other panel of a page.
        """
        x, y, right, base = (
            self.tree["x"],
            self.tree["y"],
            self.left + self.inner_x,
            self.top + self.inner_y,
        )
        plain = not self.tree.get("square")
        for v, label in labelled(y, self.ry, max(3.0, self.height / 45), 5):
            if plain and "names" not in y:
                yield _line(self.left, self.py(v), right, self.py(v), "grid")
            yield _text(self.left - 6, self.py(v) + 4, _fitted(label, self.left - 10), "muted", "end")
        for v, label in labelled(x, self.rx, max(2.0, min(9.0, self.inner_x // 62)), 6):
            at = self.px(v)
            if plain and "names" not in x:
                yield _line(at, self.top, at, base, "grid")
            if self.slanted:
                turn = f' transform="rotate(-55 {at + 3:.1f} {base + 9:.1f})"'
                yield _text(at + 3, base + 9, _fitted(label, 14 * _CHAR), "muted", "end", more=turn)
            else:
                inside = min(at, self.width - len(label) * _CHAR / 2)
                yield _text(inside, base + 15, label, "muted", "middle")
        if x.get("title"):
            yield _text(self.left + self.inner_x / 2, self.height - 4, x["title"], "muted", "middle")
        if y.get("title"):
            turn = f' transform="translate(12 {self.top + self.inner_y / 2:.1f}) rotate(-90)"'
            yield _text(0, 0, _fitted(y["title"], self.inner_y + 40), "muted", "middle", more=turn)
        clip = f"clip-{name}"
        box = f'x="{self.left:.1f}" y="{self.top:.1f}" width="{self.inner_x:.1f}" height="{self.inner_y:.1f}"'
        yield f'<clipPath id="{clip}"><rect {box}/></clipPath><g clip-path="url(#{clip})">'
        yield from self._guides(right, base)
        for curve in self.series:
            yield from _KINDS[curve["kind"]](self, curve)
        yield f'</g><rect {box} fill="none" stroke="{colours()["axis"]}"/>'

    def _guides(self, right: float, base: float) -> Iterator[str]:
        for mark in self.tree.get("marks", ()):
            if "band" in mark:
                low, high = (self.py(v) for v in mark["band"])
                yield _rect(
                    self.left, high, self.inner_x, max(0.0, low - high), mark.get("colour"), opacity=0.13
                )
            if "x" in mark:
                at = self.px(mark["x"])
                yield _line(at, self.top, at, base, mark.get("colour"), 1.3, dash="3 3")
            if "y" in mark:
                at = self.py(mark["y"])
                yield _line(
                    self.left, at, right, at, mark.get("colour"), 1.2, "" if mark.get("solid") else "4 3"
                )
        y = self.tree["y"]
        if "names" not in y and not y.get("log") and self.ry[0] < 0.0 < self.ry[1]:
            yield _line(self.left, self.py(0.0), right, self.py(0.0), "axis")


def _legend(panels: Sequence[Tree]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for curve in (curve for panel in panels for curve in panel["series"] if not curve.get("quiet")):
        for part in curve.get("parts", [curve]):
            if part.get("name"):
                labels.setdefault(part["name"], part.get("colour", "blue"))
    return labels if len(labels) > 1 else {}


def _keys(keys: Mapping[str, str]) -> Iterator[str]:
    x = 4.0
    for name, colour in keys.items():
        yield _rect(x, 6, 12, 10, colour)
        yield _text(x + 17, 15, name, "ink")
        x += 17 + len(name) * _CHAR + 20


def _fitted(label: str, room: float) -> str:
    most = max(3, int(room / _CHAR))
    return label if len(label) <= most else label[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _colour(name: str | None) -> str:
    return colours()[name or "blue"]


def _text(
    x: float, y: float, text: str, colour: str, anchor: str = "start", weight: int = 400, more: str = ""
) -> str:
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_colour(colour)}"'
    return f"<text {place}{bold}{more}>{escape(text)}</text>"


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str | None, width: float = 1.0, dash: str = ""
) -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{_colour(colour)}" stroke-width="{width}"{dashes}/>'


def _rect(x: float, y: float, w: float, h: float, colour: str | None, opacity: float = 1.0) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    return f'<rect {place} fill="{_colour(colour)}" opacity="{opacity}"/>'


def _run(x: Float[Array, "n"], y: Float[Array, "n"], pen: str = "M") -> str:
    return "".join(f"{'L' if k else pen}{a:.1f} {b:.1f}" for k, (a, b) in enumerate(zip(x, y, strict=True)))


def _pieces(*columns: Float[Array, "n"]) -> Iterator[slice]:
    """Runs of samples at which all columns are finite."""
    fine = np.concatenate([[False], np.isfinite(np.array(columns)).all(axis=0), [False]])
    edges = np.flatnonzero(np.diff(fine.astype(int)))
    yield from (slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True))


def _curve(panel: _Panel, series: Tree) -> Iterator[str]:
    x, y = panel.px(series["x"]), panel.py(series["y"])
    d = "".join(_run(x[k], y[k]) for k in _pieces(x, y))
    dash = ' stroke-dasharray="5 4"' if series.get("dash") else ""
    stroke = f'stroke="{_colour(series.get("colour"))}" stroke-width="{series.get("width", 1.5)}"{dash}'
    yield f'<path d="{d}" fill="none" stroke-linejoin="round" {stroke}/>'
    if series.get("dots"):
        yield from (
            _symbol("circle", a, b, 2.6, f'fill="{_colour(series.get("colour"))}"') for a, b in _at(x, y)
        )


def _area(panel: _Panel, x: Any, low: Any, high: Any, colour: str | None, opacity: float) -> str:
    x, low, high = panel.px(x), panel.py(low), panel.py(high)
    d = "".join(
        _run(x[k], high[k]) + _run(x[k][::-1], low[k][::-1], "L") + "Z" for k in _pieces(x, low, high)
    )
    return f'<path d="{d}" fill="{_colour(colour)}" opacity="{opacity}"/>'


def _band(panel: _Panel, series: Tree) -> Iterator[str]:
    yield _area(panel, series["x"], series["low"], series["high"], series.get("colour"), 0.25)


def _stack(panel: _Panel, series: Tree) -> Iterator[str]:
    up, down = np.zeros(len(series["x"])), np.zeros(len(series["x"]))
    for part in series["parts"]:
        y = part["y"]
        more = np.maximum(np.nan_to_num(y), 0.0), np.minimum(np.nan_to_num(y), 0.0)
        low, high = np.where(y >= 0.0, up, down + more[1]), np.where(y >= 0.0, up + more[0], down)
        up, down = up + more[0], down + more[1]
        known = np.where(np.isfinite(y), 0.0, np.nan)
        yield _area(panel, series["x"], low + known, high + known, part["colour"], 0.72)


def _at(x: Float[Array, "n"], y: Float[Array, "n"]) -> Iterator[tuple[float, float]]:
    fine = np.isfinite(x) & np.isfinite(y)
    yield from zip(x[fine].tolist(), y[fine].tolist(), strict=True)


def _points(panel: _Panel, series: Tree) -> Iterator[str]:
    colour, size = _colour(series.get("colour")), float(series.get("size", 4))
    style = (
        f'fill="none" stroke="{colour}" stroke-width="1.6"'
        if series.get("open")
        else f'fill="{colour}" stroke="{colour}" opacity="{series.get("opacity", 1)}"'
    )
    if "half" in series:
        for x, y, half in zip(series["x"], panel.py(series["y"]), series["half"], strict=True):
            if np.isfinite(x + y + half):
                yield _line(panel.px(x - half), y, panel.px(x + half), y, series.get("colour"), 3.0)
    for x, y in _at(panel.px(series["x"]), panel.py(series["y"])):
        yield _symbol(series.get("symbol", ""), x, y, size, style)


def _symbol(kind: str, x: float, y: float, r: float, style: str) -> str:
    if kind == "square":
        return f'<rect x="{x - r:.1f}" y="{y - r:.1f}" width="{2 * r:.1f}" height="{2 * r:.1f}" {style}/>'
    corners: dict[str, tuple[list[tuple[float, float]], str]] = {
        "triangle": ([(0, -r), (r, r), (-r, r)], "Z"),
        "diamond": ([(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)], "Z"),
        "bar": ([(0, -r - 2), (0, r + 2)], ""),
    }
    if kind == "cross":
        both = np.array([-r, r])
        return f'<path d="{_run(x + both, y + both)}{_run(x + both, y - both)}" {style}/>'
    if kind in corners:
        places, end = corners[kind]
        around = np.array([x, y]) + np.array(places)
        return f'<path d="{_run(around[:, 0], around[:, 1])}{end}" {style}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {style}/>'


def _bars(panel: _Panel, series: Tree) -> Iterator[str]:
    for k, (x, y) in enumerate(zip(series["x"], series["y"], strict=True)):
        colour = series["colours"][k] if "colours" in series else series.get("colour")
        if series.get("flat"):
            zero = panel.px(panel.rx[0] if panel.tree["x"].get("log") else 0.0)
            end = panel.px(x)
            yield _rect(min(zero, end), panel.py(y) - 6, max(1.0, abs(end - zero)), 12, colour)
        else:
            zero, end = panel.py(0.0), panel.py(y)
            w = max(2.0, 0.7 * abs(panel.px(1.0) - panel.px(0.0)))
            yield _rect(panel.px(x) - w / 2, min(zero, end), w, max(1.0, abs(end - zero)), colour)


def _heat(panel: _Panel, series: Tree) -> Iterator[str]:
    n = len(panel.tree["y"]["names"])
    w, h = panel.inner_x / (n + 0.2), panel.inner_y / (n + 0.2)
    for k in np.flatnonzero(np.abs(np.nan_to_num(series["values"])) > 0.02):  # fainter ones are not visible
        v = float(series["values"][k])
        x, y = panel.px(k % n - 0.5), panel.py(k // n - 0.5)
        yield _rect(x, y, w, h, "red" if v > 0.0 else "blue", round(min(1.0, abs(v)), 2))


_KINDS: dict[str, Callable[[_Panel, Tree], Iterator[str]]] = {
    "line": _curve,
    "band": _band,
    "stack": _stack,
    "points": _points,
    "bars": _bars,
    "heat": _heat,
}
