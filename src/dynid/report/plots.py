"""Plots as plain trees: series, panels, figures. `templates/plots.js` draws them in pages, `svg.py` pictures.

A figure has panels side by side; panels with one `link` are zoomed together. Colours are names of the page's
palette (Okabe and Ito's: distinguishable with any colour vision), so that a page can be light or dark.
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.report.numbers import plural
from dynid.report.page import render, script_json, scripted_page

PALETTE = ("blue", "orange", "green", "red", "purple", "sky", "grey", "ink")
_LEVELS = 32767  # of a packed number on each side of the middle; -32768 is NaN
Values = Float[Array, "n"] | Sequence[float] | str | Mapping[str, Any]


def packed(values: Float[Array, "n"] | Sequence[float]) -> dict[str, Any]:
    """A series in two bytes per number: 1.5e-5 of its range, far below a pixel; NaN interrupts a line."""
    x = np.asarray(values, dtype=float)
    finite = x[np.isfinite(x)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    middle, scale = 0.5 * (low + high), (high - low) / (2 * _LEVELS) or 1.0
    steps = np.where(np.isfinite(x), np.rint((np.nan_to_num(x, nan=middle) - middle) / scale), -_LEVELS - 1)
    raw = np.clip(steps, -_LEVELS - 1, _LEVELS).astype("<i2").tobytes()
    return {"q": base64.b64encode(raw).decode(), "o": middle, "s": scale}


def unpacked(series: Mapping[str, Any]) -> Float[Array, "n"]:
    """The numbers of a packed series; NaN where a line is interrupted."""
    steps = np.frombuffer(base64.b64decode(series["q"], validate=True), "<i2")
    return np.where(steps < -_LEVELS, np.nan, series["o"] + series["s"] * steps)


def _plain(values: Values) -> Any:
    """Packed if it is long; a name of a shared series, or what is packed already, stays."""
    if isinstance(values, str | Mapping):
        return values
    return (
        packed(values) if len(values) > 24 else [x if math.isfinite(x) else None for x in map(float, values)]
    )


def line(name: str, x: Values, y: Values, colour: str = "blue", **more: Any) -> dict[str, Any]:
    """A curve; `width`, `dash`, `dots` and `quiet` (not in the legend) are optional."""
    return {"kind": "line", "name": name, "x": _plain(x), "y": _plain(y), "colour": colour, **more}


def band(
    name: str, x: Values, low: Values, high: Values, colour: str = "blue", **more: Any
) -> dict[str, Any]:
    """The space between two curves."""
    tree = {"kind": "band", "name": name, "x": _plain(x), "low": _plain(low), "high": _plain(high)}
    return {**tree, "colour": colour, **more}


def points(name: str, x: Values, y: Values, colour: str = "blue", **more: Any) -> dict[str, Any]:
    """Marks; `half` (of an interval along x), `symbol`, `size`, `open` and `tips` are optional."""
    if "half" in more:
        more["half"] = _plain(more["half"])
    return {"kind": "points", "name": name, "x": _plain(x), "y": _plain(y), "colour": colour, **more}


def stack(x: Values, parts: Sequence[tuple[str, Values, str]]) -> dict[str, Any]:
    """Parts (name, values, colour) of a sum: positive ones stacked upwards, negative ones downwards."""
    entries = [{"name": name, "y": _plain(y), "colour": colour} for name, y, colour in parts]
    return {"kind": "stack", "x": _plain(x), "parts": entries}


def bars(name: str, values: Sequence[float], colour: str = "blue", **more: Any) -> dict[str, Any]:
    """One bar per name of the axis; `flat`: along x, `colours`: of each."""
    places, sizes = [float(i) for i in range(len(values))], _plain(list(map(float, values)))
    at = {"x": sizes, "y": places} if more.get("flat") else {"x": places, "y": sizes}
    return {"kind": "bars", "name": name, "colour": colour, **at, **more}


def panel(
    series: Sequence[Mapping[str, Any]],
    title: str = "",
    x: str | Mapping[str, Any] = "",
    y: str | Mapping[str, Any] = "",
    **more: Any,
) -> dict[str, Any]:
    """One coordinate system; an axis is its title, or a tree with `title`, `log`, `range`, `names`."""
    axes = {k: {"title": v} if isinstance(v, str) else dict(v) for k, v in (("x", x), ("y", y))}
    return {"title": title, **axes, "series": list(series), **more}


@dataclass(frozen=True, eq=False)
class Figure:
    """One figure: pages include it with zoom and downloads, a notebook shows it as a picture.

    Attributes:
        anchor: Its id in a page; that of its data is `ANCHOR-spec`.
        spec: Panels and series as a tree of names and numbers.
        label: Description for screen readers.
        caption: What is shown, and how to read it.
        table: Whether a page has a table of its numbers.
    """

    anchor: str
    spec: Mapping[str, Any]
    label: str
    caption: str
    table: bool = True

    def __html__(self) -> str:
        """As part of a page, all text escaped."""
        return str(render("figure.html", figure=self, spec=script_json(self.spec)))

    @property
    def svg(self) -> str:
        """The picture as SVG, in the colours of the light page."""
        from dynid.report.svg import svg_text

        return svg_text(self.spec, self.label)

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture and its caption."""
        return str(render("picture.html", figure=self))

    def __repr__(self) -> str:
        """One line."""
        return f"Figure({self.label!r}, {plural(len(self.spec['panels']), 'panel')})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the figure: `.svg` a picture, `.html` a page of its own with zoom and downloads."""
        file, ending = Path(path), Path(path).suffix.lower()
        if ending not in (".svg", ".html"):
            raise InputError(
                f"figures are written as .svg or .html, not as '{file.suffix}'",
                file=file,
                remedy=f"save {file.stem}.svg, which browsers and office programs show; Inkscape or"
                " `rsvg-convert` make a .png of it",
            )
        text = self.svg if ending == ".svg" else scripted_page("figure_page.html", (), figure=self)
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", file=file) from error


def figure(
    anchor: str,
    panels: Sequence[Mapping[str, Any]],
    label: str,
    caption: str,
    *,
    columns: int = 1,
    table: bool = True,
    **more: Any,
) -> Figure:
    """A figure of panels.

    Args:
        anchor, label, caption, table: Attributes of `Figure`.
        columns: Panels side by side, if there is room.
        more: `link` (panels zoomed together), `shared` (series by name), `borrows` (id of the data that
            has them), `fixed` (no zoom).
    """
    spec = {"columns": min(columns, len(panels)), "panels": list(panels), **more}
    return Figure(anchor, spec, label, caption, table)
