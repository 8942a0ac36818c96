"""Pictures of a set of free motions: tensions against their limits, and swings about rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.report.page import BLUE, ORANGE, axis, figure, packed, plot_text

if TYPE_CHECKING:
    from markupsafe import Markup

_POINTS = 500
_ROW = 110  # pixels


def tension_figure(
    cables: Sequence[str], pulls: Float[Array, "n k c"], limits: Float[Array, "c 2"]
) -> Markup:
    """Range of the tension of every cable in every motion, with the limits as lines."""
    data: list[dict[str, Any]] = []
    k = pulls.shape[1]
    for i, name in enumerate(cables):
        place = np.arange(1, k + 1) + 0.16 * (i - 0.5 * (len(cables) - 1))
        low, high = pulls[:, :, i].min(axis=0), pulls[:, :, i].max(axis=0)
        data.append(
            {
                "type": "bar",
                "name": plot_text(name),
                "x": packed(place),
                "y": packed(high - low),
                "base": packed(low),
                "width": 0.13,
                "hovertemplate": f"{plot_text(name)}: %{{base:.4g}} to %{{y:.4g}} N<extra></extra>",
            }
        )
    bounds = {float(x) for x in limits.ravel() if np.isfinite(x)}
    lines = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": {"color": ORANGE}}
        for y in sorted(bounds)
    ]
    layout = {
        "height": 320,
        "barmode": "overlay",
        "shapes": lines,
        "xaxis": axis("motion", dtick=1),
        "yaxis": axis("tension [N]"),
    }
    return figure("tensions", data, layout, "tensions of all motions", "Tensions; orange: the limits")


def swing_figure(
    t: Float[Array, "n"],
    q: Float[Array, "n k q"],
    rest: Float[Array, "k q"],
    positions: Sequence[int],
    names: Sequence[str],
) -> Markup:
    """Displacement of some positions from equilibrium, one line per motion, one plot per position."""
    rows = np.linspace(0, len(t) - 1, min(_POINTS, len(t))).astype(int)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"height": 60 + _ROW * len(positions), "showlegend": False}
    last = f"y{len(positions)}" if len(positions) > 1 else "y"
    layout["xaxis"] = axis("time since release [s]", anchor=last)
    for j, (at, name) in enumerate(zip(positions, names, strict=True)):
        mark = str(j + 1) if j else ""
        for k in range(q.shape[1]):
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"motion {k + 1}",
                    "x": packed(t[rows]),
                    "y": packed(1e3 * (q[rows, k, at] - rest[k, at])),
                    "yaxis": f"y{mark}",
                    "line": {"width": 1.0, "color": BLUE},
                    "opacity": 0.5,
                }
            )
        top = 1.0 - j / len(positions)
        layout[f"yaxis{mark}"] = axis(f"{plot_text(name)} [mm]", domain=[top - 0.86 / len(positions), top])
    return figure("swings", data, layout, "swings of all motions", "Displacement from rest, all motions")
