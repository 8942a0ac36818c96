"""Free oscillations and tensions of a robot on cables, as a part of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.report.numbers import number
from dynid.report.page import render
from dynid.report.plots import PALETTE, figure, line, panel, points
from dynid.statistics.estimate import Estimate

if TYPE_CHECKING:
    from markupsafe import Markup

    from dynid.report.plots import Figure


def swings_part(estimate: Estimate) -> Markup | None:
    """Modes of the first run, tensions, and a table of all runs; None where nothing swings on cables."""
    swings = estimate.drawing.get("swings")
    if not swings:
        return None
    runs = swings["runs"]
    tensions = np.stack([one["tensions"] for one in runs])
    return render(
        "swings.html",
        modes=list(zip(runs[0]["frequencies"], runs[0]["words"], strict=True)),
        agreement=_agreement(runs),
        drawn=bool(swings["modes"]),
        least=float(np.nanmin(tensions)),
        most=float(np.nanmax(tensions)),
        slack=bool(np.nanmin(tensions) < 0.0),
        unit=swings["unit"],
        origin=swings["origin"],
        figure=_tension_ranges(swings),
        cables=list(swings["cables"]),
        rows=[
            {
                "log": one["log"],
                "t": one["t"],
                "frequencies": list(zip(one["frequencies"], one["measured"], strict=True)),
                "tensions": one["tensions"].T.tolist(),
            }
            for one in runs
        ],
    )


def _agreement(runs: list[dict[str, Any]]) -> str:
    """How far the frequencies of the model are from those of the logs."""
    model, log = (np.concatenate([one[key] for one in runs]) for key in ("frequencies", "measured"))
    seen = np.isfinite(log)
    if not seen.any():
        return "The runs are too short to show the frequencies."
    off = 100.0 * (model[seen] / log[seen] - 1.0)
    return (
        f"Over {len(runs)} run{'s' if len(runs) > 1 else ''} the frequencies of the model differ from those"
        f" of the log by {number(float(np.median(np.abs(off))), 2)} % (median)."
    )


def _tension_ranges(swings: dict[str, Any]) -> Figure:
    """Tension of every cable in every run: at rest, and its range."""
    series: list[dict[str, Any]] = []
    runs, cables = swings["runs"], swings["cables"]
    place = np.arange(1.0, len(runs) + 1.0)
    for i, name in enumerate(cables):
        x = place + 0.16 * (i - 0.5 * (len(cables) - 1))
        rest, low, high = np.stack([one["tensions"][:, i] for one in runs], axis=1)
        colour = PALETTE[i % len(PALETTE)]
        ends = np.column_stack([low, high, np.full(len(runs), np.nan)]).ravel()
        tips = [f"{name}: {a:.3g} to {b:.3g} {swings['unit']}" for a, b in zip(low, high, strict=True)]
        series.append(line(name, np.repeat(x, 3), ends, colour, width=4))
        series.append(points("", x, rest, colour, size=3, tips=tips, quiet=True))
    chart = panel(series, "", "run", f"tension [{swings['unit']}]", height=240)
    caption = "Tension in each run. Bar: range during the run. Dot: at rest."
    return figure("swings-tension", [chart], "tension of every cable in every run", caption, fixed=True)
