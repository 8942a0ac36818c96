"""A figure in the page: its data as JSON that no name in it can break out of."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array

if TYPE_CHECKING:
    from markupsafe import Markup

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, GRID, MUTED, PALE = "#1f2933", "#e3e8ee", "#52606d", "#b4c6d8"
# Okabe and Ito's palette: distinguishable with any colour vision, and in print by shape or weight.
BLUE, ORANGE, RED, GREEN, GREY = "#0072b2", "#e69f00", "#d55e00", "#009e73", "#8a94a0"


def figure(
    anchor: str, data: Sequence[dict[str, Any]], layout: dict[str, Any], label: str, caption: str
) -> Markup:
    """The figure as HTML; `label` is its description for screen readers."""
    from dynid.report.template import render

    spec = {"data": list(data), "layout": _LAYOUT | layout}
    height = layout["height"]
    return render(
        "figure.html", anchor=anchor, spec=script_json(spec), height=height, label=label, caption=caption
    )


def script_json(value: Any) -> Markup:
    """`value` as JSON for a script element: no character in it can end the element."""
    from markupsafe import Markup

    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # escapes all but ASCII
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 (made harmless above)


def plot_text(text: str) -> str:
    """A name escaped for plotly.js, which interprets tags in labels as formatting."""
    return html.escape(text, quote=False)


def packed(values: Float[Array, "n"]) -> dict[str, str]:
    """A series in single precision, four bytes per number; NaN interrupts the line."""
    raw = np.asarray(values, dtype="<f4").tobytes()
    return {"dtype": "f4", "bdata": base64.b64encode(raw).decode()}


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """An axis in the common style."""
    style: dict[str, Any] = {
        "gridcolor": GRID,
        "zerolinecolor": "#c3ccd6",
        "linecolor": "#c3ccd6",
        "ticks": "outside",
        "tickcolor": "#c3ccd6",
        "automargin": True,
        "title": {"text": plot_text(title), "standoff": 6, "font": {"size": 12, "color": MUTED}},
    }
    return style | more


_LAYOUT: dict[str, Any] = {
    "font": {"family": FONT, "size": 12, "color": INK},
    "paper_bgcolor": "white",
    "plot_bgcolor": "white",
    "hovermode": "closest",
    "hoverlabel": {"namelength": -1},
    "margin": {"l": 60, "r": 16, "t": 40, "b": 48},
}
